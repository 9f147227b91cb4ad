"""One judgement of a trained model: density, samples, long-run chains, verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import Density, evaluate
from burnin.data import Rings
from burnin.evaluation import chains
from burnin.evaluation.chains import Sampled
from burnin.evaluation.distance import DistanceScale
from burnin.evaluation.grid import PlaneGrid, grid_kl
from burnin.evaluation.model import Chain, Model
from burnin.evaluation.verdict import Evidence, Verdict, judge
from burnin.rng import Streams
from burnin.starts import FromNoise

MOMENT_SAMPLES = 20_000
Report = Callable[[str, int, int], None]
"""Called with what is going on, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class Effort:
    """How much is spent on a judgement: numbers of samples, chains and steps."""

    samples: int
    distance_sets: int
    long_chains: int
    long_steps: int
    data_chains: int
    data_steps: int
    grid_points: int


@dataclass(frozen=True)
class Units:
    """The distances that chance alone gives, for the sample sizes of an `Effort`; costly, so shared."""

    many: DistanceScale
    long: DistanceScale
    data: DistanceScale

    @classmethod
    def fit(cls, model: Model, effort: Effort, streams: Streams, report: Report) -> Units:
        """Draws fresh data sets and measures the distances between them."""
        sizes = (effort.samples, effort.long_chains, effort.data_chains)
        done, total = 0, len(set(sizes)) * effort.distance_sets**2
        fitted: dict[int, DistanceScale] = {}

        def tick() -> None:
            nonlocal done
            done += 1
            report("distances between data sets", done, total)

        for size in sizes:
            if size not in fitted:
                fitted[size] = DistanceScale.fit(
                    model.data,
                    size,
                    effort.samples,
                    streams[f"null-{size}"],
                    num_sets=effort.distance_sets,
                    progress=tick,
                )
        return cls(*(fitted[size] for size in sizes))


@dataclass(frozen=True)
class Assessment:
    """What was measured. Distances are in units of what chance alone gives (1 is perfect).

    Attributes:
        samples: short-run samples from noise, by the model's own chain.
        plain, annealed: distances of samples from noise by either chain.
        matched: distance of samples from noise with the data's mean and variances, own chain.
        long_run: distance of the first chains of `samples` after `long_steps` further steps.
        data_run: distance of chains from data after `data_steps` steps.
        grid: the plane on which the density was compared, where the truth is known there.
        log_truth, log_model: log-densities on it.
        data_energy: mean energy of fresh data.
        long_sampled, data_sampled: the long chains themselves.
        verdict: the three answers.
    """

    samples: Sampled
    plain: float
    annealed: float
    matched: float
    long_run: float
    data_run: float
    grid: PlaneGrid | None
    log_truth: Tensor | None
    log_model: Tensor | None
    data_energy: float
    long_sampled: Sampled
    data_sampled: Sampled
    verdict: Verdict

    def sample_distance(self, model: Model) -> float:
        """The distance of samples from noise by the model's own chain."""
        return self.annealed if model.trained_from_noise else self.plain

    @property
    def density_kl(self) -> float | None:
        """KL(true ‖ model) on the grid."""
        if self.log_truth is None or self.log_model is None:
            return None
        return grid_kl(self.log_truth, self.log_model)


def assess(model: Model, effort: Effort, units: Units, streams: Streams, report: Report) -> Assessment:
    """Runs the chains, measures the distances and gives the verdict."""

    def sample(what: str, name: str, chain: Chain, noise: FromNoise | None = None) -> Sampled:
        return chains.from_noise(
            model,
            effort.samples,
            streams[name],
            chain=chain,
            noise=noise,
            progress=lambda done, *_: report(what, done, chain.num_steps),
        )

    fresh = model.data.sample(MOMENT_SAMPLES, streams["fresh"])
    own = sample("samples from noise", "samples", model.own)
    own_distance = units.many.distance(own.position)
    other = own_distance
    if model.plain != model.annealed:
        chain = model.plain if model.trained_from_noise else model.annealed
        other = units.many.distance(sample("samples by the other chain", "other", chain).position)
    matched = sample("samples from matched noise", "matched", model.own, FromNoise.matched(fresh))
    long = chains.go_on(
        model,
        own,
        effort.long_steps,
        streams["long"],
        chains=effort.long_chains,
        progress=lambda done, *_: report("long chains from noise", done, effort.long_steps),
    )
    data = chains.from_data(
        model,
        effort.data_chains,
        effort.data_steps,
        streams["data-run"],
        progress=lambda done, *_: report("chains from data", done, effort.data_steps),
    )
    grid = plane_of(model.data, fresh, effort.grid_points)
    log_truth = log_model = None
    if grid is not None and model.truth is not None:
        log_truth = grid.log_truth(model.truth)
        log_model = grid.log_density(model.energy, model.temperature)
    long_run, data_run = units.long.distance(long.position), units.data.distance(data.position)
    kl = grid_kl(log_truth, log_model) if log_truth is not None and log_model is not None else None
    with torch.no_grad():
        data_energy = evaluate(model.energy, fresh).mean().item()
    return Assessment(
        samples=own,
        plain=other if model.trained_from_noise else own_distance,
        annealed=own_distance if model.trained_from_noise else other,
        matched=units.many.distance(matched.position),
        long_run=long_run,
        data_run=data_run,
        grid=grid,
        log_truth=log_truth,
        log_model=log_model,
        data_energy=data_energy,
        long_sampled=long,
        data_sampled=data,
        verdict=judge(Evidence(own_distance, long_run, data_run, kl, effort.long_steps)),
    )


def plane_of(density: Density, data: Tensor, points: int) -> PlaneGrid | None:
    """The plane on which truth and model are compared: of 2-D data, and of the rings, whose density has
    its structure in the first two coordinates; None for other data, whose density cannot be seen so."""
    if isinstance(density, Rings):
        return PlaneGrid(max(density.radii) + 1.0, points, density.dim)
    if density.dim == 2:
        return PlaneGrid(1.15 * data.abs().max().item(), points, 2)
    return None
