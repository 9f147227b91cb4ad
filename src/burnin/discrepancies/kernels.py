"""Radial kernels k(x, y) = φ(‖x - y‖²), the Stein kernel that each makes, and the bandwidth by the median."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from burnin.core import InputError
from burnin.discrepancies.models import Points

MEDIAN_POINTS = 1000


class Derivatives(NamedTuple):
    """φ and its first two derivatives with respect to the squared distance."""

    value: Tensor
    first: Tensor
    second: Tensor


class Kernel(Protocol):
    """A radial kernel with a bandwidth."""

    @property
    def bandwidth(self) -> float | Tensor:
        """The distance over which the kernel falls."""
        ...

    def derivatives(self, squared: Tensor) -> Derivatives:
        """φ, φ', φ'' at squared distances."""
        ...

    def with_bandwidth(self, bandwidth: float | Tensor) -> Kernel:
        """The same kernel with another bandwidth."""
        ...


@dataclass(frozen=True)
class RBF:
    """φ(u) = exp(-u / 2h²): the Gaussian kernel, whose tests are blind to what happens far apart.

    Example:
        >>> RBF(2.0).derivatives(torch.tensor(8.0)).value
        tensor(0.3679)
    """

    bandwidth: float | Tensor

    def derivatives(self, squared: Tensor) -> Derivatives:
        """φ, φ', φ''."""
        rate = 0.5 / self.bandwidth**2
        value = torch.exp(-rate * squared)
        return Derivatives(value, -rate * value, rate**2 * value)

    def with_bandwidth(self, bandwidth: float | Tensor) -> RBF:
        """The same kernel with another bandwidth."""
        return RBF(bandwidth)


@dataclass(frozen=True)
class InverseMultiquadric:
    """φ(u) = (c² + u)^b with b in (-1, 0): its tails are heavy enough that the discrepancy controls
    convergence (Gorham and Mackey 2017); the bandwidth is c.

    Example:
        >>> InverseMultiquadric(1.0).derivatives(torch.tensor(3.0)).value
        tensor(0.5000)
    """

    bandwidth: float | Tensor
    exponent: float = -0.5

    def __post_init__(self) -> None:
        if not -1 < self.exponent < 0:
            raise InputError(f"the exponent is {self.exponent}; it must lie between -1 and 0")

    def derivatives(self, squared: Tensor) -> Derivatives:
        """φ, φ', φ''."""
        base, b = self.bandwidth**2 + squared, self.exponent
        value = base**b
        first = b * value / base
        return Derivatives(value, first, (b - 1) * first / base)

    def with_bandwidth(self, bandwidth: float | Tensor) -> InverseMultiquadric:
        """The same kernel with another bandwidth."""
        return InverseMultiquadric(bandwidth, self.exponent)


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """‖x - y‖² of all pairs, (n, m), by one matrix product."""
    cross = x.square().sum(1, keepdim=True) + y.square().sum(1) - 2 * x @ y.T
    return cross.clamp_min(0)


def stein_kernel(kernel: Kernel, left: Points, right: Points) -> Tensor:
    """The Stein kernel of all pairs, (n, m): the bracket of the KSD (stein, equation 5).

    For k = φ(u), u = ‖x - y‖², in d dimensions

        h(x, y) = φ s(x)·s(y) + 2φ' (x - y)·(s(y) - s(x)) - 4φ'' u - 2d φ'.

    Example:
        >>> x = torch.zeros(1, 2, dtype=torch.float64)
        >>> stein_kernel(RBF(1.0), Points(x, -x), Points(x, -x))  # k(x, x)·‖s‖² + d/h²
        tensor([[2.]], dtype=torch.float64)
    """
    squared = squared_distances(left.x, right.x)
    value, first, second = kernel.derivatives(squared)
    along = (
        left.x @ right.scores.T
        + left.scores @ right.x.T
        - (left.x * left.scores).sum(1, keepdim=True)
        - (right.x * right.scores).sum(1)
    )
    dim = left.x.shape[1]
    return value * (left.scores @ right.scores.T) + 2 * first * (along - dim) - 4 * second * squared


def stein_kernel_of_pairs(kernel: Kernel, left: Points, right: Points) -> Tensor:
    """The Stein kernel of row i of one with row i of the other, (n,).

    Example:
        >>> x = torch.ones(3, 2)
        >>> stein_kernel_of_pairs(RBF(1.0), Points(x, -x), Points(x, -x))
        tensor([4., 4., 4.])
    """
    apart = left.x - right.x
    squared = apart.square().sum(1)
    value, first, second = kernel.derivatives(squared)
    along = (apart * (right.scores - left.scores)).sum(1)
    inner = (left.scores * right.scores).sum(1)
    return value * inner + 2 * first * (along - apart.shape[1]) - 4 * second * squared


def median_bandwidth(x: Tensor, generator: torch.Generator) -> float:
    """The median distance between two different points, of at most 1,000 of them drawn at random.

    Example:
        >>> median_bandwidth(torch.tensor([[0.0], [1.0], [5.0]]), torch.Generator().manual_seed(0))
        4.0
    """
    if len(x) > MEDIAN_POINTS:
        chosen = torch.randperm(len(x), generator=generator, device=generator.device)[:MEDIAN_POINTS]
        x = x[chosen.to(x.device)]
    distance = torch.pdist(x.double()).median().item()
    if not distance > 0:
        raise InputError(
            "more than half of the points coincide, so their median distance is 0; give a bandwidth"
        )
    return distance
