"""Chains of a trained model: short and long, from noise and from data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from burnin.core import ChainState, InputError
from burnin.evaluation.long_runs import run_resumable
from burnin.evaluation.model import Chain, Model
from burnin.samplers import RunResult, run
from burnin.samplers.blocks import Share
from burnin.samplers.keep import Keeper
from burnin.samplers.run import Progress
from burnin.starts import FromNoise

TRACE_POINTS = 200


@dataclass(frozen=True)
class Sampled:
    """Chains of a model and how they moved, so that they can go on.

    Of several processes each has its share of them; without one, these are all.
    """

    chain: Chain
    result: RunResult
    share: Share | None = None

    @property
    def position(self) -> Tensor:
        """Where they are, (n, dim)."""
        return self.result.state.position

    @property
    def energy(self) -> Tensor:
        """Their energies there, (n,)."""
        return self.result.state.energy


def from_noise(
    model: Model,
    n: int,
    generator: torch.Generator,
    *,
    chain: Chain | None = None,
    noise: FromNoise | None = None,
    progress: Progress | None = None,
) -> Sampled:
    """Short-run samples: n chains from noise, with the sampler and the number of steps of training.

    Where several processes share the model's chains, each gets its own of the n.

    Arguments:
        model: the model.
        n: number of chains.
        generator: their stream.
        chain: another sampler than the model's own.
        noise: another noise than the one of training.
        progress: see `burnin.samplers.run`.
    """
    chain = chain or model.own
    shape = (n, model.data.dim)
    start = model.draw_noise(n, generator) if noise is None else noise.sample(shape, generator)
    state = chain.sampler.init(model.energy, model.ranks.own(start), scale=model.scale)
    share = Share.of(model.ranks, [n])
    return run_on(model, chain, state, chain.num_steps, generator, progress, share=share)


def from_data(
    model: Model,
    n: int,
    num_steps: int,
    generator: torch.Generator,
    *,
    progress: Progress | None = None,
    folder: Path | None = None,
) -> Sampled:
    """n chains that start at fresh data and take `num_steps` plain steps, resumable in a `folder`."""
    start = model.data.sample(n, generator)
    return from_points(model, start, num_steps, generator, progress=progress, folder=folder)


def from_points(
    model: Model,
    start: Tensor,
    num_steps: int,
    generator: torch.Generator,
    *,
    progress: Progress | None = None,
    folder: Path | None = None,
) -> Sampled:
    """Chains that start where they are told, such as at a bank, and take `num_steps` plain steps."""
    state = model.plain.sampler.init(model.energy, start, scale=model.scale)
    return run_on(model, model.plain, state, num_steps, generator, progress, folder=folder)


def go_on(
    model: Model,
    sampled: Sampled,
    num_steps: int,
    generator: torch.Generator,
    *,
    chains: int | None = None,
    keep_every: int | None = None,
    keep: Keeper | None = None,
    progress: Progress | None = None,
    folder: Path | None = None,
) -> Sampled:
    """Long-run samples: takes the (first `chains`) chains `num_steps` further by their own sampler.

    By then an annealed chain has cooled down to T, and a scheduled step size is at its last value.
    `keep_every` and `keep` are those of `burnin.samplers.run`; `folder` is that of `run_resumable`.
    """
    state = sampled.result.state
    if chains is not None:
        state = _first(state, chains)
    return run_on(
        model, sampled.chain, state, num_steps, generator, progress, keep_every, keep, folder, sampled.share
    )


def run_on(
    model: Model,
    chain: Chain,
    state: ChainState,
    num_steps: int,
    generator: torch.Generator,
    progress: Progress | None,
    keep_every: int | None = None,
    keep: Keeper | None = None,
    folder: Path | None = None,
    share: Share | None = None,
) -> Sampled:
    """Takes chains of the model on from `state`, with a trace of their energies."""
    if folder is not None:
        if share is not None:
            raise InputError("chains that are saved in a folder are run by one process; take --devices 1")
        if keep_every is not None:
            raise InputError("chains that are saved in a folder keep no positions; leave keep_every out")
        resumed = run_resumable(
            chain.sampler,
            model.energy,
            state,
            num_steps=num_steps,
            generator=generator,
            folder=folder,
            trace_points=TRACE_POINTS,
            progress=progress,
            engine=model.engine,
        )
        return Sampled(chain, resumed)
    result = run(
        chain.sampler,
        model.energy,
        state,
        num_steps=num_steps,
        generator=generator,
        trace_points=TRACE_POINTS,
        progress=progress,
        keep_every=keep_every,
        keep=keep,
        engine=model.engine,
        share=share,
    )
    return Sampled(chain, result, share)


def _first(state: ChainState, n: int) -> ChainState:
    return replace(
        state,
        position=state.position[:n],
        energy=state.energy[:n],
        gradient=state.gradient[:n],
        alive=state.alive[:n],
        log_weight=state.log_weight[:n],
    )
