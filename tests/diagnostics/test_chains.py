"""Effective sample size and R-hat against processes whose values are known."""

from __future__ import annotations

import math

import pytest
import torch
from scipy import stats
from torch import Tensor

from burnin.core import InputError
from burnin.diagnostics import mixing, rank_correlation


def autoregressive(coefficient: float, draws: int, chains: int, seed: int = 0) -> Tensor:
    noise = torch.randn(draws, chains, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    values = [noise[0] / math.sqrt(1 - coefficient**2)]
    for row in noise[1:]:
        values.append(coefficient * values[-1] + row)
    return torch.stack(values)


@pytest.mark.parametrize("coefficient", [0.0, 0.5, 0.9])
def test_the_effective_size_of_an_autoregression(coefficient: float) -> None:
    """n (1 - a)/(1 + a) of n values; 20,000 draws leave the estimate within about 10%."""
    values = autoregressive(coefficient, 5000, 4)
    wanted = 20_000 * (1 - coefficient) / (1 + coefficient)
    found = mixing(values)
    assert found.ess == pytest.approx(wanted, rel=0.2)
    assert found.rhat < 1.01


def test_chains_that_never_meet() -> None:
    apart = autoregressive(0.0, 200, 4) + torch.tensor([0.0, 0.0, 10.0, 10.0])
    found = mixing(apart)
    assert found.rhat > 1.5
    assert found.ess < 10


def test_rank_correlation() -> None:
    stream = torch.Generator().manual_seed(0)
    x, y = torch.randn(500, generator=stream), torch.randn(500, generator=stream)
    assert rank_correlation(x, y + x) == pytest.approx(stats.spearmanr(x.numpy(), (y + x).numpy()).statistic)
    assert rank_correlation(x, x.exp()) == pytest.approx(1)
    assert rank_correlation(x, torch.full_like(x, math.nan)) == 1


def test_what_tells_nothing() -> None:
    assert mixing(torch.zeros(50, 3)).rhat == math.inf
    assert mixing(torch.zeros(50, 3)).ess == 3
    assert mixing(torch.randn(5, 3, generator=torch.Generator())).ess == 0
    assert mixing(torch.full((20, 3), math.nan)).rhat == math.inf
    with pytest.raises(InputError, match="2 chains"):
        mixing(torch.zeros(50, 1))
