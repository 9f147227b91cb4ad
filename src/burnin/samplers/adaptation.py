"""Step sizes that follow a target acceptance."""

from __future__ import annotations

import math
from dataclasses import dataclass

from burnin.core import InputError


@dataclass(frozen=True)
class TargetAcceptance:
    """After each step: log step ← log step + rate · (mean acceptance - target).

    The step falls while acceptance is below its target and grows above it, so a chain neither seizes
    nor crawls (hybrid, section 4.2.5). A chain that adapts for ever is not exactly stationary:
    `until` stops the adaptation after that many steps.

    Arguments:
        target: mean acceptance to hold.
        until: number of steps after which the step size is frozen; None adapts throughout.
        rate: gain of the update.

    Example:
        >>> TargetAcceptance.optimal(until=None).next_step(0.1, acceptance=0.574, iteration=0)
        0.1
    """

    target: float
    until: int | None
    rate: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.target < 1:
            raise InputError(f"the target acceptance is {self.target}; it must lie between 0 and 1")

    @classmethod
    def hybrid_paper(cls, until: int | None) -> TargetAcceptance:
        """0.67, the value of section 4.2.5 of the hybrid paper."""
        return cls(target=0.67, until=until)

    @classmethod
    def optimal(cls, until: int | None) -> TargetAcceptance:
        """0.574, the optimum of the theory of MALA in many dimensions (Roberts & Rosenthal, 1998)."""
        return cls(target=0.574, until=until)

    @classmethod
    def optimal_hmc(cls, until: int | None) -> TargetAcceptance:
        """0.651, the optimum of the theory of HMC in many dimensions (Beskos et al., 2013)."""
        return cls(target=0.651, until=until)

    def next_step(self, step_size: float, acceptance: float, iteration: int) -> float:
        """The step size after step number `iteration`, whose mean acceptance was `acceptance`."""
        if self.until is not None and iteration >= self.until:
            return step_size
        return step_size * math.exp(self.rate * (acceptance - self.target))
