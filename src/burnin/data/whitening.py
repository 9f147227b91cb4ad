"""Corners for words, and the whitening of coordinates."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

APART = 5.0
"""Distance of two corners, in standard deviations of the noise around them."""
MOST_WHITENED = 200
"""Coordinates beyond which only scales are taken out, no correlations."""
Numbers = NDArray[np.float64]


def corners_of(levels: int) -> Tensor:
    """The corners of a regular simplex around 0, (levels, levels - 1), `APART` from each other.

    Example:
        >>> corners_of(2)
        tensor([[ 2.5000],
                [-2.5000]], dtype=torch.float64)
    """
    helmert = torch.zeros(levels, levels - 1, dtype=torch.float64)
    for k in range(1, levels):
        helmert[:k, k - 1] = 1 / math.sqrt(k * (k + 1))
        helmert[k, k - 1] = -k / math.sqrt(k * (k + 1))
    return helmert * (APART / math.sqrt(2))


def whitening_of(
    centres: Numbers, noise_variance: Numbers, *, scales_only: bool = False
) -> tuple[Numbers, Numbers]:
    """Mean, and the matrix that whitens coordinates with their noise, or takes out their scales alone."""
    mean = centres.mean(0)
    std = np.sqrt(centres.var(0) + noise_variance)
    dim = len(std)
    if scales_only or dim == 1 or dim > MOST_WHITENED:
        return mean, np.diag(1 / std)
    # scikit-learn takes a while to import.
    from sklearn.covariance import ledoit_wolf_shrinkage

    standard = (centres - mean) / std
    correlation = standard.T @ standard / len(standard) + np.diag(noise_variance / std**2)
    share = float(ledoit_wolf_shrinkage(standard, assume_centered=True))
    values, vectors = np.linalg.eigh((1 - share) * correlation + share * np.eye(dim))
    root = vectors @ np.diag(1 / np.sqrt(np.maximum(values, 1e-10))) @ vectors.T
    return mean, np.diag(1 / std) @ root
