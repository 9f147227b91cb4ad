"""The energy distance between two samples, in units of what chance alone gives."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import Density, InputError


def mean_distance(x: Tensor, y: Tensor, *, chunk: int = 1024) -> float:
    """Mean Euclidean distance over all pairs of rows, in bounded memory."""
    x, y = x.flatten(1), y.flatten(1)
    origin = y.mean(0)  # far from the origin, differences of squared norms would lose their digits
    total = 0.0
    for part in torch.split(x - origin, chunk):
        total += torch.cdist(part, y - origin).double().sum().item()
    return total / (len(x) * len(y))


def energy_distance(x: Tensor, y: Tensor) -> float:
    """ℰ = 2 E‖X - Y‖ - E‖X - X'‖ - E‖Y - Y'‖ over all pairs (Székely & Rizzo 2013).

    0 only for equal laws; no square root is taken. As a V-statistic (pairs of a point with itself
    included) it is never negative.

    Example:
        >>> import torch
        >>> energy_distance(torch.zeros(3, 1), torch.ones(5, 1))
        2.0
    """
    return 2 * mean_distance(x, y) - mean_distance(x, x) - mean_distance(y, y)


@dataclass(frozen=True)
class DistanceScale:
    """The 95th percentile of ℰ between two fresh data sets: the unit in which distances are told.

    A distance of 1 or less is what two honest data sets of these sizes show 19 times in 20.

    Attributes:
        reference: the data that samples are compared with.
        unit: the percentile.
    """

    reference: Tensor
    unit: float

    @classmethod
    def fit(
        cls,
        density: Density,
        num_samples: int,
        num_reference: int,
        generator: torch.Generator,
        *,
        num_sets: int = 12,
        progress: Callable[[], None] | None = None,
    ) -> DistanceScale:
        """Estimates the percentile from all pairs of `num_sets` + `num_sets` fresh data sets.

        Pairs that share a set are not independent, which costs precision of the percentile, not
        correctness: 12 + 12 sets give 144 values for the price of 24 self-distances.
        """
        if num_sets < 5:
            raise InputError(f"num_sets is {num_sets}; a 95th percentile needs at least 5 + 5 sets")
        small = [density.sample(num_samples, generator) for _ in range(num_sets)]
        large = [density.sample(num_reference, generator) for _ in range(num_sets)]
        self_small = [mean_distance(x, x) for x in small]
        self_large = [mean_distance(y, y) for y in large]
        values = []
        for (i, x), (j, y) in itertools.product(enumerate(small), enumerate(large)):
            values.append(2 * mean_distance(x, y) - self_small[i] - self_large[j])
            if progress is not None:
                progress()
        unit = torch.tensor(values, dtype=torch.float64).quantile(0.95).item()
        return cls(density.sample(num_reference, generator), unit)

    def distance(self, x: Tensor, effective: float | None = None) -> float:
        """ℰ between `x` and the reference, in units of the percentile. Not finite means infinite.

        Where `x` is worth only so many independent draws, the unit is that of so many: chance grows as the
        sum of the inverse sizes.
        """
        if not bool(torch.isfinite(x).all()):
            return float("inf")
        wider = 1.0
        if effective is not None:
            own = 1 / len(self.reference)
            wider = (1 / effective + own) / (1 / len(x) + own)
        return energy_distance(x, self.reference) / (self.unit * wider)
