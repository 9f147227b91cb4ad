"""Step sizes that follow a target acceptance."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import InputError, Scalar


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
        >>> TargetAcceptance.optimal(until=100).gain(iteration=100)
        0.0
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

    def gain(self, iteration: int) -> float:
        """How fast the step follows at step number `iteration`: `rate`, and 0 once it is frozen."""
        return self.rate if self.until is None or iteration < self.until else 0.0

    def next_step(self, step_size: Tensor, acceptance: Tensor, alive: Tensor, gain: Scalar) -> Tensor:
        """The step size after a step with these acceptances, averaged over the living chains.

        Stopped chains accept nothing and would drag the step to 0.
        """
        living = alive.sum()
        mean = (acceptance * alive).sum(dtype=torch.float64) / living.clamp(min=1)
        factor = torch.exp(gain * (mean - self.target))
        return torch.where(living > 0, step_size * factor, step_size)
