"""A judgement gives the truth its due and catches models that only seem right."""

from __future__ import annotations

import math
import os
import signal
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from burnin.core import KnownDensity
from burnin.data import GaussianMixture, NoisyDensity, Rings, Table, eight_gaussians, make_density
from burnin.energies import FromLogProb
from burnin.evaluation.assess import Assessment, Effort, Units, assess, plane_of
from burnin.evaluation.model import Chain, Model
from burnin.evaluation.verdict import Standing
from burnin.rng import Streams
from burnin.samplers import Annealed, Knots, Langevin
from burnin.starts import FromNoise

T = 0.5
EFFORT = Effort(
    samples=400,
    distance_sets=6,
    long_chains=200,
    long_steps=150,
    data_chains=150,
    data_steps=150,
    grid_points=61,
    cooling_steps=300,
)


class Known(nn.Module):
    """E = -T·log p, with an error on top."""

    def __init__(self, density: KnownDensity, *, tilt: float = 0.0) -> None:
        super().__init__()
        self.energy = FromLogProb(density.log_prob, T)
        self.tilt = tilt

    def forward(self, x: Tensor) -> Tensor:
        return self.energy(x) + self.tilt * x[:, 0]


def model_of(density: KnownDensity, energy: nn.Module, *, num_steps: int = 300) -> Model:
    plain = Langevin(0.02 / T, T)
    heated = Annealed(
        Langevin(Knots(((0, 0.2 / T), (num_steps, 0.02 / T))), T),
        Knots(((0, 10.0), (num_steps // 2, 1.0))),
        0.5,
    )
    return Model(
        energy=energy,
        temperature=T,
        data=density,
        noise=FromNoise(scale=3.0),
        plain=Chain(plain, num_steps),
        annealed=Chain(heated, num_steps),
        trained_from_noise=True,
        scale=None,
        scheme="truth",
        num_updates=0,
    )


def judged(model: Model, effort: Effort = EFFORT, seed: int = 0) -> Assessment:
    streams = Streams(seed)

    def silent(what: str, done: int, total: int) -> None:
        assert done <= total

    return assess(model, effort, Units.fit(model, effort, streams, silent), streams, silent)


def test_an_interrupted_judgement_goes_on_with_its_long_chains(tmp_path: Path) -> None:
    model = model_of(wide_mixture(), Known(wide_mixture()), num_steps=50)
    effort = replace(EFFORT, samples=100, long_chains=50, data_chains=50, cooling_steps=50)
    units = Units.fit(model, effort, Streams(0), lambda *_: None)
    seen: list[int] = []

    def press(what: str, done: int, total: int) -> None:
        if what == "long chains from noise" and done == 50:
            os.kill(os.getpid(), signal.SIGINT)

    def note(what: str, done: int, total: int) -> None:
        if what == "long chains from noise":
            seen.append(done)

    with pytest.raises(KeyboardInterrupt):
        assess(model, effort, units, Streams(0), press, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["long-chains-from-noise"]
    resumed = assess(model, effort, units, Streams(0), note, tmp_path)
    assert seen[0] == 51
    assert list(tmp_path.iterdir()) == []
    whole = assess(model, effort, units, Streams(0), lambda *_: None)
    assert torch.equal(resumed.long_sampled.position, whole.long_sampled.position)
    assert resumed.long_sampled.result.trace == whole.long_sampled.result.trace
    assert resumed.evidence == whole.evidence


def wide_mixture() -> GaussianMixture:
    return eight_gaussians()


def test_the_truth_is_a_generator_a_density_and_fits() -> None:
    density = wide_mixture()
    result = judged(model_of(density, Known(density)))
    assert result.verdict.generator
    assert result.verdict.density
    assert result.verdict.fits
    assert result.density_kl is not None
    assert abs(result.density_kl) < 1e-6
    assert max(result.annealed, result.long_run, result.data_run) < 5
    assert result.data_run < 3  # chains from data are at the law from the first step


def test_a_wrong_energy_does_not_fit_though_chains_from_data_look_right() -> None:
    """A tilt moves mass between modes that short chains do not cross."""
    density = wide_mixture()
    model = model_of(density, Known(density, tilt=1.0))
    result = judged(model)
    assert result.verdict.fits is False
    assert "NO" in result.verdict.lines[4]
    log_truth, log_model = result.log_truth, result.log_model
    assert log_truth is not None
    assert log_model is not None
    assert result.density_kl is not None
    # KL(p ‖ p·exp(-x/T)/Z) = ⟨x⟩/T + log Z, on the grid itself
    assert result.grid is not None
    tilt = -result.grid.positions()[:, 0].double() / T
    expected = (log_truth + tilt).logsumexp(0) - (log_truth.exp() * tilt).sum()
    assert result.density_kl == pytest.approx(expected.item(), rel=1e-3)


def test_an_energy_that_samples_leave_is_no_density() -> None:
    class Flat(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return 1e-3 * x.square().sum(1)

    density = wide_mixture()
    result = judged(model_of(density, Flat()))
    assert not result.verdict.density
    assert result.verdict.fits is False
    assert result.long_run > 5
    assert result.data_run > 5


PATIENT = replace(EFFORT, long_steps=600, data_steps=600)


def test_the_truth_is_called_a_density_and_a_generator() -> None:
    density = wide_mixture()
    result = judged(model_of(density, Known(density)), PATIENT)
    assert result.verdict.standing is Standing.BOTH
    assert result.evidence.log_likelihood is not None
    # -E/T is the true log-density: its mean over 20,000 draws, the normaliser 0 up to the grid's cells.
    fresh = density.sample(20_000, Streams(9)["fresh"])
    wanted = density.log_prob(fresh)
    found = result.evidence.log_likelihood.value
    assert abs(found - wanted.mean().item()) < 6 * wanted.std().item() / 20_000**0.5


def test_a_sampler_whose_samples_leave_is_called_a_generator_only() -> None:
    """Noise that is the data, and an energy that holds nothing there: no step spoils the short chains."""
    density = GaussianMixture(((0.0, 0.0),), sd=1.0, weights=(1.0,))

    class Trough(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return -0.05 * x.square().sum(1) + 1e-4 * x.square().sum(1).square()

    model = model_of(density, Trough())
    still = Chain(Langevin(1e-3, T), 1)
    moving = Langevin(0.2, T)
    model = replace(model, noise=FromNoise(), plain=Chain(moving, 1), annealed=still, trained_from_noise=True)
    result = judged(model, replace(PATIENT, long_steps=3000))
    assert result.verdict.standing is Standing.GENERATOR


def test_a_density_that_noise_does_not_reach_is_one_near_the_data_only() -> None:
    density = GaussianMixture(((0.0, 0.0),), sd=0.5, weights=(1.0,))
    model = model_of(density, Known(density), num_steps=10)
    plain = Chain(Langevin(0.02, T), 10)
    model = replace(model, noise=FromNoise(scale=0.1, shift=(6.0, 0.0)), plain=plain, annealed=plain)
    assert judged(model, PATIENT).verdict.standing is Standing.NEAR_DATA


def test_chains_that_hardly_move_decide_nothing() -> None:
    density = GaussianMixture(((0.0, 0.0),), sd=0.5, weights=(1.0,))
    model = model_of(density, Known(density), num_steps=10)
    frozen = Chain(Langevin(1e-9, T), 10)
    model = replace(model, noise=FromNoise(scale=0.5), plain=frozen, annealed=frozen)
    assert judged(model, replace(EFFORT, data_steps=30)).verdict.standing is Standing.UNDECIDED


def test_the_same_seed_gives_the_same_judgement() -> None:
    density = wide_mixture()
    small = Effort(50, 5, 40, 20, 40, 20, 21, 20, 8)
    first, second = (judged(model_of(density, Known(density), num_steps=20), small) for _ in range(2))
    assert first.verdict == second.verdict
    assert first.plain == second.plain
    assert torch.equal(first.samples.position, second.samples.position)


def test_long_chains_go_on_from_the_short_ones() -> None:
    density = wide_mixture()
    effort = Effort(60, 5, 25, 30, 20, 10, 21, 20, 8)
    result = judged(model_of(density, Known(density), num_steps=40), effort)
    assert len(result.samples.position) == 60
    assert result.long_sampled.result.state.iteration == 40 + 30
    assert len(result.long_sampled.position) == 25
    assert result.data_sampled.result.state.iteration == 10


def test_progress_is_told_to_the_end_of_every_stage() -> None:
    density = wide_mixture()
    effort = Effort(50, 5, 40, 20, 40, 20, 21, 20, 8)
    told: dict[str, list[tuple[int, int]]] = defaultdict(list)

    def report(what: str, done: int, total: int) -> None:
        told[what].append((done, total))

    model, streams = model_of(density, Known(density), num_steps=20), Streams(0)
    assess(model, effort, Units.fit(model, effort, streams, report), streams, report)
    assert len(told) == 8
    for what, pairs in told.items():
        assert pairs[-1][0] == pairs[-1][1], what


def test_without_a_known_density_the_fit_is_unknown() -> None:
    moons = make_density("moons")
    known = Known(wide_mixture())
    model = model_of(wide_mixture(), known, num_steps=10)
    result = judged(Model(**{**vars(model), "data": moons}), Effort(50, 5, 40, 10, 40, 10, 21, 20, 8))
    assert result.density_kl is None
    assert result.verdict.fits is None
    assert "unknown" in result.verdict.lines[4]


def test_the_plane_of_each_kind_of_data() -> None:
    x = torch.tensor([[1.0, -2.0], [0.5, 1.0]])
    rings = plane_of(Rings.paper(), torch.zeros(3, 10), 11)
    assert rings is not None
    assert (rings.half_width, rings.points, rings.dim) == (4.0, 11, 10)
    toy = plane_of(wide_mixture(), x, 11)
    assert toy is not None
    assert math.isclose(toy.half_width, 2.3, rel_tol=1e-6)
    table = make_density("moons")
    assert plane_of(table, x, 11) is not None


def test_no_more_is_drawn_than_a_table_has_rows() -> None:
    stream = torch.Generator().manual_seed(0)
    many, some, few = (Table(torch.randn(n, 2, generator=stream), ("a", "b")) for n in (30_000, 300, 20))
    effort = Effort(2000, 5, 500, 20, 400, 20, 21)
    assert effort.for_data(many) == effort
    small = effort.for_data(some)
    assert (small.samples, small.long_chains, small.data_chains, small.fresh) == (300, 300, 300, 300)
    assert effort.for_data(NoisyDensity(few, 0.1)).samples == 100
    assert effort.for_data(make_density("moons")) == effort
