"""The contrast: its gradient is equation 6 of the hybrid paper, its numbers are numpy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from burnin.core import InputError
from burnin.energies import MLP
from burnin.objectives import Negatives, contrast
from burnin.rng import Streams

LAMBDA = 25.0


def network() -> MLP:
    return MLP(3, width=8, depth=2, generator=Streams(0)["weights"]).double()


def points(n: int, name: str) -> Tensor:
    return torch.randn(n, 3, generator=Streams(1)[name], dtype=torch.float64)


def mean_gradient(net: nn.Module, x: Tensor) -> list[Tensor]:
    """⟨∂E/∂θ⟩ by Algorithm 1's AvgEnergyGradient: one row after the other."""
    total = [torch.zeros_like(weight) for weight in net.parameters()]
    for row in x:
        gradients = torch.autograd.grad(net(row.unsqueeze(0)).squeeze(), list(net.parameters()))
        total = [a + b for a, b in zip(total, gradients, strict=True)]
    return [value / len(x) for value in total]


@pytest.mark.parametrize("sizes", [(12, 12), (5, 12), (20, 7)])
def test_the_gradient_is_equation_6(sizes: tuple[int, int]) -> None:
    """(g_data - g_noise) + λ (g_data - g_data-init), for batches of any size."""
    net, data = network(), points(12, "data")
    from_noise, from_data = points(sizes[0], "noise"), points(sizes[1], "chains") + 0.5
    loss, infos = contrast(net, data, [Negatives(from_noise), Negatives(from_data, weight=LAMBDA)])
    torch.autograd.backward(loss)
    g_data, g_noise, g_init = (mean_gradient(net, x) for x in (data, from_noise, from_data))
    for weight, data_part, noise_part, init_part in zip(
        net.parameters(), g_data, g_noise, g_init, strict=True
    ):
        expected = (data_part - noise_part) + LAMBDA * (data_part - init_part)
        assert weight.grad is not None
        torch.testing.assert_close(weight.grad, expected, rtol=1e-11, atol=1e-13)
    assert len(infos) == 2


@pytest.mark.parametrize("weights", [(1.0,), (1.0, 25.0), (0.5, 2.0, 0.0)])
def test_the_loss_is_the_weighted_sum_of_d(weights: tuple[float, ...]) -> None:
    net, data = network(), points(12, "data")
    arms = [Negatives(points(9, f"arm {i}") + i, weight) for i, weight in enumerate(weights)]
    loss, infos = contrast(net, data, arms)
    assert loss.shape == ()
    for arm, info in zip(arms, infos, strict=True):
        expected = net(data).mean().item() - net(arm.position).mean().item()
        assert info.d == pytest.approx(expected, rel=1e-12)
    total = sum(weight * info.d for weight, info in zip(weights, infos, strict=True))
    assert loss.item() == pytest.approx(total, rel=1e-12)


def test_no_gradient_flows_into_the_negatives() -> None:
    """They are an argument, taken as fixed, even when they hang on the weights through their chains."""
    net, data = network(), points(6, "data")
    leaf = points(6, "noise").requires_grad_(True)
    loss, _ = contrast(net, data, [Negatives(leaf)])
    torch.autograd.backward(loss)
    assert leaf.grad is None
    plain = [None if weight.grad is None else weight.grad.clone() for weight in net.parameters()]
    net.zero_grad()
    start = points(6, "noise").requires_grad_(True)
    step = torch.autograd.grad(net(start).sum(), start, create_graph=True)[0]
    chain_end = start + 0 * step  # the same points, but with a path back to the weights
    assert chain_end.requires_grad
    torch.autograd.backward(contrast(net, data, [Negatives(chain_end)])[0])
    for weight, expected in zip(net.parameters(), plain, strict=True):
        assert weight.grad is not None
        assert expected is not None
        assert weight.grad.equal(expected)


def test_numbers_of_a_paired_arm_are_numpys() -> None:
    net, data, negatives = network(), points(40, "data"), points(40, "noise")
    info = contrast(net, data, [Negatives(negatives)])[1][0]
    with torch.no_grad():
        differences = (net(data) - net(negatives)).numpy()
    assert info.d == pytest.approx(np.mean(differences), rel=1e-12)
    assert info.std == pytest.approx(np.std(differences), rel=1e-12)
    assert info.snr == pytest.approx(np.mean(differences) / np.std(differences), rel=1e-12)


