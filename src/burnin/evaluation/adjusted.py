"""Metropolis-adjusted chains of a trained model, whose law is exactly its own (hybrid, section 4.2.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from burnin.core import ChainState, InputError, StepInfo
from burnin.evaluation.bridge import Bridge, MixtureBase
from burnin.evaluation.chains import Sampled, run_on
from burnin.evaluation.likelihood import NUM_LEAPFROG
from burnin.evaluation.model import Chain, Model
from burnin.evaluation.walk import NotReachedError, Walk
from burnin.samplers import MALA, Annealed, Knots, Langevin, Schedule, TargetAcceptance
from burnin.samplers.run import Progress, Trace
from burnin.starts import FromNoise

KEPT = 100
"""Positions kept along each adjusted chain, for its diagnostics."""
MORE = 4
"""Times as many chains walk from a base as are wanted: resampling leaves fewer families."""
MOST_LAWS = 100
"""Between a widened base and the model."""
WINDOWS = 10
"""Parts of an adjusted run whose mean acceptances are held against the target."""
HOTTEST = 8.0
WIDER = 1.5


@dataclass(frozen=True)
class Population:
    """Chains that were resampled on their way, and how many independent ones they are worth."""

    sampled: Sampled
    effective: float


def adjusted_from_data(
    model: Model, n: int, num_steps: int, generator: torch.Generator, *, progress: Progress | None = None
) -> Sampled:
    """n chains from data whose step is adapted to an acceptance of 0.67 in the first third, then frozen.

    The result keeps `KEPT` positions of the other two thirds.
    """
    warm = max(1, num_steps // 3)
    rest = max(1, num_steps - warm)
    sampler = MALA(last_step(model), model.temperature, TargetAcceptance.hybrid_paper(until=warm))
    state = sampler.init(model.energy, model.data.sample(n, generator), scale=model.scale)
    chain = Chain(sampler, num_steps)
    first = run_on(model, chain, state, warm, generator, progress)

    def after_warming(done: int, state: ChainState, info: StepInfo) -> None:
        if progress is not None:
            progress(warm + done, state, info)

    return run_on(model, chain, first.result.state, rest, generator, after_warming, max(1, rest // KEPT))


def adjusted_from_noise(
    model: Model,
    n: int,
    num_steps: int,
    generator: torch.Generator,
    *,
    progress: Progress | None = None,
    folder: Path | None = None,
) -> Sampled:
    """n chains from noise whose step follows an acceptance of 0.67 all along (hybrid, section 4.2.5).

    From noise the chains are on their way for long, and a step that fitted where they were does not fit where
    they come to. The law of such chains is the model's as far as the step has come to rest.
    """
    sampler = MALA(last_step(model), model.temperature, TargetAcceptance.hybrid_paper(until=None))
    state = sampler.init(model.energy, model.draw_noise(n, generator), scale=model.scale)
    return run_on(model, Chain(sampler, num_steps), state, num_steps, generator, progress, folder=folder)


def acceptance_off(sampled: Sampled) -> float:
    """How far the acceptance of chains with an adapted step is from its target at most.

    The largest |mean acceptance - target| of ten equal parts of the run, after a first tenth in which the
    step is found. With rate ρ a mean over m steps is off by |Δ log step| / (ρ m): so it is small where the
    step is nearly at rest, and only there.
    """
    sampler, trace = sampled.chain.sampler, sampled.result.trace
    if not isinstance(sampler, MALA) or sampler.adaptation is None:
        raise InputError("only chains with an adapted step have an acceptance that they hold")
    held = windows(trace, trace.iteration[-1] // 10)
    return max(abs(mean - sampler.adaptation.target) for _, mean in held)


def windows(trace: Trace, after: int = 0) -> list[tuple[int, float]]:
    """The last step and the mean acceptance of each of ten equal parts of a trace beyond step `after`.

    Example:
        >>> trace = Trace(iteration=list(range(1, 41)), acceptance=[1.0] * 20 + [0.5, 0.7] * 10)
        >>> [(step, round(mean, 2)) for step, mean in windows(trace, after=20)][:2]
        [(22, 0.6), (24, 0.6)]
    """
    kept = [(at, value) for at, value in zip(trace.iteration, trace.acceptance, strict=True) if at > after]
    if len(kept) < WINDOWS:
        raise InputError(f"{len(kept)} points follow step {after}; at least {WINDOWS} are needed: run longer")
    edges = [i * len(kept) // WINDOWS for i in range(WINDOWS + 1)]
    parts = [kept[low:high] for low, high in pairwise(edges)]
    return [(part[-1][0], sum(value for _, value in part) / len(part)) for part in parts]


def cooled_from_afar(
    model: Model,
    data: Tensor,
    n: int,
    num_steps: int,
    generator: torch.Generator,
    *,
    progress: Progress | None = None,
) -> Population:
    """A population that may end wherever the density has mass, masses of its modes included.

    n chains from Gaussian noise half again as wide as the data, at 8 T for a fifth of the steps, cooled to T
    until four fifths, with Metropolis adjustment and resampling by the annealing weights (`Annealed`). Where
    the model corrects a mixture, the chains come from that, its Gaussians made wider: a mixture of narrow and
    wide ones has other masses at other temperatures, which cooling would have to undo, and cannot in many
    dimensions. They go from law to law on the straight way between the two log-densities. A Gaussian that is
    w times as wide is log w - ½ + ½/w² ≈ (log w)² nats away in each dimension. Each nat costs a population
    more than half of its families, and so its shares of many Gaussians: w = exp(½/sqrt(dim)), a quarter of a
    nat in all.
    """
    if model.base is not None:
        return _walked_from_afar(model, model.base, n, num_steps, generator, progress)
    matched = FromNoise.matched(data)
    spread = matched.scale if isinstance(matched.scale, tuple) else (matched.scale,)
    noise = FromNoise("gaussian", tuple(WIDER * value for value in spread), matched.shift)
    heat = Knots(((num_steps // 5, HOTTEST), (4 * num_steps // 5, 1.0)))
    inner = MALA(last_step(model), model.temperature, TargetAcceptance.hybrid_paper(until=num_steps))
    sampler = Annealed(inner, heat, 0.5)
    start = noise.sample((n, model.data.dim), generator)
    state = sampler.init(model.energy, start, scale=model.scale)
    return Population(run_on(model, Chain(sampler, num_steps), state, num_steps, generator, progress), n)


def _walked_from_afar(
    model: Model,
    base: MixtureBase,
    n: int,
    num_steps: int,
    generator: torch.Generator,
    progress: Progress | None,
) -> Population:
    wider = math.exp(0.5 / math.sqrt(model.data.dim))
    wide = MixtureBase(base.log_weights, base.means, wider * base.factors)
    walk = Walk(Bridge(model.energy, model.temperature, wide, 0.0), NUM_LEAPFROG, generator, lambda *_: None)
    try:
        pilot = walk.pilot(MORE * n, MOST_LAWS)
        kept = torch.randperm(MORE * n, generator=generator)[:n]
        position, sizes = pilot.ends[kept], pilot.family[kept].bincount().double()
        effective = n**2 / sizes.square().sum().item()
    except NotReachedError:
        # Nothing leads to the model's law from there: what is left at the start is judged, and is not there.
        position, effective = wide.sample(n, generator), float(n)
    sampler = MALA(last_step(model), model.temperature, TargetAcceptance.hybrid_paper(until=num_steps))
    state = sampler.init(model.energy, position, scale=model.scale)
    ended = run_on(model, Chain(sampler, num_steps), state, num_steps, generator, progress)
    return Population(ended, effective)


def last_step(model: Model) -> float:
    """The step that the model's plain chain ends with: where the adaptation begins."""
    chain = model.plain
    inner = chain.sampler.inner if isinstance(chain.sampler, Annealed) else chain.sampler
    size = getattr(inner, "step_size", None)
    if isinstance(size, int | float):
        return float(size)
    if isinstance(inner, Langevin) and isinstance(size, Schedule):
        return size.at(chain.num_steps)
    start = model.draw_noise(64, torch.Generator().manual_seed(0))
    return float(chain.sampler.init(model.energy, start, scale=model.scale).step_size)
