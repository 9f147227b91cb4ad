"""Chains of a trained model: short and long, from noise and from data."""

from __future__ import annotations

from dataclasses import replace

import torch

from burnin.core import ChainState
from burnin.evaluation.model import Model
from burnin.samplers import RunResult, run
from burnin.samplers.run import Progress
from burnin.starts import FromNoise

TRACE_POINTS = 200


def from_noise(
    model: Model,
    n: int,
    generator: torch.Generator,
    *,
    noise: FromNoise | None = None,
    progress: Progress | None = None,
) -> RunResult:
    """Short-run samples: n chains from noise, with the sampler and the number of steps of training.

    Arguments:
        model: the model.
        n: number of chains.
        generator: their stream.
        noise: another noise than the one of training.
        progress: see `burnin.samplers.run`.
    """
    start = (noise or model.noise).sample((n, model.data.dim), generator)
    state = model.noise_sampler.init(model.energy, start, scale=model.scale)
    return run(
        model.noise_sampler,
        model.energy,
        state,
        num_steps=model.noise_num_steps,
        generator=generator,
        trace_points=TRACE_POINTS,
        progress=progress,
    )


def go_on(
    model: Model,
    result: RunResult,
    num_steps: int,
    generator: torch.Generator,
    *,
    chains: int | None = None,
    progress: Progress | None = None,
) -> RunResult:
    """Long-run samples: takes the (first `chains`) chains of `from_noise` `num_steps` further, at T.

    The sampler is that of the chains so far; by now its heat is 1 and a scheduled step is at its last.
    """
    state = result.state if chains is None else _first(result.state, chains)
    return run(
        model.noise_sampler,
        model.energy,
        state,
        num_steps=num_steps,
        generator=generator,
        trace_points=TRACE_POINTS,
        progress=progress,
    )


def from_data(
    model: Model, n: int, num_steps: int, generator: torch.Generator, *, progress: Progress | None = None
) -> RunResult:
    """n chains that start at fresh data and take `num_steps` plain steps."""
    state = model.sampler.init(model.energy, model.data.sample(n, generator), scale=model.scale)
    return run(
        model.sampler,
        model.energy,
        state,
        num_steps=num_steps,
        generator=generator,
        trace_points=TRACE_POINTS,
        progress=progress,
    )


def _first(state: ChainState, n: int) -> ChainState:
    return replace(
        state,
        position=state.position[:n],
        energy=state.energy[:n],
        gradient=state.gradient[:n],
        alive=state.alive[:n],
        log_weight=state.log_weight[:n],
    )
