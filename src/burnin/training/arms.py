"""A chain needs a start, a sampler and a weight. A training scheme is a list of such arms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from burnin.core import Drawn, Energy, InputError, Sampler, Start
from burnin.objectives import Variant
from burnin.ranks import ALONE, Ranks
from burnin.samplers import Engine, RunResult, run
from burnin.samplers.blocks import Share
from burnin.starts import Bank
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
    which the arm ran. A chain lost to resampling is a non-finite proposal but not a stopped chain. Where
    several processes share the chains, numbers are those of all, and positions those of this one.
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
    ranks: Ranks = ALONE,
) -> list[ArmRun]:
    """Runs every arm's chains from its own start; arms that share an independent sampler run as one batch.

    `data` is the batch of all `ranks`; each runs its own share of every arm's chains. Chains that interact do
    so within a process.
    """
    samplers = [arm.sampler_at(update) for arm in arms]
    drawn = [arm.start.draw(data[: arm.num_chains], generator) for arm in arms]
    sizes = [len(one.position) for one in drawn]
    if min(sizes) < ranks.size:
        raise InputError(
            f"an arm has {min(sizes)} chains for {ranks.size} processes; take fewer processes, or more chains"
        )
    runs: dict[int, ArmRun] = {}
    shares: dict[int, float] = {}
    for group in _groups(arms, samplers):
        sampler, num_steps = samplers[group[0]], arms[group[0]].num_steps
        starts = [ranks.own(drawn[i].position) for i in group]
        state = sampler.init(energy, torch.cat(starts), scale=scale)
        share = Share.of(ranks, [sizes[i] for i in group])
        result = run(
            sampler, energy, state, num_steps=num_steps, generator=generator, engine=engine, share=share
        )
        here = 1.0 if share is None else len(share.places) / share.total
        for index, part in zip(group, _split(result, [len(start) for start in starts]), strict=True):
            shares[index] = here
            runs[index] = ArmRun(
                drawn=drawn[index],
                position=part[0],
                gradient_norm=result.gradient_norm,
                acceptance=result.acceptance,
                step_size=float(result.state.step_size),
                num_stopped=int((~part[1]).sum()),
                num_non_finite=result.non_finite,
            )
    return _of_all([runs[i] for i in range(len(arms))], [shares[i] for i in range(len(arms))], ranks)


def shared_words(arms: Sequence[Arm], batch_size: int, ranks: Ranks) -> list[str]:
    """What is to be said of a run that several processes share; nothing of one alone."""
    if ranks.size == 1:
        return []
    said = [f"{ranks.size} processes share each batch of {batch_size}"]
    coupled = [arm.name for arm in arms if not arm.sampler.independent]
    if coupled:
        said.append(
            f"chains of {', '.join(coupled)} interact (resampling, a step that adapts): each process's among "
            "themselves, so that numbers depend on how many processes there are"
        )
    parted = [arm.name for arm in arms if isinstance(arm.start, Bank) and not arm.start.exchange]
    if parted:
        said.append("each process draws from its own part of the bank; scheme.exchange = true makes it one")
    return said


def _of_all(runs: Sequence[ArmRun], shares: Sequence[float], ranks: Ranks) -> list[ArmRun]:
    """The runs with the numbers of all processes: means by shares of the chains, and counts."""
    if ranks.size == 1:
        return list(runs)
    table = [
        (s * r.gradient_norm, s * r.acceptance, s * r.step_size, r.num_stopped, r.num_non_finite)
        for r, s in zip(runs, shares, strict=True)
    ]
    summed = ranks.sum(torch.tensor(table, dtype=torch.float64)).tolist()
    return [
        replace(
            one,
            gradient_norm=norm,
            acceptance=acceptance,
            step_size=step_size,
            num_stopped=int(stopped),
            num_non_finite=int(non_finite),
        )
        for one, (norm, acceptance, step_size, stopped, non_finite) in zip(runs, summed, strict=True)
    ]


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
