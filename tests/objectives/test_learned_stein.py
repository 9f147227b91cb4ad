"""The learned Stein discrepancy against theory: the best critic, its value, its gradient, Algorithm 3."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from burnin.core import InputError
from burnin.objectives import LearnedStein
from burnin.stein import Trace, critic_objective, mlp_critic, score_of, stein_terms
from tests.objectives.gaussians import MEAN, SD, Diagonal, T, gaussian_data, stream

START = torch.tensor([0.9, 0.6], dtype=torch.float64)
TRUTH = 1 / SD.square()
LAM = 0.8


class Best(nn.Module):
    """f = (s - s_data) / 2λ for a Gaussian model of precisions `precision`: equation 9."""

    def __init__(self, precision: Tensor) -> None:
        super().__init__()
        self.slope = nn.Parameter((TRUTH - precision) / (2 * LAM))

    def forward(self, x: Tensor) -> Tensor:
        return self.slope * (x - MEAN)


def fisher(precision: Tensor) -> float:
    """E ‖s - s_data‖² = Σ (λ - 1/sd²)² sd²."""
    return float(((precision - TRUTH) * SD).square().sum())


def test_the_best_critic_reaches_the_fisher_divergence_over_four_lam() -> None:
    x, energy = gaussian_data(100_000), Diagonal(START)
    critic = Best(START)
    score = score_of(energy, T)
    terms = stein_terms(score, critic, x).detach() - LAM * critic(x).detach().square().sum(1)
    error = float(terms.std()) / math.sqrt(len(x))
    assert abs(float(terms.mean()) - fisher(START) / (4 * LAM)) < 4.5 * error
    # And no other slope does better.
    best = critic_objective(score, critic, x, lam=LAM).item()
    for factor in (0.8, 1.25):
        worse = Best(START)
        with torch.no_grad():
            worse.slope.mul_(factor)
        assert critic_objective(score, worse, x, lam=LAM).item() < best


def test_the_loss_is_twice_that_and_its_gradient_that_of_the_divergence() -> None:
    """Loss E‖·‖²/2λ; its gradient, the critic being fixed, is that of E‖·‖²/4λ: (λ - 1/sd²) sd²/2λ."""
    critic = Best(START)
    objective = LearnedStein(critic, temperature=T, lam=LAM)
    x, energy = gaussian_data(100_000), Diagonal(START)
    loss, numbers = objective.loss(energy, x, stream())
    gradient, _ = torch.autograd.grad(loss, [energy.precision, energy.mean])
    away = x - MEAN
    slope = critic.slope.detach()
    # By hand, on these points: s·f + Tr ∇f = -λ slope (x-μ)² + slope.
    by_hand = (-START * slope * away.square() + slope).sum(1)
    torch.testing.assert_close(loss.detach(), by_hand.mean(), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(gradient, -(slope * away.square()).mean(0), rtol=1e-9, atol=1e-12)
    error = float(by_hand.std()) / math.sqrt(len(x))
    assert abs(loss.item() - fisher(START) / (2 * LAM)) < 4.5 * error
    spread = (slope * away.square()).std(0) / math.sqrt(len(x))
    expected = (START - TRUTH) * SD.square() / (2 * LAM)
    assert float(((gradient - expected) / spread).abs().max()) < 4.5
    assert numbers["critic"] == pytest.approx((slope * away).square().sum(1).mean().item())
    assert numbers["score"] == pytest.approx((START * away).square().sum(1).mean().sqrt().item())


@pytest.mark.parametrize("trace", ["exact", "gaussian", "rademacher"])
def test_the_critics_steps_are_adams_on_fresh_batches(trace: Trace) -> None:
    def critic() -> nn.Module:
        return mlp_critic(2, 8, generator=stream()).double()

    energy, batches = Diagonal(START), iter([gaussian_data(30, seed) for seed in range(3)])
    objective = LearnedStein(
        critic(), temperature=T, lam=LAM, critic_steps=3, learning_rate=0.01, betas=(0.5, 0.9), trace=trace
    )
    objective.before_update(energy, lambda: next(batches), stream(4))
    assert next(batches, None) is None, "each step has a batch of its own"
    assert energy.precision.grad is None

    by_hand, draws = critic(), stream(4)
    optimizer = torch.optim.Adam(by_hand.parameters(), lr=0.01, betas=(0.5, 0.9))
    for seed in range(3):
        x = gaussian_data(30, seed)
        values = stein_terms(-START * (x - MEAN), by_hand, x, trace=trace, generator=draws)
        loss = LAM * by_hand(x).square().sum(1).mean() - values.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for mine, theirs in zip(objective.critic.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)


def test_the_loss_moves_the_energy_alone() -> None:
    objective = LearnedStein(mlp_critic(2, 8, generator=stream()).double(), temperature=T)
    energy = Diagonal(START)
    loss, _ = objective.loss(energy, gaussian_data(30), stream())
    loss.backward()  # type: ignore[no-untyped-call]
    assert energy.precision.grad is not None
    assert all(parameter.grad is None for parameter in objective.critic.parameters())


def test_a_trained_critic_finds_the_divergence() -> None:
    """The paper's Figure 3 in small: 1,000 steps come within a tenth of E‖s - s_data‖²/4λ, from below.

    A network's value is at most the best critic's in the mean; the bound above is its standard error.
    """
    energy, draws = Diagonal(START), stream(6)
    objective = LearnedStein(
        mlp_critic(2, 32, generator=stream()).double(), temperature=T, lam=LAM, critic_steps=1000
    )

    def draw() -> Tensor:
        return MEAN + SD * torch.randn(100, 2, generator=draws, dtype=torch.float64)

    objective.before_update(energy, draw, stream(7))
    x = gaussian_data(50_000, 8)
    with torch.no_grad():
        terms = stein_terms(score_of(energy, T), objective.critic, x)
        terms = terms - LAM * objective.critic(x).square().sum(1)
    best, error = fisher(START) / (4 * LAM), float(terms.std()) / math.sqrt(len(x))
    assert 0.9 * best < float(terms.mean()) < best + 4.5 * error


def test_settings_must_be_positive() -> None:
    critic = mlp_critic(2, 8, generator=stream())
    with pytest.raises(InputError, match="lam is 0"):
        LearnedStein(critic, temperature=1.0, lam=0.0)
    with pytest.raises(InputError, match="critic_steps is 0"):
        LearnedStein(critic, temperature=1.0, critic_steps=0)
