"""The ratio of drift and noise against chains whose force is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from burnin.diagnostics import ChainNoise, balance
from burnin.rng import Streams
from burnin.samplers import Langevin, run


def test_a_gaussians_chain_has_the_ratio_of_theory() -> None:
    """E = x²/2: unadjusted Langevin has variance T/(1 - s/2), so r is sqrt of that times the mean of χ."""
    dim, step, temperature, chains = 50, 0.02, 0.3, 1000
    spread = math.sqrt(temperature / (1 - step / 2))
    sampler, stream = Langevin(step, temperature), Streams(0)["chains"]

    def energy(x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x.square().sum(1)

    start = spread * torch.randn(chains, dim, generator=stream)
    result = run(sampler, energy, sampler.init(energy, start), num_steps=20, generator=stream)
    noise = ChainNoise(temperature, dim)
    found = balance(np.array([result.gradient_norm]), np.array([step]), noise)
    chi = math.sqrt(2) * math.exp(math.lgamma((dim + 1) / 2) - math.lgamma(dim / 2))
    expected = step * spread * chi / math.sqrt(2 * step * temperature * dim)
    # A norm of χ has a standard deviation below 1/sqrt(2), its mean over 1,000 chains a 1,000th of that².
    error = spread * math.sqrt(0.5 / chains) / float(noise.level(np.array([step]))[0])
    assert abs(found.ratio - expected) < 4 * error
    assert found.ratio_to_one == pytest.approx(found.ratio * math.sqrt(dim))


def test_the_convergent_papers_numbers_are_balanced() -> None:
    """Section A: ε = 0.015, r in [0.08, 0.15], step 1; its first r of 1e-6, of an unscaled energy, is not."""
    epsilon, dim = 0.015, 3 * 32 * 32
    noise = ChainNoise(epsilon**2 / 2, dim)
    one = np.ones(1)
    assert noise.level(one)[0] == pytest.approx(epsilon * math.sqrt(dim))
    for r in (0.08, 0.15):
        found = balance(r * one, one, noise)
        assert found.state == "balanced"
        assert found.ratio_to_one == pytest.approx(r / epsilon)
    assert balance(1e-6 * one, one, noise).state == "the noise dominates"
    assert balance(100 * one, one, noise).state == "the drift dominates"


def test_steps_of_their_own_for_each_dimension() -> None:
    """With ⟨(∂E/∂xᵢ)²⟩ = T/sᵢ drift and noise are s·sqrt(T Σsᵢ) and sqrt(2 s T Σsᵢ): sqrt(s/2)."""
    scale, temperature, step = np.array([1.0, 1e-4, 25.0]), 0.7, 0.08
    r = np.sqrt(temperature * (1 / scale).sum(keepdims=True))
    noise = ChainNoise(temperature, dim=3, inverse_scale=float((1 / scale).mean()))
    assert balance(r, np.array([step]), noise).ratio == pytest.approx(math.sqrt(step / 2))


def test_a_leapfrog_step_is_langevins_of_half_its_square() -> None:
    r, leap = np.array([2.0]), np.array([0.3])
    hamiltonian = balance(r, leap, ChainNoise(0.5, 10, leapfrog=True))
    assert hamiltonian == balance(r, leap**2 / 2, ChainNoise(0.5, 10))
    assert hamiltonian.ratio == pytest.approx(0.3**2 / 2 * 2.0 / (0.3 * math.sqrt(0.5 * 10)))
