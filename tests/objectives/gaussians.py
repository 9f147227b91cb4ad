"""A Gaussian family whose losses can be written out by hand, and the data to hold them against."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

T = 0.7
MEAN = torch.tensor([0.5, -1.0], dtype=torch.float64)
SD = torch.tensor([0.8, 1.5], dtype=torch.float64)


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Diagonal(nn.Module):
    """E(x) = T ½ Σ λᵢ (xᵢ - μᵢ)²: at temperature T a Gaussian of precisions λ, with its normaliser."""

    def __init__(self, precision: Tensor, mean: Tensor = MEAN, temperature: float = T) -> None:
        super().__init__()
        self.precision = nn.Parameter(precision.clone())
        self.mean = nn.Parameter(mean.clone())
        self.temperature = temperature

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * self.temperature * (self.precision * (x - self.mean).square()).sum(1)

    def log_normaliser(self) -> Tensor:
        return 0.5 * (math.log(2 * math.pi) - self.precision.log()).sum()


def gaussian_data(n: int, seed: int = 1) -> Tensor:
    return MEAN + SD * torch.randn(n, 2, generator=stream(seed), dtype=torch.float64)


def assert_zero_mean(terms: Tensor, bound: float = 4.5) -> None:
    """The mean over the first axis is 0 within `bound` standard errors, in every column."""
    error = terms.std(0) / math.sqrt(len(terms))
    assert float((terms.mean(0) / error).abs().max()) < bound


def assert_not_zero_mean(terms: Tensor, bound: float = 10.0) -> None:
    error = terms.std(0) / math.sqrt(len(terms))
    assert float((terms.mean(0) / error).abs().min()) > bound
