"""The sentence of the verdict and the lines under it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from scipy import stats

from burnin.evaluation import Likelihood
from burnin.evaluation.assess import energy_gap
from burnin.evaluation.verdict import FAIR_ENERGIES, Evidence, Seen, Standing, judge

THERE, AWAY, BLURRED = Seen(5.0, FAIR_ENERGIES), Seen(5.01, 0.0), Seen(1.0, FAIR_ENERGIES + 0.01)
LOST = Seen(math.inf, 1.0)
GOOD = Evidence(
    short=THERE,
    long=THERE,
    stayed=THERE,
    anywhere=THERE,
    apart=5.0,
    drift=-0.25,
    acceptance=0.67,
    memory=0.5,
    ess=100.0,
    rhat=1.0,
    density_kl=0.3,
    log_likelihood=Likelihood(-1.5, -1.6, -1.4, "a test"),
    long_steps=100,
    stayed_steps=50,
)


@pytest.mark.parametrize(
    ("evidence", "standing"),
    [
        (GOOD, Standing.BOTH),
        (replace(GOOD, short=BLURRED), Standing.BOTH),  # a generator is judged by where its samples are
        (replace(GOOD, long=AWAY), Standing.GENERATOR),
        (replace(GOOD, long=BLURRED), Standing.GENERATOR),
        (replace(GOOD, stayed=AWAY), Standing.GENERATOR),
        (replace(GOOD, stayed=BLURRED), Standing.GENERATOR),
        (replace(GOOD, anywhere=AWAY), Standing.GENERATOR),
        (replace(GOOD, short=AWAY), Standing.NEAR_DATA),
        (replace(GOOD, short=LOST, long=LOST, anywhere=LOST), Standing.NEAR_DATA),
        (replace(GOOD, short=AWAY, stayed=BLURRED), Standing.NEITHER),
        (replace(GOOD, short=LOST, long=LOST, stayed=LOST, anywhere=LOST), Standing.NEITHER),
        (replace(GOOD, memory=0.51), Standing.UNDECIDED),
        (replace(GOOD, drift=0.26), Standing.UNDECIDED),
        (replace(GOOD, short=AWAY, memory=0.51), Standing.UNDECIDED),
        # Chains that have left are decided, however little the others moved.
        (replace(GOOD, long=AWAY, memory=1.0), Standing.GENERATOR),
        (replace(GOOD, short=Seen(math.nan, math.nan), stayed=Seen(math.nan, math.nan)), Standing.NEITHER),
    ],
)
def test_the_sentence(evidence: Evidence, standing: Standing) -> None:
    assert judge(evidence).standing is standing


def test_each_answer_has_its_own_bound() -> None:
    answers = judge(GOOD)
    assert (answers.generator, answers.converged, answers.density, answers.fits) == (True, True, True, True)
    assert not judge(replace(GOOD, apart=5.01)).converged
    assert not judge(replace(GOOD, drift=-0.26)).converged
    assert judge(replace(GOOD, density_kl=0.31)).fits is False
    assert judge(replace(GOOD, density_kl=None)).fits is None


def test_each_line_names_its_question_and_answers_it() -> None:
    for evidence, words in (
        (GOOD, ["yes."] * 4),
        (replace(GOOD, short=LOST, long=LOST, apart=math.inf, density_kl=math.inf), ["NO."] * 4),
        (replace(GOOD, density_kl=None), ["yes.", "yes.", "yes.", "unknown."]),
    ):
        lines = judge(evidence).lines
        names = ["verdict", "generates", "converged", "density", "fit"]
        assert [line.split(":")[0] for line in lines] == names
        assert lines[0] == f"verdict:   {judge(evidence).standing}."
        for line, word in zip(lines[1:], words, strict=True):
            assert word in line
            assert "\n" not in line


@pytest.mark.parametrize(
    ("distance", "grade"), [(2.0, "good"), (2.01, "fair"), (5.0, "fair"), (5.01, "poor")]
)
def test_grades(distance: float, grade: str) -> None:
    kl = {2.0: 0.05, 2.01: 0.06, 5.0: 0.3, 5.01: 0.4}[distance]
    lines = judge(replace(GOOD, short=Seen(distance, 0.0), density_kl=kl)).lines
    assert f"({grade})" in lines[1]
    assert f"({grade})" in lines[4]


def test_the_gap_of_energies_is_kolmogorov_and_smirnovs() -> None:
    stream = torch.Generator().manual_seed(0)
    x, y = torch.randn(300, generator=stream), 0.2 + torch.randn(500, generator=stream)
    wanted = stats.ks_2samp(x.numpy(), y.numpy()).statistic - 1.358 * math.sqrt(1 / 300 + 1 / 500)
    assert energy_gap(x, y) == pytest.approx(wanted, abs=1e-9)
    tied = torch.randint(0, 5, (300,), generator=stream).float()
    assert energy_gap(tied, tied) == pytest.approx(-1.358 * math.sqrt(2 / 300))
    assert energy_gap(torch.tensor([math.nan, 1.0]), y) == 1.0


def test_chance_alone_rarely_passes_for_a_gap() -> None:
    """19 times in 20 the gap of equal laws is below 0; 400 trials leave 5% ± 1.1%."""
    stream = torch.Generator().manual_seed(1)
    above = sum(
        energy_gap(torch.randn(200, generator=stream), torch.randn(400, generator=stream)) > 0
        for _ in range(400)
    )
    assert above / 400 < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)
