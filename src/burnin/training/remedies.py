"""What a rollback changes, so that training does not diverge again the same way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from burnin.training.arms import Arm
from burnin.training.guard import GuardSettings
from burnin.training.schedules import Ramp

HIGHEST_BETA = 0.9


@dataclass(frozen=True)
class Remedies:
    """All that rollbacks have changed so far, but for learning rates, which the optimisers keep.

    Attributes:
        step_factor: of all chains' steps.
        beta: the lowest β of every arm; 0 leaves them as they are.
        num_steps_factor: of the number of the chains' steps.
    """

    step_factor: float = 1.0
    beta: float = 0.0
    num_steps_factor: float = 1.0

    def arms(self, arms: Sequence[Arm]) -> list[Arm]:
        """The arms with their changes.

        Example:
            >>> from burnin.samplers import Langevin
            >>> from burnin.starts import FromData
            >>> arm = Arm("data", FromData(), Langevin(0.1, 1.0), num_steps=5)
            >>> changed = Remedies(beta=0.1, num_steps_factor=2.0).arms([arm])[0]
            >>> changed.num_steps, changed.beta
            (10, 0.1)
        """
        return [
            replace(
                arm,
                num_steps=round(arm.num_steps * self.num_steps_factor),
                beta=_at_least(arm.beta, self.beta) if self.beta > 0 else arm.beta,
            )
            for arm in arms
        ]

    def more(self, settings: GuardSettings) -> Remedies:
        """One rollback more."""
        changed = self
        if "step_size" in settings.remedies:
            changed = replace(changed, step_factor=changed.step_factor * settings.factor)
        if "num_steps" in settings.remedies:
            changed = replace(changed, num_steps_factor=changed.num_steps_factor / settings.factor)
        if "beta" in settings.remedies:
            beta = settings.beta if changed.beta == 0 else changed.beta / settings.factor
            changed = replace(changed, beta=min(beta, HIGHEST_BETA))
        return changed

    def words(self, settings: GuardSettings, rate: float) -> str:
        """What the last rollback changed; `rate` is the learning rate before."""
        said = {
            "learning_rate": f"learning rate × {settings.factor:g} (was {rate:.3g})",
            "step_size": f"step size × {settings.factor:g}",
            "num_steps": f"{1 / settings.factor:g} × as many steps",
            "beta": f"β at least {self.beta:.3g}",
        }
        return ", ".join(said[name] for name in settings.remedies) or "nothing changed"

    def state(self) -> dict[str, float]:
        """What a checkpoint keeps."""
        return {
            "step_factor": self.step_factor,
            "beta": self.beta,
            "num_steps_factor": self.num_steps_factor,
        }

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Remedies:
        """The inverse of `state`."""
        return cls(**{name: float(state[name]) for name in cls().state()})


def lower_rates(
    optimizers: Iterable[torch.optim.Optimizer],
    scheduler: torch.optim.lr_scheduler.LRScheduler | None,
    factor: float,
) -> None:
    """Multiplies all learning rates, and what a schedule starts from."""
    for group in [group for one in optimizers for group in one.param_groups]:
        group["lr"] *= factor
        if "initial_lr" in group:
            group["initial_lr"] *= factor
    if scheduler is not None:
        scheduler.base_lrs = [rate * factor for rate in scheduler.base_lrs]


def _at_least(beta: float | Ramp, lowest: float) -> float | Ramp:
    if isinstance(beta, Ramp):
        return Ramp(tuple((update, max(value, lowest)) for update, value in beta.points))
    return max(float(beta), lowest)
