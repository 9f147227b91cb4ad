"""Settings of the kernel methods, and the kernel that is fitted by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from burnin.core import InputError
from burnin.discrepancies.kernelised import BLOCK, optimise_bandwidth
from burnin.discrepancies.kernels import RBF, InverseMultiquadric, Kernel, median_bandwidth
from burnin.discrepancies.models import Points, standardised

FEWEST_JUDGED = 10
FEWEST_PAIRS = 30
"""That the linear-time test needs to count, for the law of their mean: its bandwidth is no narrower."""


@dataclass(frozen=True)
class KernelSettings:
    """Of the kernel tests and rankings.

    Attributes:
        kernel: "rbf", or "imq", the inverse multiquadric.
        bandwidth: a number, "median" (the median distance), or "optimised" on a share of the data that is
            then not tested. None is optimised in a test, and in a ranking the median, one for all models. The
            median is blind to structure much finer than the whole.
        num_draws: of the null: draws of the wild bootstrap of ksd and fssd.
        num_locations: J of fssd, whose locations are always fitted.
        train_share: the share of the data that bandwidth and locations are fitted to.
        block: rows of pairs that ksd holds at a time.
    """

    kernel: Literal["rbf", "imq"] = "rbf"
    bandwidth: float | Literal["median", "optimised"] | None = None
    num_draws: int = 1000
    num_locations: int = 5
    train_share: float = 0.2
    block: int = BLOCK

    def __post_init__(self) -> None:
        if self.kernel not in ("rbf", "imq"):
            raise InputError(f"the kernel is {self.kernel!r}; known are rbf and imq")
        if isinstance(self.bandwidth, str) and self.bandwidth not in ("median", "optimised"):
            raise InputError(f"the bandwidth is {self.bandwidth!r}; give a number, median or optimised")
        if isinstance(self.bandwidth, int | float) and not self.bandwidth > 0:
            raise InputError(f"the bandwidth is {self.bandwidth}; it must be positive")
        if min(self.num_draws, self.num_locations, self.block) < 1:
            raise InputError("num_draws, num_locations and block must be at least 1")
        if not 0 < self.train_share < 1:
            raise InputError(f"train_share is {self.train_share}; it must lie between 0 and 1")

    def make(self, bandwidth: float) -> Kernel:
        """The kernel with this bandwidth."""
        return RBF(bandwidth) if self.kernel == "rbf" else InverseMultiquadric(bandwidth)


def fitted_kernel(
    points: Points,
    settings: KernelSettings,
    generator: torch.Generator,
    *,
    standardise: bool,
    criterion: Literal["power", "discrepancy"] = "power",
    in_pairs: bool = False,
) -> tuple[Points, Kernel]:
    """The points that are left to be judged, in their units, and the kernel that they are judged with.

    Judged `in_pairs`, two by two, the bandwidth is such that enough of the pairs count.
    """
    bandwidth = settings.bandwidth or ("optimised" if criterion == "power" else "median")
    if bandwidth != "optimised":
        points = standardised(points, by=points.x) if standardise else points
        given = bandwidth if isinstance(bandwidth, int | float) else median_bandwidth(points.x, generator)
        return points, settings.make(given)
    train, rest = divided(points, settings.train_share, standardise=standardise)
    first = settings.make(median_bandwidth(train.x, generator))
    least_share = FEWEST_PAIRS / (len(rest.x) // 2) if in_pairs else 0.0
    return rest, optimise_bandwidth(train, first, criterion, least_share=least_share)


def divided(points: Points, share: float, *, standardise: bool) -> tuple[Points, Points]:
    """The points to learn from and those to judge, both in units of the former."""
    n = len(points.x)
    first = max(2, round(share * n))
    if n - first < FEWEST_JUDGED:
        raise InputError(
            f"{n} points leave {n - first} to judge when {first} are learned from; lower train_share"
        )
    if standardise:
        points = standardised(points, by=points.x[:first])
    return points.rows(0, first), points.rows(first, n)
