"""How a step size, or a temperature, changes along a chain.

A `Schedule` is a function of the chain's iteration. A `StepSize` rule also sees the chains' start and
so can adapt to the energy, as the hybrid paper does at every training iteration (section 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, runtime_checkable

from torch import Tensor

from burnin.core import InputError, flat_norm


@runtime_checkable
class Schedule(Protocol):
    """A number for each iteration of a chain."""

    def at(self, iteration: int) -> float:
        """The value that step number `iteration` (from 0) uses."""
        ...


@dataclass(frozen=True)
class Knots:
    """A value that passes through given points, by equal factors in between, flat before and after.

    Used for the step size it lets a chain travel first and be accurate in the end; used for the heat it
    anneals: chains cross barriers while hot and settle at the model's own temperature.

    Arguments:
        points: (iteration, value) pairs, iterations rising, values positive.

    Example:
        >>> schedule = Knots(((1, 8.0), (4, 1.0)))
        >>> [round(schedule.at(i), 3) for i in range(6)]
        [8.0, 8.0, 4.0, 2.0, 1.0, 1.0]
    """

    points: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        iterations = [iteration for iteration, _ in self.points]
        if not iterations or any(b <= a for a, b in pairwise(iterations)):
            raise InputError(f"the schedule's iterations are {iterations}; give at least one, rising")
        for _, value in self.points:
            _require_positive("a schedule's value", value)

    def at(self, iteration: int) -> float:
        """The interpolated value."""
        if iteration <= self.points[0][0]:
            return self.points[0][1]
        for (left, start), (right, end) in pairwise(self.points):
            if iteration == right:
                return end
            if iteration < right:
                return start * math.exp(math.log(end / start) * (iteration - left) / (right - left))
        return self.points[-1][1]


@dataclass(frozen=True)
class Times:
    """Another schedule times a factor.

    Example:
        >>> Times(Knots(((0, 8.0),)), 0.5).at(3)
        4.0
    """

    schedule: Schedule
    factor: float

    def at(self, iteration: int) -> float:
        """The value of the other, times the factor."""
        return self.factor * self.schedule.at(iteration)


@runtime_checkable
class StepSize(Protocol):
    """A rule for the step of a new batch of chains, from their energies and gradients at the start."""

    def first(self, energy: Tensor, gradient: Tensor) -> float:
        """The step size of chains that start with these energies and gradients."""
        ...


@dataclass(frozen=True)
class OverGradientNorm:
    """The hybrid paper's adaptive step: ε = displacement / ‖∇E‖, the norm averaged over the batch.

    Whatever the scale of the energy, the drift ε·∇E of the first step moves a chain by `displacement`
    on average: large steps while the landscape is flat, annealed as training sharpens it (section 3).

    Example:
        >>> import torch
        >>> OverGradientNorm(0.01).first(torch.zeros(2), torch.tensor([[3.0, 4.0], [0.0, 5.0]]))
        0.002
    """

    displacement: float
    largest: float = math.inf

    def __post_init__(self) -> None:
        _require_positive("the target displacement", self.displacement)

    def first(self, energy: Tensor, gradient: Tensor) -> float:
        """displacement / mean ‖∇E‖, at most `largest`."""
        return _ratio(self.displacement, flat_norm(gradient).mean().item(), self.largest)


@dataclass(frozen=True)
class OverEnergyNorm:
    """The adaptive step as section 3 of the hybrid paper prints it: ε = numerator / ‖E(x)‖.

    The norm is the root mean square of the energies over the batch, so the step does not depend on the
    batch's size. An energy is only defined up to a constant, so this rule is not; prefer
    `OverGradientNorm`.

    Example:
        >>> import torch
        >>> OverEnergyNorm(0.0005).first(torch.tensor([0.5, -0.5]), torch.zeros(2, 1))
        0.001
    """

    numerator: float
    largest: float = math.inf

    def __post_init__(self) -> None:
        _require_positive("the numerator of the step", self.numerator)

    def first(self, energy: Tensor, gradient: Tensor) -> float:
        """numerator / rms E, at most `largest`."""
        return _ratio(self.numerator, energy.square().mean().sqrt().item(), self.largest)


def _ratio(numerator: float, norm: float, largest: float) -> float:
    if not math.isfinite(norm):
        raise InputError(
            "the adaptive step size met a non-finite energy or gradient at the chains' start; "
            "check the data and the energy's weights, or set a fixed step_size"
        )
    if norm <= numerator / largest if math.isfinite(largest) else norm == 0.0:
        if not math.isfinite(largest):
            raise InputError(
                "the adaptive step size divides by a norm of 0 (a flat energy): set its largest value"
            )
        return largest
    return numerator / norm


def _require_positive(what: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{what} is {value}; it must be positive and finite")
