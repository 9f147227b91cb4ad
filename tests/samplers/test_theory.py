"""Samplers against theory: moments, mode shares, the bias of a step, target acceptance, annealing.

Chains are independent of each other, so every standard error here is taken over chains (or over whole
populations, where resampling ties the chains together) from each chain's average over time. Seeds are
fixed. Bounds are 5 standard errors: p = 6e-7 for one comparison, 4e-5 for the 65 of a test.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
from scipy import linalg, stats
from torch import Tensor

from burnin.core import ChainState, Energy, Sampler
from burnin.energies import FromLogProb, GaussianEnergy
from burnin.rng import Streams
from burnin.samplers import HMC, MALA, Annealed, Knots, Langevin, TargetAcceptance, run
from burnin.samplers.annealed import effective_number, systematic_resample
from burnin.samplers.blocks import draw_block

BOUND = 5.0


class Estimate(NamedTuple):
    """Means over independent items and their standard errors."""

    value: Tensor
    error: Tensor

    def z(self, expected: Tensor | float) -> Tensor:
        return (self.value - expected) / self.error

    def agrees(self, expected: Tensor | float) -> bool:
        return bool((self.z(expected).abs() < BOUND).all())


def over_items(values: Tensor) -> Estimate:
    """Mean and standard error over the first axis, whose items are independent."""
    return Estimate(values.mean(0), values.std(0) / len(values) ** 0.5)


def chains(
    sampler: Sampler,
    energy: Energy,
    position: Tensor,
    generator: torch.Generator,
    *,
    burn_in: int,
    keeps: int,
    keep_every: int,
    scale: Tensor | None = None,
) -> Tensor:
    """Positions kept after the burn-in, (n, keeps, d)."""
    state = sampler.init(energy, position, scale=scale)
    state = run(sampler, energy, state, num_steps=burn_in, generator=generator).state
    steps = keeps * keep_every
    kept = run(sampler, energy, state, num_steps=steps, generator=generator, keep_every=keep_every).kept
    assert kept is not None
    return kept.transpose(0, 1)


# --- Moments of a correlated Gaussian in 10 dimensions -----------------------------------------------

DIM = 10


def correlated_gaussian() -> GaussianEnergy:
    """Precision with eigenvalues from 0.5 to 2.5, turned at random; mean away from 0."""
    stream = Streams(0)["gaussian"]
    turn = torch.linalg.qr(torch.randn(DIM, DIM, generator=stream, dtype=torch.float64))[0]
    values = torch.linspace(0.5, 2.5, DIM, dtype=torch.float64)
    mean = torch.randn(DIM, generator=stream, dtype=torch.float64)
    return GaussianEnergy(mean, turn @ torch.diag(values) @ turn.T)


def langevin_covariance(precision: Tensor, step: float, temperature: float, scale: Tensor) -> Tensor:
    """Σ = A Σ Aᵀ + 2·step·T·S with A = I - step·S·Λ: where the chain's own recursion comes to rest."""
    a = torch.eye(len(precision), dtype=torch.float64) - step * torch.diag(scale) @ precision
    noise = 2 * step * temperature * torch.diag(scale)
    return torch.as_tensor(linalg.solve_discrete_lyapunov(a.numpy(), noise.numpy()))


SETTINGS = [(1.0, False), (0.4, True)]


@pytest.mark.parametrize(("temperature", "scaled"), SETTINGS)
@pytest.mark.parametrize("kind", ["langevin", "mala", "hmc"])
def test_moments_of_a_correlated_gaussian(kind: str, temperature: float, scaled: bool) -> None:
    energy = correlated_gaussian()
    scale = torch.linspace(0.6, 1.4, DIM, dtype=torch.float64) if scaled else None
    samplers: dict[str, Sampler] = {
        "langevin": Langevin(0.1, temperature),
        "mala": MALA(0.2, temperature),
        "hmc": HMC(0.35, 4, temperature),
    }
    if kind == "langevin":
        ones = torch.ones(DIM, dtype=torch.float64)
        covariance = langevin_covariance(energy.precision, 0.1, temperature, ones if scale is None else scale)
    else:
        covariance = temperature * torch.linalg.inv(energy.precision)
    stream = Streams(1)[f"{kind} {temperature} {scaled}"]
    # Far from the truth at first: centred elsewhere, uncorrelated, too wide.
    x = 2 * torch.randn(2000, DIM, generator=stream, dtype=torch.float64) + energy.mean + 1
    burn_in = 60 if kind == "hmc" else 300  # the slowest direction shrinks by 0.95 or less each step
    kept = chains(samplers[kind], energy, x, stream, burn_in=burn_in, keeps=8, keep_every=15, scale=scale)
    z = kept - energy.mean
    mean = over_items(z.mean(1))
    second = over_items(torch.einsum("nki,nkj->nij", z, z) / z.shape[1])
    assert float(second.error.max()) < 0.02 * float(covariance.diagonal().max()), "the test has teeth"
    assert mean.agrees(0.0)
    upper = torch.triu(torch.ones(DIM, DIM, dtype=torch.bool))
    assert float(second.z(covariance)[upper].abs().max()) < BOUND


