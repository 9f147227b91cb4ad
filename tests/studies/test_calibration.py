"""Ranks and null rates: uniform where they must be, not where they must not, and the small variant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor

from burnin.studies import STUDIES, run_study
from burnin.studies.calibration import CALIBRATION, pool, summary
from burnin.studies.calibration_subjects import T, exact_draws, known
from burnin.studies.ranks import along_both_ways, binomial_range, rank_among, uniformity


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def autoregression(x: Tensor, steps: int, share: float, spread: float, generator: torch.Generator) -> Tensor:
    """A reversible chain; its law has the variance spread² / (1 - share²)."""
    kept = []
    for _ in range(steps):
        x = share * x + spread * torch.randn(x.shape, generator=generator)
        kept.append(x)
    return torch.stack(kept)


@pytest.mark.parametrize(("spread", "right"), [((1 - 0.9**2) ** 0.5, True), (0.6, False)])
def test_ranks_along_a_correlated_chain_are_uniform_for_its_own_law_alone(spread: float, right: bool) -> None:
    generator = stream(3)
    x = torch.randn(4000, generator=generator)
    forth, back = (autoregression(x, 9, 0.9, spread, generator).square() for _ in range(2))
    taken = torch.randint(10, (4000,), generator=generator)
    ranks = rank_among(x.square(), along_both_ways(forth, back, taken), generator)
    p = uniformity(ranks, 10, generator)["p"]
    assert (p > 1e-3) is right, p


def test_ties_are_broken_evenly() -> None:
    ranks = rank_among(torch.zeros(9000), torch.zeros(2, 9000), stream(1))
    counts = torch.bincount(ranks, minlength=3)
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


def test_the_range_of_a_binomial_holds_its_share() -> None:
    for level in (0.95, 0.99):
        low, high = binomial_range(1000, 0.05, level)
        inside = stats.binom.cdf(high, 1000, 0.05) - stats.binom.cdf(low - 1, 1000, 0.05)
        assert level <= inside < level + 0.01


def test_exact_draws_of_a_machine_follow_its_energy() -> None:
    """E of exp(-(E(x) - E₀(x))/T) over draws of the machine is Z₀/Z, for a Gaussian E₀."""
    law = known("machine")
    assert law.machine is not None
    x = exact_draws(law.machine, 200_000, stream(2))
    first, log_z = law.machine.visible_bias, law.machine.log_normaliser()
    # Of the machine's own score the mean is 0.
    score = law.machine.score(x)
    error = score.std(0) / len(x) ** 0.5
    assert bool((score.mean(0).abs() < 4.5 * error).all())
    # exp(log q - log p) has the mean 1 for any density q: here a normal one about b, narrow enough.
    log_q = -0.5 * (x - first).square().sum(1) * 1.5 + 3 * torch.log(torch.tensor(1.5))
    log_q = log_q - 3 * torch.log(torch.tensor(2 * torch.pi))
    weights = (log_q - (-law.energy(x) / T - log_z)).exp()
    assert abs(weights.mean() - 1) < 4.5 * weights.std() / len(x) ** 0.5


def sampler_row(name: str, p: float) -> dict[str, Any]:
    tests = {"arrives energy": {"p": p}, "arrives first": {"p": 0.5}}
    return {"subject": name, "target": "mixture", "repetitions": 100, "acceptance": 0.7, "tests": tests}


def null_row(rejected: int) -> dict[str, Any]:
    counts = {"0.01": 1, "0.05": rejected, "0.1": 9}
    return {"subject": "ksd", "target": "mixture", "repetitions": 1000, "rejected": counts, "p": 0.3}


def test_rows_are_pooled_and_told() -> None:
    rows = {
        "mala-mixture": sampler_row("mala", 0.02),
        "langevin-coarse-mixture": sampler_row("langevin-coarse", 1e-9),
        "ksd-mixture": null_row(35),
        "ksd-machine": null_row(51),
    }
    found = pool(rows)
    assert found["samplers"] == {"number": 2, "below_level": 1, "smallest": pytest.approx(0.04)}
    assert found["controls"] == {"number": 1, "largest": 1e-9}
    assert found["tests"] == {"number": 2, "outside_95": 1, "outside_99": 0}
    assert pool({"ksd-machine": null_row(51)}).keys() == {"tests"}, "what is not there is not judged"
    text = summary(rows)
    assert "| MALA | two Gaussians, 2-D | 0.70 |  |  |  | 0.5 |  | 0.02 |" in text
    assert "| KSD, all pairs | two Gaussians, 2-D | 0.1% | 3.5% | 0.9% | **no** | yes | 0.3 |" in text
    assert "1 have p ≤ 0.05" in text
    assert "sampler" not in summary({"ksd-mixture": null_row(51)}).splitlines()[1]


def test_the_small_variant_is_as_expected(tmp_path: Path) -> None:
    table, checks = run_study(STUDIES["calibration"], tmp_path, quick=True, jobs=1, status=lambda *_: None)
    assert [check.text for check in checks if not check.holds] == []
    assert len(checks) == 3
    assert set(table["rows"]) == set(CALIBRATION.quick_rows)
