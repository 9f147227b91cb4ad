"""A chain needs a start, a sampler and a weight. A training scheme is a list of such arms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import Drawn, Energy, InputError, Sampler, Start
from burnin.samplers import Engine, RunResult, run


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
    """

    name: str
    start: Start
    sampler: Sampler
    num_steps: int
    weight: float = 1.0
    num_chains: int | None = None

    def __post_init__(self) -> None:
        if self.num_chains is not None and self.num_chains < 1:
            raise InputError(f"arm {self.name!r} has num_chains {self.num_chains}; it must be at least 1")
        if self.num_steps < 0:
            raise InputError(f"arm {self.name!r} has num_steps {self.num_steps}; it must not be negative")


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
) -> list[ArmRun]:
    """Runs every arm's chains from its own start; arms that share an independent sampler run as one batch."""
    drawn = [arm.start.draw(data[: arm.num_chains], generator) for arm in arms]
    runs: dict[int, ArmRun] = {}
    for group in _groups(arms):
        sampler, num_steps = arms[group[0]].sampler, arms[group[0]].num_steps
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


def _groups(arms: Sequence[Arm]) -> list[list[int]]:
    groups: list[list[int]] = []
    for index, arm in enumerate(arms):
        for group in groups:
            other = arms[group[0]]
            if arm.sampler.independent and other.sampler == arm.sampler and other.num_steps == arm.num_steps:
                group.append(index)
                break
        else:
            groups.append([index])
    return groups


def _split(result: RunResult, sizes: list[int]) -> list[tuple[Tensor, Tensor]]:
    return list(
        zip(torch.split(result.state.position, sizes), torch.split(result.state.alive, sizes), strict=True)
    )
