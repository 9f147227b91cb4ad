"""Completed rows follow the conditional law: Gaussians, walls, cells and words, each known exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from burnin.core import InputError
from burnin.data.whitening import corners_of
from burnin.evaluation.conditional import Completed, Effort, NoStartError, complete
from burnin.evaluation.gaps import Chart, Gaps, Guide, Words

ROOT = torch.tensor(
    [[1.4, 0.0, 0.0, 0.0], [0.9, 0.8, 0.0, 0.0], [-0.4, 0.5, 0.8, 0.0], [0.2, -0.1, 0.4, 0.5]],
    dtype=torch.float64,
)
COVARIANCE = ROOT @ ROOT.T
MEAN = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
TEMPERATURE = 0.7
PRECISION = torch.linalg.inv(COVARIANCE)
ROUGH = Guide(torch.zeros(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64))
NEAR = Guide(MEAN, PRECISION)
SHORT = Effort(rounds=12, steps=8, tries=8)
CHAINS = 500


def gaussian(x: Tensor) -> Tensor:
    """E with exp(-E/T) = N(MEAN, COVARIANCE)."""
    away = x - MEAN
    value: Tensor = 0.5 * TEMPERATURE * ((away @ PRECISION) * away).sum(1)
    return value


def drawn(gaps: Gaps, guide: Guide, seed: int = 0, effort: Effort = SHORT) -> Completed:
    stream = torch.Generator().manual_seed(seed)
    return complete(gaussian, TEMPERATURE, gaps, guide, generator=stream, effort=effort)


def given(*row: float) -> Tensor:
    return torch.tensor([row], dtype=torch.float64).repeat(CHAINS, 1)


def conditional(row: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and covariance of the missing coordinates, in closed form."""
    gone = row.isnan()
    across = COVARIANCE[gone][:, ~gone] @ torch.linalg.inv(COVARIANCE[~gone][:, ~gone])
    mean = MEAN[gone] + across @ (row[~gone] - MEAN[~gone])
    return mean, COVARIANCE[gone][:, gone] - across @ COVARIANCE[~gone][:, gone]


@pytest.mark.parametrize("guide", [ROUGH, NEAR], ids=["rough", "near"])
@pytest.mark.parametrize("row", [(2.5, math.nan, -1.0, math.nan), (math.nan, -3.0, math.nan, math.nan)])
def test_a_gaussian_has_its_conditional_mean_and_variance(guide: Guide, row: tuple[float, ...]) -> None:
    rows = given(*row)
    # Longer where the guide is none: the start is then far from the law.
    done = drawn(Gaps.of(rows), guide, effort=Effort(30, 10, 8) if guide is ROUGH else SHORT)
    gone = rows[0].isnan()
    assert torch.equal(done.last[:, ~gone], rows[:, ~gone])  # to the bit
    mean, covariance = conditional(rows[0])
    found, variance = done.last[:, gone], covariance.diagonal()
    # Independent chains: the mean has variance σ²/n, the variance about 2σ⁴/n.
    assert ((found.mean(0) - mean).abs() < 4 * (variance / CHAINS).sqrt()).all()
    assert ((found.var(0) - variance).abs() < 4 * variance * math.sqrt(2 / CHAINS)).all()
    assert 0.4 < done.acceptance < 0.75
    assert done.kept.shape == (15 if guide is ROUGH else 6, CHAINS, 4)


def test_rows_with_different_gaps_run_together() -> None:
    gone = [(True, False, False, False), (False, True, True, False), (True, True, True, True)]
    rows = torch.tensor([[2.5, -3.0, 0.0, 3.5]], dtype=torch.float64).repeat(len(gone) * CHAINS, 1)
    rows[torch.tensor(gone).repeat(CHAINS, 1)] = math.nan
    done = drawn(Gaps.of(rows), NEAR, seed=1)
    for index in range(len(gone)):
        mean, covariance = conditional(rows[index])
        found = done.last[index :: len(gone)][:, rows[index].isnan()]
        assert ((found.mean(0) - mean).abs() < 4 * (covariance.diagonal() / CHAINS).sqrt()).all()