@pytest.mark.parametrize("m", [1, 25, 60])
def test_numbers_of_an_unpaired_arm_are_numpys(m: int) -> None:
    net, data, negatives = network(), points(40, "data"), points(m, "noise")
    info = contrast(net, data, [Negatives(negatives)])[1][0]
    with torch.no_grad():
        positive, negative = net(data).numpy(), net(negatives).numpy()
    std = np.sqrt(np.var(positive) + np.var(negative))
    assert info.d == pytest.approx(np.mean(positive) - np.mean(negative), rel=1e-12)
    assert info.std == pytest.approx(std, rel=1e-12)
    assert info.snr == pytest.approx(info.d / std, rel=1e-12)


def square(x: Tensor) -> Tensor:
    return 0.5 * x.square().sum(1)


def test_pairing_takes_twice_the_covariance_off_the_variance() -> None:
    """Section 4.2.3: Var = Var E(x) + Var E(x̂) - 2 Cov. Chains that start at the data move with it.

    Negatives ρ·x + sqrt(1 - ρ²)·noise have the data's own law, and energies correlated by ρ²: with
    E = ½‖x‖² in 3-D, Var E = 3/2 and the paired variance is 3(1 - ρ²). The same negatives in another
    order are unpaired, with variance 3. Bounds: 5 standard errors of a sample variance, whose relative
    error is below sqrt((κ - 1)/n) with κ < 10 for these differences.
    """
    n, rho = 40_000, 0.95
    data = points(n, "paired data")
    negatives = rho * data + math.sqrt(1 - rho**2) * points(n, "paired noise")
    order = torch.randperm(n, generator=Streams(2)["order"])
    paired = contrast(square, data, [Negatives(negatives)])[1][0]
    unpaired = contrast(square, data, [Negatives(negatives[order])])[1][0]
    error = 5 * math.sqrt(9 / n)
    assert paired.std**2 == pytest.approx(3 * (1 - rho**2), rel=error)
    assert unpaired.std**2 == pytest.approx(3.0, rel=error)
    assert paired.std < 0.5 * unpaired.std
    assert paired.d == pytest.approx(unpaired.d, rel=1e-9)
    assert abs(paired.snr) > abs(unpaired.snr)


def test_column_energies_work() -> None:
    net = network()
    column = nn.Sequential(net.layers)
    data, arms = points(6, "data"), [Negatives(points(8, "noise"), 2.0), Negatives(points(6, "chains"))]
    flat_loss, flat_infos = contrast(net, data, arms)
    column_loss, column_infos = contrast(column, data, arms)
    assert column(data).shape == (6, 1)
    assert column_loss.equal(flat_loss)
    assert column_infos == flat_infos


def test_arms_do_not_disturb_each_other() -> None:
    """All energies are computed in one pass; each arm's numbers are those it has alone."""
    net, data = network(), points(10, "data")
    arms = [Negatives(points(n, f"arm {n}")) for n in (10, 3, 17)]
    together = contrast(net, data, arms)[1]
    for arm, info in zip(arms, together, strict=True):
        alone = contrast(net, data, [arm])[1][0]
        assert info[:3] == pytest.approx(alone[:3], rel=1e-10)


def test_images_are_a_batch_too() -> None:
    x = points(6, "images").reshape(6, 1, 3)
    loss, _ = contrast(lambda x: x.square().sum((1, 2)), x, [Negatives(2 * x)])
    assert loss.item() == pytest.approx(-3 * x.square().sum().item() / 6, rel=1e-12)


def test_no_arms_are_refused() -> None:
    with pytest.raises(InputError, match="no arms"):
        contrast(square, torch.zeros(2, 3), [])


def test_a_vanishing_spread_has_no_signal_to_noise() -> None:
    info = contrast(square, torch.zeros(4, 3), [Negatives(torch.zeros(4, 3))])[1][0]
    assert info == (0.0, 0.0, 0.0, None)


def test_nothing_hides_a_nan() -> None:
    negatives = torch.ones(4, 3)
    negatives[1, 0] = math.nan
    loss, infos = contrast(square, torch.zeros(4, 3), [Negatives(negatives)])
    assert math.isnan(loss.item())
    assert all(math.isnan(value) for value in (infos[0].d, infos[0].std, infos[0].snr))
