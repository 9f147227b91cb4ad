"""Noise contrast, plain and conditional: gradients by hand, and optima at the data's own density."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from burnin.core import InputError
from burnin.energies import MLP
from burnin.objectives import ConditionalNoiseContrast, Likelihood, NoiseContrast
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
TRUTH = 1 / SD.square()
LOG_Z = Diagonal(TRUTH).log_normaliser().item()
COVARIANCE = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)


def noise(ratio: int = 1, constant: float = 0.0) -> NoiseContrast:
    objective = NoiseContrast(MEAN + 0.2, COVARIANCE, temperature=T, ratio=ratio)
    with torch.no_grad():
        objective.log_normaliser.fill_(constant)
    return objective


def gaussian_log_prob(x: Tensor) -> Tensor:
    law = torch.distributions.MultivariateNormal(MEAN + 0.2, COVARIANCE)
    value: Tensor = law.log_prob(x)  # type: ignore[no-untyped-call]
    return value


def test_the_noise_is_a_normalised_gaussian() -> None:
    objective, x = noise(), gaussian_data(30)
    torch.testing.assert_close(objective.log_noise(x), gaussian_log_prob(x), rtol=1e-12, atol=1e-12)
    drawn = objective.draw(50_000, stream())
    assert_zero_mean(drawn - (MEAN + 0.2))
    assert_zero_mean(torch.einsum("ni,nj->nij", drawn - MEAN - 0.2, drawn - MEAN - 0.2) - COVARIANCE)


def test_noise_is_fitted_to_the_data() -> None:
    x = gaussian_data(500) @ torch.tensor([[1.0, 0.7], [0.0, 1.0]], dtype=torch.float64)
    full = NoiseContrast.fitted(x, temperature=T)
    torch.testing.assert_close(full.factor @ full.factor.T, torch.cov(x.T))
    torch.testing.assert_close(full.mean, x.mean(0))
    diagonal = NoiseContrast.fitted(x, temperature=T, diagonal=True)
    torch.testing.assert_close(diagonal.factor, x.std(0).diag())
    with pytest.raises(InputError, match="singular"):
        NoiseContrast.fitted(x[:, :1].expand(-1, 2), temperature=T)


@pytest.mark.parametrize("ratio", [1, 3])
def test_noise_contrast_is_its_formula(ratio: int) -> None:
    """Each point weighs 1 - h of data and h of noise, h = sigmoid G; ∂G/∂λ = -½(x-μ)², ∂G/∂c = -1."""
    energy, x, objective = Diagonal(START), gaussian_data(200), noise(ratio, 1.3)
    loss, numbers = objective.loss(energy, x, stream(5))
    y = objective.draw(ratio * 200, stream(5))
    odds = [(-energy(p) / T - 1.3 - gaussian_log_prob(p) - math.log(ratio)).detach() for p in (x, y)]
    by_hand = torch.log1p((-odds[0]).exp()).mean() + ratio * torch.log1p(odds[1].exp()).mean()
    torch.testing.assert_close(loss.detach(), by_hand, rtol=1e-12, atol=0)
    surprise, taken_in = torch.sigmoid(-odds[0]), torch.sigmoid(odds[1])
    on_precision, on_mean, on_constant = torch.autograd.grad(
        loss, [energy.precision, energy.mean, objective.log_normaliser]
    )

    def weighted(of: Tensor, at: Tensor) -> Tensor:
        return (surprise[:, None] * of).mean(0) - ratio * (taken_in[:, None] * at).mean(0)

    away = x - MEAN, y - MEAN
    torch.testing.assert_close(on_precision, weighted(0.5 * away[0].square(), 0.5 * away[1].square()))
    torch.testing.assert_close(on_mean, weighted(-START * away[0], -START * away[1]))
    torch.testing.assert_close(on_constant, surprise.mean() - ratio * taken_in.mean())
    right = 0.5 * ((odds[0] > 0).double().mean() + (odds[1] < 0).double().mean())
    assert numbers == {"accuracy": right.item(), "log_normaliser": pytest.approx(1.3)}


@pytest.mark.parametrize("ratio", [1, 3])
def test_its_optimum_is_the_truth_with_its_normaliser(ratio: int) -> None:
    def gradients(precision: Tensor, constant: float) -> Tensor:
        energy, objective, found = Diagonal(precision), noise(ratio, constant), []
        for seed in range(300):
            loss, _ = objective.loss(energy, gaussian_data(250, seed), stream(1000 + seed))
            parts = torch.autograd.grad(loss, [energy.precision, energy.mean, objective.log_normaliser])
            found.append(torch.cat([part.reshape(-1) for part in parts]))
        return torch.stack(found)

    assert_zero_mean(gradients(TRUTH, LOG_Z))
    assert_not_zero_mean(gradients(TRUTH, LOG_Z + 0.5)[:, 4:])
    assert_not_zero_mean(gradients(1.5 * TRUTH, LOG_Z)[:, :2])


def test_the_constant_starts_at_the_normaliser() -> None:
    """Importance sampling: exact where the noise is the model, within its standard error elsewhere."""
    model = NoiseContrast(MEAN, SD.square().diag(), temperature=T)
    model.start(Diagonal(TRUTH), stream())
    assert model.log_normaliser.item() == pytest.approx(LOG_Z, abs=1e-9)
    wider = NoiseContrast(MEAN, (1.3 * SD).square().diag(), temperature=T)
    wider.start(Diagonal(TRUTH), stream())
    # Per dimension E w² = k²/sqrt(2k² - 1) for noise k times as wide.
    spread = (1.69 / math.sqrt(2 * 1.69 - 1)) ** 2 - 1
    assert abs(wider.log_normaliser.item() - LOG_Z) < 4.5 * math.sqrt(spread / 10_000)


def test_the_written_out_energy_gives_the_same_loss() -> None:
    """A stock network's energy is computed by its closed form; a plain function of it is not."""
    net, x = MLP(2, width=8, depth=2, generator=stream()).double(), gaussian_data(40)
    for objective in (noise(2), ConditionalNoiseContrast(T, 0.3, ratio=2)):
        results = []
        for energy in (net, lambda y: net(y)):
            loss, _ = objective.loss(energy, x, stream(1))
            gradients = torch.autograd.grad(loss, list(net.parameters()), allow_unused=True)
            results.append((loss.detach(), [torch.zeros(()) if g is None else g for g in gradients]))
        torch.testing.assert_close(results[0], results[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("ratio", [1, 2])
def test_conditional_contrast_is_its_formula(ratio: int) -> None:
    """2⟨log(1 + exp -G)⟩ with G = ½Σλ((y-μ)² - (x-μ)²); ∂/∂λ = -⟨sigmoid(-G)((y-μ)² - (x-μ)²)⟩."""
    energy, x, sd = Diagonal(START), gaussian_data(150), 0.7
    loss, numbers = ConditionalNoiseContrast(T, sd, ratio=ratio).loss(energy, x, stream(5))
    copies = x.repeat(ratio, 1)
    y = copies + sd * torch.randn(copies.shape, generator=stream(5), dtype=torch.float64)
    grown = (y - MEAN).square() - (copies - MEAN).square()
    lead = 0.5 * (START * grown).sum(1)
    torch.testing.assert_close(loss.detach(), 2 * torch.log1p((-lead).exp()).mean(), rtol=1e-12, atol=0)
    on_precision, on_mean = torch.autograd.grad(loss, [energy.precision, energy.mean])
    surprise = torch.sigmoid(-lead)[:, None]
    torch.testing.assert_close(on_precision, -(surprise * grown).mean(0), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(on_mean, 2 * START * (surprise * (y - copies)).mean(0), rtol=1e-10, atol=1e-12)
    assert numbers == {"accuracy": (lead > 0).double().mean().item()}


def test_its_optimum_is_the_truth() -> None:
    def gradients(precision: Tensor) -> Tensor:
        energy, objective, found = Diagonal(precision), ConditionalNoiseContrast(T, 0.7), []
        for seed in range(300):
            loss, _ = objective.loss(energy, gaussian_data(250, seed), stream(1000 + seed))
            found.append(torch.cat(torch.autograd.grad(loss, [energy.precision, energy.mean])))
        return torch.stack(found)

    assert_zero_mean(gradients(TRUTH))
    assert_not_zero_mean(gradients(1.5 * TRUTH)[:, :2])


def test_likelihood_is_its_formula() -> None:
    """-⟨log p⟩ with the gradient ½(⟨(x-μ)²⟩ - 1/λ), 0 at the data's own precision."""
    energy, x = Diagonal(START), gaussian_data(100)
    loss, numbers = Likelihood(T).loss(energy, x, stream())
    law = torch.distributions.Normal(MEAN, START.rsqrt())
    log_prob = law.log_prob(x)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(loss.detach(), -log_prob.sum(1).mean(), rtol=1e-12, atol=0)
    (gradient,) = torch.autograd.grad(loss, energy.precision)
    torch.testing.assert_close(gradient, 0.5 * ((x - MEAN).square().mean(0) - 1 / START))
    assert numbers["log_likelihood"] == -loss.item()
    with pytest.raises(InputError, match="log_normaliser"):
        Likelihood(T).loss(MLP(2, width=4, depth=1, generator=stream()), x.float(), stream())