@pytest.mark.parametrize(
    ("low", "high", "guide"),
    [
        (-2.0, math.inf, NEAR),
        (-1.9, -1.6, NEAR),
        (-3.0, 4.0, NEAR),
        (2.0, math.inf, NEAR),
        (-3.0, 4.0, ROUGH),
        (-2.2, -1.9, Guide(MEAN, torch.full((4,), 9.0, dtype=torch.float64))),
    ],
)
def test_bounds_cut_the_gaussian(low: float, high: float, guide: Guide) -> None:
    """A wall, an interval narrower than the law, a wider one, and a wall five standard deviations away."""
    rows = given(1.0, math.nan, 0.5, 3.0)
    done = drawn(Gaps.of(rows, low, high), guide, seed=2, effort=Effort(14, 12, 8))
    mean, variance = (float(value) for value in conditional(rows[0]))
    sd = math.sqrt(variance)
    law = stats.truncnorm((low - mean) / sd, (high - mean) / sd, mean, sd)
    found = done.last[:, 1].numpy()
    assert low <= found.min()
    assert found.max() <= high
    assert stats.kstest(found, law.cdf).pvalue > 1e-3


def test_a_known_cell_counts_with_all_its_width() -> None:
    """Of a rounded neighbour only the cell is known: the law is the mean over the cell, by quadrature."""
    n = CHAINS
    rows = given(math.nan, -1.0, 0.5, 3.0)
    gaps = Gaps.of(rows)
    gaps.free[:, 1], gaps.low[:, 1], gaps.high[:, 1] = True, -1.5, -0.5
    done = drawn(gaps, NEAR, seed=3)
    assert float(done.last[:, 1].min()) >= -1.5
    assert float(done.last[:, 1].max()) <= -0.5
    points = torch.linspace(-1.5, -0.5, 401, dtype=torch.float64)
    weights, means = [], []
    for point in points.tolist():
        row = torch.tensor([math.nan, point, 0.5, 3.0], dtype=torch.float64)
        mean, covariance = conditional(row)
        part = torch.tensor([point, 0.5, 3.0], dtype=torch.float64) - MEAN[1:]
        weights.append(math.exp(-0.5 * float(part @ torch.linalg.inv(COVARIANCE[1:, 1:]) @ part)))
        means.append(float(mean))
    share = np.array(weights) / sum(weights)
    centre = float(share @ means)
    variance = float(covariance) + float(share @ (np.array(means) - centre) ** 2)
    assert abs(float(done.last[:, 0].mean()) - centre) < 4 * math.sqrt(variance / n)
    assert abs(float(done.last[:, 0].var()) - variance) < 4 * variance * math.sqrt(2 / n)


SHARES = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
CENTRES = torch.tensor([-4.0, 0.0, 5.0], dtype=torch.float64)


def mixture(x: Tensor) -> Tensor:
    """A word of three levels (coordinates 0 and 1), and a number that is N(CENTRES[level], 1)."""
    corners = corners_of(3)
    words = -0.5 * (x[:, None, :2] - corners).square().sum(2)
    numbers = -0.5 * (x[:, 2:] - CENTRES).square()
    return -(SHARES.log() + words + numbers).logsumexp(1)


