"""Score matching against what can be derived: gradients by hand, optima, unbiased slices, noise."""

from __future__ import annotations

import math

import pytest
import torch

from burnin.core import InputError
from burnin.energies import MLP, ICAEnergy
from burnin.objectives import DenoisingScoreMatching, Probes, ScoreMatching, score_matching_terms
from tests.objectives.gaussians import (
    MEAN,
    SD,
    Diagonal,
    T,
    assert_not_zero_mean,
    assert_zero_mean,
    gaussian_data,
    stream,
)

START = torch.tensor([0.9, 0.6], dtype=torch.float64)


def test_exact_score_matching_is_its_formula() -> None:
    """½ Σ λ²(x-μ)² - Σ λ, with the gradients λᵢ⟨(x-μ)²⟩ - 1 and -λᵢ²⟨x-μ⟩."""
    energy, x = Diagonal(START), gaussian_data(200)
    loss, numbers = ScoreMatching(T).loss(energy, x, stream())
    away, precision = x - MEAN, START
    torch.testing.assert_close(
        loss.detach(), 0.5 * (precision * away).square().sum(1).mean() - precision.sum(), rtol=1e-12, atol=0
    )
    on_precision, on_mean = torch.autograd.grad(loss, [energy.precision, energy.mean])
    torch.testing.assert_close(on_precision, precision * away.square().mean(0) - 1, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(on_mean, -precision.square() * away.mean(0), rtol=1e-12, atol=1e-12)
    assert numbers["trace"] == pytest.approx(-precision.sum().item())
    assert numbers["score"] == pytest.approx((precision * away).square().sum(1).mean().sqrt().item())


def test_its_optimum_is_the_datas_precision() -> None:
    x = gaussian_data(500)
    energy = Diagonal(1 / (x - x.mean(0)).square().mean(0), x.mean(0))
    loss, _ = ScoreMatching(T).loss(energy, x, stream())
    for gradient in torch.autograd.grad(loss, [energy.precision, energy.mean]):
        torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-12)


@pytest.mark.parametrize("probes", ["gaussian", "rademacher"])
def test_a_slice_is_unbiased(probes: Probes) -> None:
    """One point with many probes, for a network whose Hessian is full: loss and gradient."""
    energy = MLP(3, width=8, depth=2, generator=stream()).double()
    point = torch.randn(1, 3, generator=stream(1), dtype=torch.float64)
    exact = score_matching_terms(energy, point, T)
    sliced = score_matching_terms(energy, point.expand(20_000, 3), T, trace=probes, generator=stream(2))
    torch.testing.assert_close(sliced[0], exact[0].expand(20_000))
    assert_zero_mean((sliced[1] - exact[1]).detach())
    assert float(sliced[1].detach().std()) > 1e-3, "a slice has a variance"

    weight = next(energy.parameters())
    (wanted,) = torch.autograd.grad(exact[1].sum(), weight)
    blocks = [
        torch.autograd.grad(block.mean(), weight, retain_graph=True)[0].flatten()
        for block in torch.split(sliced[1], 200)
    ]
    assert_zero_mean(torch.stack(blocks) - wanted.flatten(), bound=5.0)  # the largest of 24


def test_signs_leave_a_diagonal_hessian_without_variance() -> None:
    energy, x = Diagonal(START), gaussian_data(50)
    exact = score_matching_terms(energy, x, T)[1]
    signs = score_matching_terms(energy, x, T, trace="rademacher", generator=stream())[1]
    normal = score_matching_terms(energy, x, T, trace="gaussian", generator=stream())[1]
    torch.testing.assert_close(signs, exact, rtol=1e-12, atol=1e-12)
    # Var of Σ λᵢ εᵢ² is 2 Σ λᵢ² for normal probes.
    assert float(normal.detach().var()) == pytest.approx(2 * START.square().sum().item(), rel=1.0)


def test_kinks_hide_from_score_matching() -> None:
    """The Laplace energy's curvature is all at its kink: the trace is 0 wherever a point lies (B.5)."""
    x = torch.randn(30, 3, generator=stream(), dtype=torch.float64)
    for source, curved in (("laplace", False), ("logistic", True)):
        energy = ICAEnergy.random(3, source, stream()).double()  # type: ignore[arg-type]
        trace = score_matching_terms(energy, x, 1.0)[1]
        assert bool((trace < 0).all()) == curved
        assert bool((trace == 0).all()) != curved


def test_denoising_is_its_formula() -> None:
    """r = -λ(x̃ - μ) + ε/σ: loss ½⟨‖r‖²⟩, gradients -⟨r (x̃ - μ)⟩ and λ⟨r⟩."""
    energy, x, sd = Diagonal(START), gaussian_data(300), 0.4
    loss, _ = DenoisingScoreMatching(T, sd).loss(energy, x, stream(5))
    noise = torch.randn(x.shape, generator=stream(5), dtype=torch.float64)
    away = x + sd * noise - MEAN
    residual = -START * away + noise / sd
    torch.testing.assert_close(loss.detach(), 0.5 * residual.square().sum(1).mean(), rtol=1e-12, atol=0)
    on_precision, on_mean = torch.autograd.grad(loss, [energy.precision, energy.mean])
    torch.testing.assert_close(on_precision, -(residual * away).mean(0), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(on_mean, START * residual.mean(0), rtol=1e-10, atol=1e-12)


def test_its_optimum_is_the_noised_density() -> None:
    """At precision 1/(sd² + σ²) the gradient is 0 in the mean; at that of the data it is not."""
    sd, blocks, size = 0.6, 400, 250
    objective, noised, clean = DenoisingScoreMatching(T, sd), 1 / (SD.square() + sd**2), 1 / SD.square()

    def gradients(precision: torch.Tensor) -> torch.Tensor:
        energy, found = Diagonal(precision), []
        for seed in range(blocks):
            loss, _ = objective.loss(energy, gaussian_data(size, seed), stream(1000 + seed))
            found.append(torch.cat(torch.autograd.grad(loss, [energy.precision, energy.mean])))
        return torch.stack(found)

    assert_zero_mean(gradients(noised))
    assert_not_zero_mean(gradients(clean)[:, :2])


def test_score_based_losses_are_blind_to_the_mass_of_separated_modes() -> None:
    """Two far modes of masses ½, ½ and 0.99, 0.01: the losses of the data's score are the same."""
    x = torch.cat(
        [-20 + torch.randn(50, 1, generator=stream()), 20 + torch.randn(50, 1, generator=stream(1))]
    )

    def mixture(mass: float) -> torch.Tensor:
        def energy(y: torch.Tensor) -> torch.Tensor:
            modes = torch.stack([-0.5 * (y + 20).square().sum(1), -0.5 * (y - 20).square().sum(1)], 1)
            return -torch.logsumexp(modes + torch.tensor([mass, 1 - mass]).log(), 1)

        first, second = score_matching_terms(energy, x, 1.0)
        return first + second

    torch.testing.assert_close(mixture(0.5), mixture(0.99))


def test_the_noise_has_a_size() -> None:
    with pytest.raises(InputError, match="noise_sd is 0"):
        DenoisingScoreMatching(1.0, 0.0)
    with pytest.raises(InputError, match="noise_sd is nan"):
        DenoisingScoreMatching(1.0, math.nan)
