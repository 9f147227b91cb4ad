"""One judgement of a trained model: density, samples, long-run chains, verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from burnin.core import Density, Report, evaluate
from burnin.data import EncodedRows, Rings, Table, clean
from burnin.diagnostics import mixing, rank_correlation
from burnin.evaluation import chains
from burnin.evaluation.adjusted import adjusted_from_data, cooled_from_afar
from burnin.evaluation.chains import Sampled
from burnin.evaluation.distance import DistanceScale, energy_distance
from burnin.evaluation.grid import PlaneGrid, grid_kl
from burnin.evaluation.likelihood import Likelihood, likelihood
from burnin.evaluation.long_runs import forget
from burnin.evaluation.model import Chain, Model
from burnin.evaluation.verdict import Evidence, Seen, Verdict, judge
from burnin.rng import Streams
from burnin.starts import FromNoise

MOMENT_SAMPLES = 20_000
FEWEST = 100
LONG_CHAINS = ("long-chains-from-noise", "long-chains-from-data")
"""Folders, in a run's own, of chains that were not at their end yet."""
MOST_DIMENSIONS = 100
"""Up to which a likelihood is estimated: the number of laws on the way grows with the dimension's square."""


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
    cooling_steps: int = 1000
    likelihood_particles: int = 256
    fresh: int = MOMENT_SAMPLES

    def for_data(self, data: Density) -> Effort:
        """No more samples and chains than a table has rows, 100 at least.

        What chance gives is measured between data sets that are drawn from the rows; it must not be less than
        the chance by which these rows are not others.
        """
        rows = clean(data)
        if not isinstance(rows, Table | EncodedRows):
            return self
        most = max(FEWEST, len(rows))
        sizes = ("samples", "long_chains", "data_chains", "fresh")
        return replace(self, **{name: min(getattr(self, name), most) for name in sizes})


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

    def apart(self, long: Tensor, data: Tensor) -> float:
        """The distance between long chains and chains from data, in units of what chance gives two such sets.

        Both units are percentiles of distances to a reference of `many`'s size; they scale as the sum of
        the inverse sizes.
        """
        if not bool(torch.isfinite(long).all() and torch.isfinite(data).all()):
            return math.inf
        reference = len(self.long.reference)
        unit = self.long.unit * (1 / len(long) + 1 / len(data)) / (1 / len(long) + 1 / reference)
        return energy_distance(long, data) / unit


@dataclass(frozen=True)
class Assessment:
    """What was measured. Distances are in units of what chance alone gives (1 is perfect).

    Attributes:
        samples: short-run samples from noise, by the model's own chain.
        sample_distance: theirs.
        plain, annealed: distances of samples from noise by either chain of training.
        matched: distance of samples from noise with the data's mean and variances, own chain.
        long_run: distance of the first chains of `samples` after `long_steps` further steps.
        data_run: distance of chains from data after `data_steps` steps.
        grid: the plane on which the density was compared, where the truth is known there.
        log_truth, log_model: log-densities on it.
        data_energy: mean energy of fresh data.
        long_sampled, data_sampled: the long chains themselves.
        stayed, anywhere: adjusted chains from data, and the population cooled from afar.
        energies: energies of fresh data and of each kind of chains at their ends, for a picture.
        evidence: all that the verdict rests on.
        verdict: the sentence and the answers.
    """

    samples: Sampled
    sample_distance: float
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
    stayed: Sampled
    anywhere: Sampled
    energies: dict[str, Tensor]
    evidence: Evidence
    verdict: Verdict

    @property
    def density_kl(self) -> float | None:
        """KL(true ‖ model) on the grid."""
        if self.log_truth is None or self.log_model is None:
            return None
        return grid_kl(self.log_truth, self.log_model)