@pytest.mark.parametrize("number", [math.nan, -1.5, 2.4])
def test_a_missing_word_has_its_probability(number: float) -> None:
    """Modes that Langevin steps cannot leave: leaps and swaps bring each its mass."""
    n = 1000
    rows = torch.tensor([[math.nan, math.nan, number]], dtype=torch.float64).repeat(n, 1)
    plain = Gaps.of(rows)
    column = Words(0, corners_of(3), torch.full((n,), -1))
    gaps = Gaps(plain.value, plain.free, plain.low, plain.high, (column,))
    guide = Guide(torch.tensor([0.0, 0.0, -1.0]).double(), torch.tensor([0.2, 0.2, 0.1]).double())
    stream = torch.Generator().manual_seed(4)
    done = complete(mixture, 1.0, gaps, guide, generator=stream, effort=SHORT)
    exact = SHARES.clone()
    if not math.isnan(number):
        exact = (SHARES.log() - 0.5 * (number - CENTRES).square()).softmax(0)
    found = column.nearest(done.last).bincount(minlength=3) / n
    # Noise puts 0.6% of a corner into each neighbour's cell.
    assert ((found - exact).abs() < 4 * (exact * (1 - exact) / n).sqrt() + 0.013).all()
    if math.isnan(number):
        mean = float(SHARES @ CENTRES)
        variance = 1 + float(SHARES @ (CENTRES - mean).square())
        assert abs(float(done.last[:, 2].mean()) - mean) < 4 * math.sqrt(variance / n)


def test_a_known_word_stays() -> None:
    n = 500
    plain = Gaps.of(torch.full((n, 3), math.nan, dtype=torch.float64))
    column = Words(0, corners_of(3), torch.full((n,), 2))
    gaps = Gaps(plain.value, plain.free, plain.low, plain.high, (column,))
    guide = Guide(torch.zeros(3).double(), torch.tensor([0.2, 0.2, 0.1]).double())
    done = complete(mixture, 1.0, gaps, guide, generator=torch.Generator().manual_seed(5), effort=SHORT)
    assert (column.nearest(done.last) == 2).all()
    # Of the level's own number, with what little of the others lies in its cell.
    assert abs(float(done.last[:, 2].median()) - 5.0) < 4 * 1.25 / math.sqrt(n)


def test_the_density_of_draws_is_the_one_they_are_drawn_from() -> None:
    """Σ weights of draws of a normalised law is its integral: the weights that leaps choose by are right."""
    n = 20_000
    gaps = Gaps.of(torch.full((n, 3), math.nan, dtype=torch.float64))
    column = Words(0, corners_of(3), torch.full((n,), -1))
    gaps = Gaps(gaps.value, gaps.free, gaps.low, gaps.high, (column,))
    chart = Chart(gaps, Guide(torch.zeros(3).double(), torch.full((3,), 0.05).double()), mixture, 1.0)
    u, log_drawn = chart.draw(torch.zeros(n, 3).double(), 1.3, torch.Generator().manual_seed(6))
    weight = (-chart(u) - log_drawn).exp()
    # x = u/√0.05 in the third coordinate; draws have density (1/3) Σ N(u; corner) · N(u₃; 0, 1.3²).
    weight = weight * 3 * 1.3 / math.sqrt(0.05)
    assert abs(float(weight.mean()) - 1) < 4 * float(weight.std()) / math.sqrt(n)


def test_the_same_seed_gives_the_same_rows_and_progress_reaches_the_end() -> None:
    rows = given(1.0, math.nan, 0.5, math.nan)[:5]
    seen: list[tuple[int, int]] = []
    stream = torch.Generator().manual_seed(7)
    one = complete(
        gaussian,
        TEMPERATURE,
        Gaps.of(rows),
        NEAR,
        generator=stream,
        effort=SHORT,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert torch.equal(one.last, drawn(Gaps.of(rows), NEAR, seed=7).last)
    assert seen[-1] == (60, 60)


def test_what_cannot_be_is_refused() -> None:
    rows = given(1.0, math.nan, 0.5, 3.0)[:3]
    with pytest.raises(InputError, match="between its bounds"):
        Gaps.of(rows, 1.0, 1.0)
    with pytest.raises(InputError, match="not finite"):
        Gaps(rows, torch.zeros_like(rows, dtype=torch.bool), rows, rows)
    with pytest.raises(NoStartError, match="row 1"):
        complete(
            lambda x: x.sum(1) * math.inf,
            1.0,
            Gaps.of(rows),
            NEAR,
            generator=torch.Generator(),
            effort=SHORT,
        )
    with pytest.raises(InputError, match="rounds"):
        Effort(rounds=1)