# --- The bias of a step, and the Metropolis check that removes it -------------------------------------

CURVATURE = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
STEP = 0.4


def separable(x: Tensor) -> Tensor:
    return 0.5 * (CURVATURE * x.square()).sum(1)


@pytest.mark.parametrize("temperature", [1.0, 0.3])
@pytest.mark.parametrize("scale", [None, (1.6, 1.0, 0.5)])
def test_metropolis_removes_the_bias_that_langevin_has(
    temperature: float, scale: tuple[float, ...] | None
) -> None:
    """Langevin rests at T/(λ(1 - step·s·λ/2)); MALA and HMC, with the same proposal's step, at T/λ."""
    s = torch.ones(3, dtype=torch.float64) if scale is None else torch.tensor(scale, dtype=torch.float64)
    exact = temperature / CURVATURE
    biased = exact / (1 - STEP * s * CURVATURE / 2)
    samplers: dict[str, Sampler] = {
        "langevin": Langevin(STEP, temperature),
        "mala": MALA(STEP, temperature),
        "hmc": HMC(math.sqrt(2 * STEP), 3, temperature),
    }
    variance: dict[str, Estimate] = {}
    for name, sampler in samplers.items():
        stream = Streams(2)[f"{name} {temperature} {scale}"]
        x = torch.zeros(4000, 3, dtype=torch.float64)
        kept = chains(
            sampler,
            separable,
            x,
            stream,
            burn_in=150,
            keeps=20,
            keep_every=5,
            scale=None if scale is None else s,
        )
        variance[name] = over_items(kept.square().mean(1))
    assert variance["langevin"].agrees(biased)
    assert variance["mala"].agrees(exact)
    assert variance["hmc"].agrees(exact)
    assert bool((variance["langevin"].z(exact) > 3 * BOUND).all()), "the bias is visible in every dimension"
    assert bool((variance["mala"].z(biased) < -2 * BOUND).all())
    assert bool((variance["hmc"].z(biased) < -2 * BOUND).all())


