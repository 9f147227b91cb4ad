"""What an update says of itself, under the names of metrics.jsonl."""

from __future__ import annotations

from collections.abc import Sequence

from burnin.objectives import ArmInfo
from burnin.training.arms import Arm, ArmRun
from burnin.training.several import Made


def update_numbers(
    arms: Sequence[Arm], runs: Sequence[ArmRun], infos: Sequence[ArmInfo], loss: float, learning_rate: float
) -> dict[str, float]:
    """The numbers of an update and of each of its arms."""
    numbers = {"loss": loss, "learning_rate": learning_rate}
    for arm, arm_run, info in zip(arms, runs, infos, strict=True):
        numbers |= _arm_numbers(
            arm.name,
            info,
            arm_run.gradient_norm,
            arm_run.step_size,
            arm_run.acceptance,
            arm_run.num_stopped,
            arm_run.num_non_finite,
        )
    return numbers


def _arm_numbers(
    name: str, info: ArmInfo, r: float, step_size: float, acceptance: float, stopped: int, non_finite: int
) -> dict[str, float]:
    numbers = {
        f"d/{name}": info.d,
        f"std/{name}": info.std,
        f"snr/{name}": info.snr,
        f"r/{name}": r,
        f"step_size/{name}": step_size,
        f"acceptance/{name}": acceptance,
        f"stopped/{name}": float(stopped),
        f"non_finite/{name}": float(non_finite),
    }
    if info.beta is not None:
        numbers |= {f"{monitor}/{name}": value for monitor, value in info.beta._asdict().items()}
    return numbers


def made_numbers(name: str, made: Made) -> dict[str, float]:
    """Those of one of several updates of the arm of this name."""
    numbers = {"loss": made.loss, "learning_rate": made.learning_rate}
    return numbers | _arm_numbers(
        name,
        made.info,
        made.gradient_norm,
        made.step_size,
        made.acceptance,
        made.num_stopped,
        made.num_non_finite,
    )
