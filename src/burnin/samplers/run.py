"""The only loop over chain steps. Its memory does not grow with the number of steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from burnin.core import ChainState, Energy, InputError, Outcome, Sampler, StepInfo
from burnin.samplers.blocks import BLOCK_STEPS, Share, Sums, draw_block
from burnin.samplers.engine import Engine
from burnin.samplers.keep import InMemory, Keeper

Progress = Callable[[int, ChainState, StepInfo], None]
"""Called with the number of steps done so far, the state and the last step's info (`Advanced`)."""


@dataclass
class Trace:
    """What was recorded along the chains, averaged over them: at most `trace_points` entries.

    The acceptance is also averaged over the steps since the entry before.
    """

    iteration: list[int] = field(default_factory=list)
    energy: list[float] = field(default_factory=list)
    gradient_norm: list[float] = field(default_factory=list)
    acceptance: list[float] = field(default_factory=list)
    step_size: list[float] = field(default_factory=list)

    def record(self, state: ChainState, info: StepInfo, acceptance: float) -> None:
        """Appends the means over the living chains, and an acceptance of all."""
        alive = state.alive
        self.iteration.append(state.iteration)
        self.energy.append(state.energy[alive].mean().item())
        self.gradient_norm.append(info.gradient_norm[alive].mean().item())
        self.acceptance.append(acceptance)
        self.step_size.append(float(state.step_size))


@dataclass(frozen=True)
class RunResult:
    """The end of a run.

    Attributes:
        state: the last state; `run` goes on from it.
        kept: positions kept on the way, (k, n, ...), or None where none were, or they went to disk.
        trace: recorded energies, gradient norms, acceptances and step sizes.
        gradient_norm: r, the mean of ‖∇E‖ over chains and steps; a stopped chain counts with its last.
        acceptance: mean acceptance over chains and steps.
        non_finite: number of non-finite proposals met.
        outcome: OK, or NON_FINITE when chains were stopped.
    """

    state: ChainState
    kept: Tensor | None
    trace: Trace
    gradient_norm: float
    acceptance: float
    non_finite: int
    outcome: Outcome


def run(
    sampler: Sampler,
    energy: Energy,
    state: ChainState,
    *,
    num_steps: int,
    generator: torch.Generator,
    keep_every: int | None = None,
    trace_points: int = 0,
    keep: Keeper | None = None,
    progress: Progress | None = None,
    progress_every: int = 100,
    engine: Engine | None = None,
    share: Share | None = None,
) -> RunResult:
    """Takes `num_steps` steps of `sampler` from `state`.

    Arguments:
        sampler: Langevin, MALA, HMC or anything that keeps their contract.
        energy: E.
        state: from ``sampler.init`` or from an earlier result.
        num_steps: how many steps; 0 returns the state as it is.
        generator: the chains' own random stream.
        keep_every: keeps the positions after every so many steps (thinning); None keeps none.
        trace_points: how many times, at most, to record along the way; the last step is recorded.
        keep: where kept positions go: to a file by `ToDisk`; None keeps them in memory.
        progress: called every `progress_every` steps and at the end.
        engine: how the steps are computed; None chooses for this run alone. The numbers are the same.
        share: which of more chains these are, where several processes run them; None for all.

    Example:
        >>> import torch
        >>> from burnin.samplers import Langevin
        >>> energy = lambda x: 0.5 * x.square().sum(1)
        >>> sampler = Langevin(0.1, temperature=1.0)
        >>> stream = torch.Generator().manual_seed(0)
        >>> result = run(sampler, energy, sampler.init(energy, torch.zeros(100, 2)), num_steps=50,
        ...              generator=stream, keep_every=10)
        >>> result.kept.shape, result.outcome.name
        (torch.Size([5, 100, 2]), 'OK')
    """
    if num_steps < 0:
        raise InputError(f"num_steps is {num_steps}; it must not be negative")
    if keep_every is not None and keep_every < 1:
        raise InputError(f"keep_every is {keep_every}; it must be at least 1")
    trace, kept = Trace(), keep or InMemory()
    stride = max(1, math.ceil(num_steps / trace_points)) if trace_points else None
    strides = [keep_every, stride, progress_every if progress is not None else None]
    total, done = Sums(0.0, 0.0, 0), 0
    accepted, recorded = 0.0, 0
    advance = (engine or Engine()).open(sampler, energy, state, num_steps)
    while done < num_steps:
        block = draw_block(sampler, state, num_steps - done, generator, share)
        used = 0
        while used < len(block):
            stop = min(used + _until_event(done, strides), len(block))
            state, info, sums = advance(state, block.part(used, stop))
            done, used = done + stop - used, stop
            total, accepted = total.plus(sums), accepted + sums.acceptance
            if keep_every is not None and done % keep_every == 0:
                kept.add(state.position)
            if stride is not None and (done % stride == 0 or done == num_steps):
                trace.record(state, info, accepted / (done - recorded))
                accepted, recorded = 0.0, done
            if progress is not None and (done % progress_every == 0 or done == num_steps):
                progress(done, state, info)
    steps = max(1, num_steps)
    return RunResult(
        state=state,
        kept=kept.stacked(),
        trace=trace,
        gradient_norm=total.gradient_norm / steps,
        acceptance=total.acceptance / steps,
        non_finite=total.non_finite,
        outcome=Outcome.OK if bool(state.alive.all()) else Outcome.NON_FINITE,
    )


def _until_event(done: int, strides: Sequence[int | None]) -> int:
    """Steps until something is to be recorded, so that whole blocks can be computed in between."""
    return min((stride - done % stride for stride in strides if stride is not None), default=BLOCK_STEPS)