def test_one_leapfrog_step_is_a_mala_proposal() -> None:
    """HMC's ε and Langevin's step: step = ε²/2, for the same noise and acceptance."""
    x = torch.randn(50, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    temperature = 0.6
    ends = []
    for sampler in (MALA(STEP, temperature), HMC(math.sqrt(2 * STEP), 1, temperature)):
        state = sampler.init(separable, x)
        stream = torch.Generator().manual_seed(1)
        for _ in range(5):
            state, info = sampler.step(separable, state, draw_block(sampler, state, 1, stream).step(0))
        ends.append((state.position, info.acceptance))
    torch.testing.assert_close(ends[0], ends[1], rtol=1e-10, atol=1e-12)


# --- Shares of the modes of a mixture -----------------------------------------------------------------


class TwoModes(NamedTuple):
    """Normals at ±centre of one width, the left one with this weight."""

    centre: float
    width: float
    left: float

    def log_prob(self, x: Tensor) -> Tensor:
        logs = [
            math.log(weight) - 0.5 * ((x[:, 0] - mean) / self.width).square()
            for weight, mean in ((self.left, -self.centre), (1 - self.left, self.centre))
        ]
        return torch.logsumexp(torch.stack(logs), 0)

    @property
    def negative(self) -> float:
        """The exact probability of x < 0."""
        inside = float(stats.norm.cdf(self.centre / self.width))
        return self.left * inside + (1 - self.left) * (1 - inside)


NEAR = TwoModes(centre=1.2, width=0.6, left=0.3)
T = 0.5


class Kernel(NamedTuple):
    """Langevin's transition on a fine grid: rows are where from, columns where to."""

    grid: Tensor
    matrix: Tensor

    def negative(self, law: Tensor) -> float:
        return float(law[self.grid < 0].sum())


def langevin_kernel(energy: Energy, step: float, temperature: float) -> Kernel:
    grid = torch.linspace(-6, 6, 480, dtype=torch.float64)  # an even number: no point at 0
    x = grid.unsqueeze(1).requires_grad_(True)
    drift = torch.autograd.grad(energy(x).sum(), x)[0]
    mean = grid.unsqueeze(1) - step * drift
    matrix = torch.exp(-((grid - mean).square()) / (4 * step * temperature))
    return Kernel(grid, matrix / matrix.sum(1, keepdim=True))


@pytest.mark.parametrize("step", [0.05, 0.5])
def test_mode_shares_of_langevin(step: float) -> None:
    """Against the stationary law of the chain itself, step and all, from its kernel on a grid."""
    energy = FromLogProb(NEAR.log_prob, T)
    kernel = langevin_kernel(energy, step, T)
    burn_in = round(60 / step)
    begin = torch.zeros(len(kernel.grid), dtype=torch.float64)
    begin[int((kernel.grid + 1.2).abs().argmin())] = 1.0
    burnt = kernel.negative(begin @ torch.linalg.matrix_power(kernel.matrix, burn_in))
    expected = kernel.negative(begin @ torch.linalg.matrix_power(kernel.matrix, 2**15))
    x = torch.full((3000, 1), -1.2, dtype=torch.float64)  # every chain begins in the lesser mode
    stream = Streams(3)[f"langevin {step}"]
    kept = chains(
        Langevin(step, T), energy, x, stream, burn_in=burn_in, keeps=20, keep_every=max(1, round(2 / step))
    )
    share = over_items((kept[:, :, 0] < 0).double().mean(1))
    assert abs(burnt - expected) < 0.1 * float(share.error), "the burn-in is long enough, by theory"
    assert float(share.error) < 0.005
    assert share.agrees(expected)


@pytest.mark.parametrize("kind", ["mala", "hmc"])
def test_mode_shares_of_exact_samplers(kind: str) -> None:
    energy = FromLogProb(NEAR.log_prob, T)
    sampler: Sampler = MALA(0.5, T) if kind == "mala" else HMC(0.8, 3, T)
    x = torch.full((3000, 1), -1.2, dtype=torch.float64)
    kept = chains(sampler, energy, x, Streams(4)[kind], burn_in=200, keeps=20, keep_every=5)
    share = over_items((kept[:, :, 0] < 0).double().mean(1))
    assert float(share.error) < 0.005
    assert share.agrees(NEAR.negative)


# --- Step sizes that hold a target acceptance -----------------------------------------------------------


@pytest.mark.parametrize("first_step", [0.02, 2.0])
@pytest.mark.parametrize(
    "make", [TargetAcceptance.hybrid_paper, TargetAcceptance.optimal, TargetAcceptance.optimal_hmc]
)
def test_target_acceptance_is_reached(
    make: Callable[[int | None], TargetAcceptance], first_step: float
) -> None:
    """From a step 10 times too short or too long, then frozen.

    The mean acceptance of n = 2000 chains has a standard deviation of at most 0.4/sqrt(n) = 0.009 a step.
    The log step is then an AR(1) with gain 0.1 and slope |da/dlog step| ≥ 0.2, so acceptance at the
    frozen step is off by at most 0.009·sqrt(0.1·slope/2) < 0.003 for slopes up to 1 (one standard
    deviation). The error of measuring it comes from the chains.
    """
    until = 250
    adaptation = make(until)
    target = adaptation.target
    assert target == {"hybrid_paper": 0.67, "optimal": 0.574, "optimal_hmc": 0.651}[make.__name__]
    sampler: Sampler = MALA(first_step, 1.0, adaptation)
    if make is TargetAcceptance.optimal_hmc:
        sampler = HMC(math.sqrt(first_step), 3, 1.0, adaptation)
    energy = correlated_gaussian()
    stream = Streams(5)[f"{make.__name__} {first_step}"]
    root = torch.linalg.cholesky(torch.linalg.inv(energy.precision))
    x = energy.mean + torch.randn(2000, DIM, generator=stream, dtype=torch.float64) @ root.T
    adapted = run(sampler, energy, sampler.init(energy, x), num_steps=until, generator=stream)
    # The updates telescope: what acceptance missed on average is what the step has moved.
    first = float(sampler.init(energy, x).step_size)
    moved = math.log(float(adapted.state.step_size) / first) / (adaptation.rate * until)
    assert adapted.acceptance - target == pytest.approx(moved, abs=1e-9)
    state, acceptances = adapted.state, []
    for _ in range(100):
        state, info = sampler.step(energy, state, draw_block(sampler, state, 1, stream).step(0))
        acceptances.append(info.acceptance)
    assert state.step_size == adapted.state.step_size, "frozen"
    measured = over_items(torch.stack(acceptances, 1).mean(1))
    assert float(measured.error) < 0.003
    assert abs(float(measured.value) - target) < BOUND * math.hypot(0.003, float(measured.error))
    assert not measured.agrees(0.5 * (target + 1)), "other acceptances would be told apart"


# --- Annealing with resampling ---------------------------------------------------------------------------

FAR = TwoModes(centre=4.0, width=0.5, left=0.2)
COOLING = Knots(((40, 16.0), (200, 1.0)))
NUM_STEPS = 230


def inner(kind: str) -> MALA | HMC:
    return MALA(0.2, T) if kind == "mala" else HMC(0.5, 2, T)


def population(sampler: Sampler, n: int, generator: torch.Generator) -> ChainState:
    energy = FromLogProb(FAR.log_prob, T)
    x = 3 * torch.randn(n, 1, generator=generator, dtype=torch.float64)
    return run(sampler, energy, sampler.init(energy, x), num_steps=NUM_STEPS, generator=generator).state


@pytest.mark.parametrize("kind", ["mala", "hmc"])
def test_annealing_with_resampling_finds_the_masses_of_modes(kind: str) -> None:
    """The barrier is 32 T: nothing crosses at T. Errors come from 16 independent populations."""
    sampler = Annealed(inner(kind), COOLING, resample_below=0.5)
    stream = Streams(6)[kind]
    states = [population(sampler, 800, stream) for _ in range(16)]
    x = torch.stack([state.position[:, 0] for state in states])
    assert all(bool((state.log_weight == 0).all()) for state in states), "what comes out needs no weights"
    share = over_items((x < 0).double().mean(1))
    assert float(share.error) < 0.015
    assert share.agrees(FAR.left)
    # Inside the modes too: mean ±4 and width 0.5.
    for side, centre in ((x < 0, -4.0), (x > 0, 4.0)):
        away = torch.where(side, x - centre, 0.0)
        count = side.sum(1)
        assert over_items(away.sum(1) / count).agrees(0.0)
        assert over_items(away.square().sum(1) / count).agrees(FAR.width**2)


@pytest.mark.parametrize("kind", ["mala", "hmc"])
def test_without_resampling_the_shares_are_wrong(kind: str) -> None:
    """So the test above can fail: cooling alone, or no heat at all, leaves the shares of a hot start."""
    n = 3000
    error = math.sqrt(FAR.left * (1 - FAR.left) / n)
    samplers: dict[str, Sampler] = {
        "cooled": Annealed(inner(kind), COOLING, resample_below=None),
        "plain": inner(kind),
        "langevin": Langevin(0.1, T),
    }
    for name, sampler in samplers.items():
        state = population(sampler, n, Streams(7)[f"{kind} {name}"])
        share = float((state.position[:, 0] < 0).double().mean())
        assert (share - FAR.left) / error > 4 * BOUND, name


def test_cooling_follows_the_schedule_to_the_law_at_t() -> None:
    """At constant heat h the chains follow exp(-E/(T·h)); cooled, exp(-E/T)."""
    stream = Streams(8)["heat"]
    x = torch.zeros(4000, 3, dtype=torch.float64)
    held = Knots(((10**6, 5.0), (10**6 + 1, 1.0)))
    for heat, expected in ((held, 5 * 0.3), (Knots(((0, 5.0), (60, 1.0))), 0.3)):
        sampler = Annealed(MALA(STEP, 0.3), heat, resample_below=None)
        assert sampler.temperature == 0.3
        kept = chains(sampler, separable, x, stream, burn_in=200, keeps=10, keep_every=5)
        assert over_items(kept.square().mean(1)).agrees(expected / CURVATURE)


def test_effective_number() -> None:
    assert effective_number(torch.zeros(10)) == pytest.approx(10.0)
    one = torch.full((10,), -math.inf)
    one[3] = 0.7
    assert effective_number(one) == pytest.approx(1.0)
    weights = torch.tensor([0.5, 0.25, 0.125, 0.125], dtype=torch.float64)
    expected = 1 / weights.square().sum().item()
    assert effective_number(weights.log()) == pytest.approx(expected, rel=1e-12)
    assert effective_number(weights.log() - 5000) == pytest.approx(expected, rel=1e-9)


def test_systematic_resampling_draws_each_chain_in_proportion() -> None:
    """Each count is n·w rounded down or up, and n·w on average: up with the fraction's probability."""
    stream = Streams(9)["resample"]
    weights = torch.rand(20, generator=stream, dtype=torch.float64) ** 3
    weights[4] = 0.0
    weights /= weights.sum()
    log_weight = weights.log() + 3.0
    expected = 20 * weights
    draws = 4000
    counts = torch.stack(
        [
            torch.bincount(systematic_resample(log_weight, torch.rand((), generator=stream)), minlength=20)
            for _ in range(draws)
        ]
    ).double()
    assert bool((counts.sum(1) == 20).all())
    assert bool((counts >= expected.floor()).all())
    assert bool((counts <= expected.ceil()).all())
    fraction = expected.frac()
    error = (fraction * (1 - fraction) / draws).sqrt()
    assert bool(((counts.mean(0) - expected).abs() <= BOUND * error).all())
    assert float(counts[:, 4].sum()) == 0.0


def test_resampling_even_weights_keeps_every_chain() -> None:
    chosen = systematic_resample(torch.zeros(100), torch.tensor(0.3))
    assert np.array_equal(chosen.numpy(), np.arange(100))
