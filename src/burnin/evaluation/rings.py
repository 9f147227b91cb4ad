"""Measures of the 10-D rings: which ring a sample is on, and whether it is on one at all."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.evaluation.grid import PlaneGrid

RING_TOLERANCE = 0.35
THICK_TOLERANCE = 0.5
THIN_TOLERANCE = 0.05
BAND_HALF_WIDTH = 0.5


@dataclass(frozen=True)
class RingCounts:
    """Where samples are.

    Attributes:
        shares: share of all samples whose radius is within 0.35 of each ring's, nearest ring first come.
        off_manifold: share further off than that, or with |x3| > 0.5, or any thin coordinate beyond 0.05.
    """

    shares: list[float]
    off_manifold: float


def count_rings(x: Tensor, radii: tuple[float, ...]) -> RingCounts:
    """Counts samples (n, 10) by ring.

    Example:
        >>> import torch
        >>> x = torch.zeros(3, 10)
        >>> x[0, 0], x[1, 1], x[2, 0] = 1.0, 2.1, 9.0
        >>> counts = count_rings(x, (1.0, 2.0, 3.0))
        >>> [round(share, 3) for share in counts.shares], round(counts.off_manifold, 3)
        ([0.333, 0.333, 0.0], 0.333)
    """
    length = x[:, :2].norm(dim=1)
    gap, nearest = (length.unsqueeze(1) - torch.tensor(radii)).abs().min(1)
    near = gap <= RING_TOLERANCE
    shares = [(near & (nearest == i)).double().mean().item() for i in range(len(radii))]
    off = ~near | (x[:, 2].abs() > THICK_TOLERANCE) | (x[:, 3:].abs() > THIN_TOLERANCE).any(1)
    return RingCounts(shares, off.double().mean().item())


def ring_bands(grid: PlaneGrid, radii: tuple[float, ...]) -> list[Tensor]:
    """Masks of the grid points with |ℓ - r| ≤ 0.5, one for each ring."""
    length = grid.radius()
    return [(length - radius).abs() <= BAND_HALF_WIDTH for radius in radii]
