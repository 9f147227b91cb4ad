"""What the tests of densities share: integrals on a grid, and the agreement of samples with a density."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from scipy import stats
from torch import Tensor

LogProb = Callable[[Tensor], Tensor]


def midpoints(half: float, count: int) -> Tensor:
    """Midpoints of `count` equal intervals of [-half, half], float64."""
    width = 2 * half / count
    return torch.arange(count, dtype=torch.float64) * width + 0.5 * width - half


def square_grid(half: float, count: int) -> tuple[Tensor, float]:
    """Midpoints of count × count equal cells of [-half, half]², row by row, and the area of a cell."""
    axis = midpoints(half, count)
    return torch.cartesian_prod(axis, axis), (2 * half / count) ** 2


def total_mass(log_prob: LogProb, half: float, count: int) -> float:
    points, area = square_grid(half, count)
    return float(log_prob(points).exp().sum() * area)


def entropy(log_prob: LogProb, half: float, count: int) -> float:
    points, area = square_grid(half, count)
    logs = log_prob(points)
    return -float(torch.where(logs.isinf(), 0.0, logs.exp() * logs).sum() * area)


class Agreement(NamedTuple):
    """p-values of the hypothesis that samples follow a density, from counts in cells."""

    chi_square: float
    worst_cell: float


def agreement(x: Tensor, log_prob: LogProb, half: float, cells: int = 20, fine: int = 24) -> Agreement:
    """Counts of x in cells × cells squares of [-half, half]² against the integral of the density there.

    Each cell is integrated by the midpoint rule with fine × fine points. Cells that expect fewer than
    10 points are put together with the outside. `worst_cell` is the binomial p-value of the largest
    |z|, multiplied by the number of cells (Bonferroni).
    """
    points, area = square_grid(half, cells * fine)
    mass = (log_prob(points).exp() * area).reshape(cells, fine, cells, fine).sum((1, 3)).numpy().ravel()
    edges = np.linspace(-half, half, cells + 1)
    xy = x[:, :2].double().numpy()
    counts = np.histogram2d(xy[:, 0], xy[:, 1], bins=(edges, edges))[0].ravel()
    n = len(x)
    large = mass * n >= 10
    observed = np.append(counts[large], n - counts[large].sum())
    expected = np.append(mass[large] * n, n * (1 - mass[large].sum()))
    if expected[-1] < 1e-6 * n:  # nothing is left outside: the last cell is a rounding error
        assert observed[-1] == 0
        observed, expected = observed[:-1], expected[:-1] * n / expected[:-1].sum()
    z = (observed - expected) / np.sqrt(expected * (1 - expected / n))
    chi_square = ((observed - expected) ** 2 / expected).sum()
    return Agreement(
        chi_square=float(stats.chi2.sf(chi_square, len(expected) - 1)),
        worst_cell=min(1.0, float(2 * stats.norm.sf(np.abs(z).max()) * len(z))),
    )


def assert_agree(x: Tensor, log_prob: LogProb, half: float, cells: int = 20, fine: int = 24) -> None:
    result = agreement(x, log_prob, half, cells, fine)
    assert min(result) > 1e-3, result


def assert_disagree(x: Tensor, log_prob: LogProb, half: float, cells: int = 20, fine: int = 24) -> None:
    result = agreement(x, log_prob, half, cells, fine)
    assert min(result) < 1e-6, result


def assert_mean_is(values: Tensor, expected: float, bound: float = 4.0) -> None:
    """The mean of independent values is within `bound` standard errors of what theory says."""
    error = float(values.double().std()) / len(values) ** 0.5
    assert abs(float(values.double().mean()) - expected) < bound * error + 1e-9