def assess(
    model: Model,
    effort: Effort,
    units: Units,
    streams: Streams,
    report: Report,
    folder: Path | None = None,
) -> Assessment:
    """Runs the chains, measures the distances and gives the verdict.

    The long chains are saved on the way in `folder`, where one is given, and go on from there next time.
    """

    def sample(what: str, name: str, chain: Chain, noise: FromNoise | None = None) -> Sampled:
        return chains.from_noise(
            model,
            effort.samples,
            streams[name],
            chain=chain,
            noise=noise,
            progress=lambda done, *_: report(what, done, chain.num_steps),
        )

    fresh = model.data.sample(effort.fresh, streams["fresh"])
    own = sample("samples from noise", "samples", model.own)
    distances = {model.own: units.many.distance(own.position)}
    for chain, name in ((model.plain, "other"), (model.annealed, "other")):
        if chain not in distances:
            sampled = sample("samples by the other chain", name, chain)
            distances[chain] = units.many.distance(sampled.position)
    matched = sample("samples from matched noise", "matched", model.own, FromNoise.matched(fresh))
    long = chains.go_on(
        model,
        own,
        effort.long_steps,
        streams["long"],
        chains=effort.long_chains,
        progress=lambda done, *_: report("long chains from noise", done, effort.long_steps),
        folder=None if folder is None else folder / LONG_CHAINS[0],
    )
    data = chains.from_data(
        model,
        effort.data_chains,
        effort.data_steps,
        streams["data-run"],
        progress=lambda done, *_: report("chains from data", done, effort.data_steps),
        folder=None if folder is None else folder / LONG_CHAINS[1],
    )
    grid = plane_of(model.data, fresh, effort.grid_points)
    log_truth = log_model = None
    if grid is not None and model.truth is not None:
        log_truth = grid.log_truth(model.truth)
        log_model = grid.log_density(model.energy, model.temperature)
    long_run, data_run = units.long.distance(long.position), units.data.distance(data.position)
    kl = grid_kl(log_truth, log_model) if log_truth is not None and log_model is not None else None
    stayed = adjusted_from_data(
        model,
        effort.data_chains,
        max(1, effort.data_steps // 2),
        streams["adjusted"],
        progress=lambda done, *_: report("adjusted chains from data", done, max(1, effort.data_steps // 2)),
    )
    population = cooled_from_afar(
        model,
        fresh,
        effort.long_chains,
        effort.cooling_steps,
        streams["anywhere"],
        progress=lambda done, *_: report("chains cooled from afar", done, effort.cooling_steps),
    )
    anywhere = population.sampled
    with torch.no_grad():
        of_data = evaluate(model.energy, fresh)
    along = _energies_along(model, stayed)
    found = mixing(along)
    ends = {"data": of_data, "short chains": own.energy, "long chains": long.energy}
    ends |= {"adjusted, from data": stayed.energy, "cooled from afar": anywhere.energy}
    evidence = Evidence(
        short=Seen(distances[model.own], energy_gap(own.energy, of_data)),
        long=Seen(long_run, energy_gap(long.energy, of_data)),
        stayed=Seen(units.data.distance(stayed.position), energy_gap(stayed.energy, of_data)),
        anywhere=Seen(
            units.long.distance(anywhere.position, population.effective), energy_gap(anywhere.energy, of_data)
        ),
        apart=units.apart(long.position, data.position),
        drift=_drift(long, of_data),
        acceptance=stayed.result.acceptance,
        memory=rank_correlation(along[0], along[-1]) if len(along) > 1 else 1.0,
        ess=found.ess,
        rhat=found.rhat,
        density_kl=kl,
        log_likelihood=_likelihood(model, grid, fresh, effort, streams, report),
        long_steps=effort.long_steps,
        stayed_steps=max(1, effort.data_steps // 2),
    )
    if folder is not None:
        for name in LONG_CHAINS:
            forget(folder / name)
    return Assessment(
        samples=own,
        sample_distance=distances[model.own],
        plain=distances[model.plain],
        annealed=distances[model.annealed],
        matched=units.many.distance(matched.position),
        long_run=long_run,
        data_run=data_run,
        grid=grid,
        log_truth=log_truth,
        log_model=log_model,
        data_energy=of_data.mean().item(),
        long_sampled=long,
        data_sampled=data,
        stayed=stayed,
        anywhere=anywhere,
        energies=ends,
        evidence=evidence,
        verdict=judge(evidence),
    )


def _likelihood(
    model: Model, grid: PlaneGrid | None, fresh: Tensor, effort: Effort, streams: Streams, report: Report
) -> Likelihood | None:
    """By the grid in the plane, by annealed importance sampling beyond; None where it would take too long."""
    if len(fresh) < MOMENT_SAMPLES:  # few rows: each with more of its noise
        fresh = model.data.sample(MOMENT_SAMPLES, streams["fresh"])
    energy, temperature = model.energy, model.temperature
    if grid is not None and grid.dim == 2:
        value = grid.log_likelihood(energy, temperature, fresh)
        return Likelihood(value, value, value, "a grid")
    if effort.likelihood_particles == 0 or model.data.dim > MOST_DIMENSIONS:
        return None
    return likelihood(
        energy,
        temperature,
        fresh,
        particles=effort.likelihood_particles,
        generator=streams["likelihood"],
        base=model.base,
        report=report,
    )


def energy_gap(chains: Tensor, data: Tensor) -> float:
    """Largest difference of the two distribution functions, less what chance gives 19 times in 20.

    The Kolmogorov-Smirnov statistic; its 95th percentile for equal laws is 1.358·sqrt(1/n + 1/m). Energies
    that are not finite count as infinitely far.

    Example:
        >>> import torch
        >>> energy_gap(torch.zeros(1000), torch.ones(1000)) > 0.9
        True
    """
    if not bool(torch.isfinite(chains).all()):
        return 1.0
    both, order = torch.cat([chains, data]).sort()
    from_chains = (order < len(chains)).double()
    ahead = from_chains.cumsum(0) / len(chains) - (1 - from_chains).cumsum(0) / len(data)
    last_of_its_value = torch.cat([both[1:] != both[:-1], torch.ones(1, dtype=torch.bool)])
    statistic = ahead[last_of_its_value].abs().max().item()
    return statistic - 1.358 * math.sqrt(1 / len(chains) + 1 / len(data))


def _energies_along(model: Model, sampled: Sampled) -> Tensor:
    kept = sampled.result.kept
    assert kept is not None
    with torch.no_grad():
        return torch.stack([evaluate(model.energy, positions) for positions in kept])


def _drift(long: Sampled, of_data: Tensor) -> float:
    """Mean energy in the last quarter of the long run less that of the quarter before, in data's spreads."""
    trace = torch.tensor(long.result.trace.energy, dtype=torch.float64)
    quarter = max(1, len(trace) // 4)
    moved = trace[-quarter:].mean() - trace[-2 * quarter : -quarter or None].mean()
    return (moved / of_data.double().std().clamp(min=1e-30)).item()


def plane_of(density: Density, data: Tensor, points: int) -> PlaneGrid | None:
    """The plane on which truth and model are compared: of 2-D data, and of the rings, whose density has
    its structure in the first two coordinates; None for other data, whose density cannot be seen so."""
    if isinstance(density, Rings):
        return PlaneGrid(max(density.radii) + 1.0, points, density.dim)
    if density.dim == 2:
        return PlaneGrid(1.15 * data.abs().max().item(), points, 2)
    return None
