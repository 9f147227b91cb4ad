"""A chain needs a start, a sampler and a weight. A training scheme is a list of such arms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import Drawn, Energy, InputError, Sampler, Start
from burnin.objectives import Variant
from burnin.samplers import Engine, RunResult, run
from burnin.training.schedules import Ramp


@dataclass(frozen=True)
class Arm:
    """One source of negatives.

    Attributes:
        name: how metrics call it.
        start: where its chains begin.
        sampler: how they move.
        num_steps: how many steps they take in each update.
        weight: its weight in the contrast.
        num_chains: how many chains; None for as many as there are data points in the batch.
        beta: β of its contrast, a number or a schedule over the updates; its chains run on 1 - β of the
            energy, and their ends are weighted by the rest (robust, section 3).
        variant: how data counts among the negatives, for β ≠ 0.
        pool: arms of one pool share one contrast; None for one of its own.
    """

    name: str
    start: Start
    sampler: Sampler
    num_steps: int
    weight: float = 1.0
    num_chains: int | None = None
    beta: float | Ramp = 0.0
    variant: Variant = "default"
    pool: str | None = None

    def __post_init__(self) -> None:
        if self.num_chains is not None and self.num_chains < 1:
            raise InputError(f"arm {self.name!r} has num_chains {self.num_chains}; it must be at least 1")
        if self.num_steps < 0:
            raise InputError(f"arm {self.name!r} has num_steps {self.num_steps}; it must not be negative")
        highest = self.beta if isinstance(self.beta, int | float) else self.beta.highest
        if not highest < 1:
            raise InputError(f"arm {self.name!r} has beta {highest:g}; it must be below 1")

    def beta_at(self, update: int) -> float:
        """β of this update."""
        return float(self.beta) if isinstance(self.beta, int | float) else self.beta.at(update)

    def sampler_at(self, update: int) -> Sampler:
        """The sampler of this update, of p^(1-β)."""
        beta = self.beta_at(update)
        return self.sampler if beta == 0 else self.sampler.tempered(1 - beta)


@dataclass(frozen=True)
class ArmRun:
    """What became of one arm's chains in an update.

    Norm, acceptance, step size and the number of non-finite proposals are those of the whole batch in
    which the arm ran. A chain lost to resampling is a non-finite proposal but not a stopped chain.
    """

    drawn: Drawn
    position: Tensor
    gradient_norm: float
    acceptance: float
    step_size: float
    num_stopped: int
    num_non_finite: int


def run_arms(
    arms: Sequence[Arm],
    energy: Energy,
    data: Tensor,
    scale: Tensor | None,
    generator: torch.Generator,
    engine: Engine,
    update: int = 0,
) -> list[ArmRun]:
    """Runs every arm's chains from its own start; arms that share an independent sampler run as one batch."""
    samplers = [arm.sampler_at(update) for arm in arms]
    drawn = [arm.start.draw(data[: arm.num_chains], generator) for arm in arms]
    runs: dict[int, ArmRun] = {}
    for group in _groups(arms, samplers):
        sampler, num_steps = samplers[group[0]], arms[group[0]].num_steps
        start = torch.cat([drawn[i].position for i in group])
        state = sampler.init(energy, start, scale=scale)
        result = run(sampler, energy, state, num_steps=num_steps, generator=generator, engine=engine)
        for index, part in zip(group, _split(result, [len(drawn[i].position) for i in group]), strict=True):
            runs[index] = ArmRun(
                drawn=drawn[index],
                position=part[0],
                gradient_norm=result.gradient_norm,
                acceptance=result.acceptance,
                step_size=float(result.state.step_size),
                num_stopped=int((~part[1]).sum()),
                num_non_finite=result.non_finite,
            )
    return [runs[i] for i in range(len(arms))]


def _groups(arms: Sequence[Arm], samplers: Sequence[Sampler]) -> list[list[int]]:
    groups: list[list[int]] = []
    for index, (arm, sampler) in enumerate(zip(arms, samplers, strict=True)):
        for group in groups:
            same = samplers[group[0]] == sampler and arms[group[0]].num_steps == arm.num_steps
            if sampler.independent and same:
                group.append(index)
                break
        else:
            groups.append([index])
    return groups


def _split(result: RunResult, sizes: list[int]) -> list[tuple[Tensor, Tensor]]:
    return list(
        zip(torch.split(result.state.position, sizes), torch.split(result.state.alive, sizes), strict=True)
    )
