"""Gaussian data against Gaussian models: what every discrepancy is known for in closed form."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from burnin.discrepancies.models import Points

SHIFT = torch.tensor([0.6, -0.3], dtype=torch.float64)
"""Data from N(0, 1), the model N(shift, 1): the score's error is the shift, everywhere."""


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def shifted(n: int, shift: Tensor = SHIFT, seed: int = 0) -> Points:
    x = torch.randn(n, len(shift), generator=stream(seed), dtype=torch.float64)
    return Points(x, shift - x)


def rightly_modelled(n: int, seed: int, dim: int = 2) -> Points:
    return shifted(n, torch.zeros(dim, dtype=torch.float64), seed)


def within_binomial(count: int, trials: int, level: float, errors: float = 4.0) -> bool:
    """Whether so many rejections are what a test of this level may show."""
    return abs(count - trials * level) <= errors * math.sqrt(trials * level * (1 - level))
