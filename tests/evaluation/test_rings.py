"""Counting samples on the rings, at every edge of the rules, and on fresh data against theory."""

from __future__ import annotations

import math

import pytest
import scipy.stats
import torch

from burnin.data import Rings
from burnin.evaluation.grid import PlaneGrid
from burnin.evaluation.rings import count_rings, ring_bands

RADII = (1.0, 2.0, 3.0)


def one(radius: float = 1.0, angle: float = 0.3, **coordinates: float) -> torch.Tensor:
    x = torch.zeros(1, 10, dtype=torch.float64)
    x[0, 0], x[0, 1] = radius * math.cos(angle), radius * math.sin(angle)
    for name, value in coordinates.items():
        x[0, int(name.removeprefix("x")) - 1] = value
    return x


@pytest.mark.parametrize(
    ("radius", "ring"),
    [
        (0.0, None),
        (0.649, None),
        (0.651, 0),
        (1.0, 0),
        (1.349, 0),
        (1.351, None),
        (1.5, None),
        (1.649, None),
        (1.651, 1),
        (2.349, 1),
        (2.351, None),
        (2.651, 2),
        (3.0, 2),
        (3.349, 2),
        (3.351, None),
        (100.0, None),
    ],
)
@pytest.mark.parametrize("angle", [0.0, 2.0, 4.5])
def test_the_nearest_ring_within_its_tolerance(radius: float, ring: int | None, angle: float) -> None:
    counts = count_rings(one(radius, angle), RADII)
    assert counts.shares == [float(i == ring) for i in range(3)]
    assert counts.off_manifold == float(ring is None)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", ["x3", *(f"x{i}" for i in range(4, 11))])
def test_the_other_coordinates_have_their_tolerance(name: str, sign: int) -> None:
    limit = 0.5 if name == "x3" else 0.05
    inside = count_rings(one(**{name: sign * limit * 0.999}), RADII)
    outside = count_rings(one(**{name: sign * limit * 1.001}), RADII)
    assert inside.off_manifold == 0
    assert outside.off_manifold == 1
    assert inside.shares == outside.shares == [1, 0, 0]  # shares look at the radius alone


def test_shares_are_of_all_samples() -> None:
    x = torch.cat([one(1.0), one(1.0, x4=1.0), one(2.0), one(9.0)])
    counts = count_rings(x, RADII)
    assert counts.shares == [0.5, 0.25, 0.0]
    assert counts.off_manifold == 0.5


def test_a_nan_is_off_the_manifold() -> None:
    assert count_rings(one(math.nan), RADII).off_manifold == 1


def test_fresh_data_have_a_third_on_each_ring_and_nothing_off() -> None:
    """Theory bounds the share off by the Gaussian tails at 3.5, 5 and 5 sd: 0.05% for the radius."""
    n = 60_000
    counts = count_rings(Rings.paper().sample(n, torch.Generator().manual_seed(0)), RADII)
    assert counts.shares == pytest.approx([1 / 3] * 3, abs=4.5 * math.sqrt(2 / 9 / n) + 5e-4)
    # The radius is that of a Gaussian around the ring: |ℓ - r| > 0.35 needs one of the two to be 3.5 sd.
    tail = scipy.stats.chi2.sf(3.5**2, df=2) + 8 * 2 * scipy.stats.norm.sf(5)
    assert counts.off_manifold <= tail + 4.5 * math.sqrt(tail / n)
    assert counts.off_manifold > 0


def test_bands_are_half_a_unit_wide_on_both_sides() -> None:
    grid = PlaneGrid(4.0, 81, 10)
    bands = ring_bands(grid, RADII)
    length = grid.radius()
    for band, radius in zip(bands, RADII, strict=True):
        assert length[band].min() >= radius - 0.5
        assert length[band].max() <= radius + 0.5
        assert bool(((length > radius - 0.49) & (length < radius + 0.49) & ~band).sum() == 0)
