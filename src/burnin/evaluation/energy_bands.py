"""Energies along chains: their mean and quantiles by step, beside the level of data."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from burnin.core import ChainState, Report, StepInfo, evaluate
from burnin.evaluation.model import Chain, Model
from burnin.samplers import RunResult, run

POINTS = 100
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BLOCK = 4096


@dataclass(frozen=True)
class EnergyBand:
    """Energies over T of chains, by step.

    Attributes:
        step: of each entry, from 0.
        mean: over the living chains.
        quantiles: one list for each step: the 5%, 25%, 50%, 75% and 95% quantiles.
        ends: the last energies over T of all chains, (n,).
    """

    step: tuple[int, ...]
    mean: tuple[float, ...]
    quantiles: tuple[tuple[float, ...], ...]
    ends: Tensor


@dataclass
class _Recorder:
    temperature: float
    step: list[int] = field(default_factory=list)
    mean: list[float] = field(default_factory=list)
    quantiles: list[tuple[float, ...]] = field(default_factory=list)

    def record(self, step: int, state: ChainState) -> None:
        energy = state.energy[state.alive].double() / self.temperature
        if len(energy) == 0:
            return
        self.step.append(step)
        self.mean.append(energy.mean().item())
        self.quantiles.append(tuple(energy.quantile(energy.new_tensor(QUANTILES)).tolist()))

    def band(self, result: RunResult) -> EnergyBand:
        ends = result.state.energy.double() / self.temperature
        return EnergyBand(tuple(self.step), tuple(self.mean), tuple(self.quantiles), ends)


def energy_bands(
    model: Model, n: int, num_steps: int, streams: dict[str, torch.Generator], report: Report | None = None
) -> dict[str, EnergyBand]:
    """Energies along n chains from noise, by the model's own sampler, and n from data, by its plain one.

    Chains from noise take their own number of steps at least, so that an annealed one ends at T.

    Arguments:
        model: the model.
        n: chains of each kind.
        num_steps: how many steps.
        streams: random streams named "noise" and "data".
        report: told how far it is.
    """
    starts = {
        "from noise": (model.own, model.draw_noise(n, streams["noise"]), streams["noise"]),
        "from data": (model.plain, model.data.sample(n, streams["data"]), streams["data"]),
    }
    found = {}
    for name, (chain, start, generator) in starts.items():
        steps = max(num_steps, chain.num_steps) if name == "from noise" else num_steps
        found[name] = _along(model, chain, start, steps, generator, f"energies of chains {name}", report)
    return found


def _along(
    model: Model,
    chain: Chain,
    start: Tensor,
    num_steps: int,
    generator: torch.Generator,
    what: str,
    report: Report | None,
) -> EnergyBand:
    recorder = _Recorder(model.temperature)
    state = chain.sampler.init(model.energy, start, scale=model.scale)
    recorder.record(0, state)

    def progress(done: int, state: ChainState, _: StepInfo) -> None:
        recorder.record(done, state)
        if report is not None:
            report(what, done, num_steps)

    result = run(
        chain.sampler,
        model.energy,
        state,
        num_steps=num_steps,
        generator=generator,
        progress=progress,
        progress_every=max(1, num_steps // POINTS),
        engine=model.engine,
    )
    return recorder.band(result)


def energies_of(model: Model, x: Tensor) -> Tensor:
    """E/T of rows, (n,), in blocks."""
    with torch.no_grad():
        parts = [evaluate(model.energy, part).double() for part in torch.split(x, BLOCK)]
    return torch.cat(parts) / model.temperature
