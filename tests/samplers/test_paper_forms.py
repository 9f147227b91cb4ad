"""One temperature: each paper's update, written by hand as printed, is burnin's chain for the same noise."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from burnin.core import Energy
from burnin.samplers import Langevin, run
from burnin.samplers.blocks import draw_block

Update = Callable[[Tensor, Tensor], Tensor]
"""The next position, from the present one and a standard normal z."""

NUM_STEPS = 12
ANY = Langevin(1.0, 1.0)


def potential(x: Tensor) -> Tensor:
    """U(x) of the law exp(-U): neither quadratic nor symmetric.

    Its curvature lies in (0.4, 1.2), so that steps of 1 contract and do not blow up rounding errors.
    """
    return (0.4 * x.square() + 0.3 * torch.cos(x) + 0.3 * x).sum(1) + 0.1 * x[:, 0] * x[:, 1]


def slope(x: Tensor) -> Tensor:
    """∇U(x), by hand."""
    gradient = 0.8 * x - 0.3 * torch.sin(x) + 0.3
    return gradient + 0.1 * torch.stack([x[:, 1], x[:, 0], torch.zeros_like(x[:, 0])], 1)


def scaled(factor: float) -> Energy:
    return lambda x: factor * potential(x)


def start() -> Tensor:
    return torch.randn(20, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def by_hand(update: Update) -> Tensor:
    x = start()
    state = ANY.init(potential, x)
    noise = draw_block(ANY, state, NUM_STEPS, torch.Generator().manual_seed(2)).normal
    positions = []
    for z in noise:
        x = update(x, z)
        positions.append(x)
    return torch.stack(positions)


def by_burnin(sampler: Langevin, energy: Energy) -> Tensor:
    state = sampler.init(energy, start())
    stream = torch.Generator().manual_seed(2)
    kept = run(sampler, energy, state, num_steps=NUM_STEPS, generator=stream, keep_every=1).kept
    assert kept is not None
    return kept


def assert_same(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


# Each form with numbers of its own, on the energy as the paper writes it: E = U, F = U, f = -U.
PRINTED: dict[str, tuple[Langevin, Update, float]] = {
    "hybrid": (  # x - ε ∂E/∂x + sqrt(2εT) z, Algorithm 1
        Langevin.hybrid(epsilon=0.05, temperature=0.3),
        lambda x, z: x - 0.05 * slope(x) + math.sqrt(2 * 0.05 * 0.3) * z,
        0.3,
    ),
    "convergent": (  # x - ∂F/∂x + εZ, (2A)
        Langevin.convergent(epsilon=0.015),
        lambda x, z: x - slope(x) + 0.015 * z,
        0.015**2 / 2,
    ),
    "stein": (  # x - (ε/2) ∇E + α, α ~ N(0, ε), (18)
        Langevin.stein(epsilon=0.2),
        lambda x, z: x - (0.2 / 2) * slope(x) + math.sqrt(0.2) * z,
        1.0,
    ),
    "stein_untied": (  # x - ε ∇E + α, α ~ N(0, σ²), (19)
        Langevin.stein_untied(epsilon=0.1, sigma=0.07),
        lambda x, z: x - 0.1 * slope(x) + 0.07 * z,
        0.07**2 / (2 * 0.1),
    ),
    "robust": (  # x + (α/2) ∇f + u, u ~ N(0, α), (4)
        Langevin.robust(alpha=0.15),
        lambda x, z: x + (0.15 / 2) * -slope(x) + math.sqrt(0.15) * z,
        1.0,
    ),
    "jem": (  # x + ∇f + 0.01 z, JEM's own numbers
        Langevin.jem(),
        lambda x, z: x + 1.0 * -slope(x) + 0.01 * z,
        1 / 20_000,
    ),
    "jem, other numbers": (
        Langevin.jem(step=0.3, noise=0.2),
        lambda x, z: x + 0.3 * -slope(x) + 0.2 * z,
        0.2**2 / (2 * 0.3),
    ),
}


def test_the_hand_made_gradient_is_right() -> None:
    x = start().requires_grad_(True)
    gradient = torch.autograd.grad(potential(x).sum(), x)[0]
    torch.testing.assert_close(gradient, slope(x.detach()), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", PRINTED)
def test_the_update_is_the_papers_own(name: str) -> None:
    sampler, update, temperature = PRINTED[name]
    assert_same(by_burnin(sampler, potential), by_hand(update))
    assert sampler.temperature == pytest.approx(temperature, rel=1e-12)


def test_the_robust_papers_practical_sampler_is_jem() -> None:
    """Appendix G: (4) without its 1/2 and with 0.01 of its noise is proper sampling of exp(20000 f)."""
    output_scale = 20_000
    proper = Langevin.robust(alpha=2 / output_scale)
    assert_same(by_burnin(Langevin.jem(), potential), by_burnin(proper, scaled(output_scale)))


@pytest.mark.parametrize("eta", [0.02, 5e-5])
def test_all_forms_are_one_chain(eta: float) -> None:
    """x ← x - η∇U + sqrt(2η) z, hybrid (9), in all six forms.

    A form of temperature T samples exp(-U) on the energy E = T·U; where the form ties the temperature
    to its noise, U is rescaled as that paper does (convergent 1A).
    """
    noise = math.sqrt(2 * eta)
    temperature, epsilon = 0.3, eta / 0.3
    untied, step = 0.7, 1.0
    forms: dict[str, tuple[Langevin, Energy]] = {
        "hybrid": (Langevin.hybrid(epsilon, temperature), scaled(temperature)),
        "convergent": (Langevin.convergent(noise), scaled(noise**2 / 2)),
        "stein": (Langevin.stein(2 * eta), potential),
        "stein_untied": (Langevin.stein_untied(untied, noise), scaled(noise**2 / (2 * untied))),
        "robust": (Langevin.robust(2 * eta), potential),
        "jem": (Langevin.jem(step, noise), scaled(noise**2 / (2 * step))),
    }
    chains = {name: by_burnin(*form) for name, form in forms.items()}
    expected = by_hand(lambda x, z: x - eta * slope(x) + noise * z)
    for name, chain in chains.items():
        assert_same(chain, expected)
        sampler, energy = forms[name]
        # The law is exp(-E/T) = exp(-U) for all.
        assert_same(energy(start()) / sampler.temperature, potential(start()))


def test_a_wrong_temperature_would_show() -> None:
    """The comparison has teeth: T = ε² instead of ε²/2 is another chain."""
    wrong = Langevin(1.0, 0.015**2)
    update = PRINTED["convergent"][1]
    assert not torch.allclose(by_burnin(wrong, potential), by_hand(update), rtol=1e-3, atol=1e-3)
