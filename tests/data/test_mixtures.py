from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import special, stats

from burnin.core import InputError
from burnin.data import (
    Checkerboard,
    Funnel,
    GaussianMixture,
    eight_gaussians,
    two_scales,
    unequal_gaussians,
)
from tests.data.grids import assert_agree, assert_disagree, assert_mean_is, entropy, midpoints, total_mass


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("mixture", [eight_gaussians(), unequal_gaussians()])
def test_mixture_density(mixture: GaussianMixture) -> None:
    assert mixture.dim == 2
    assert total_mass(mixture.log_prob, 2.5, 200) == pytest.approx(1.0, abs=1e-9)
    x = mixture.sample(200, seeded()).double()
    angles = np.arange(8) * np.pi / 4
    centres = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    logs = stats.norm.logpdf(x.numpy()[:, None], centres, 0.15).sum(2)
    expected = special.logsumexp(logs, axis=1, b=np.array(mixture.weights))
    np.testing.assert_allclose(mixture.log_prob(x).numpy(), expected, rtol=1e-10)


def test_mixture_weights() -> None:
    assert eight_gaussians().weights == (0.125,) * 8
    assert unequal_gaussians().weights == pytest.approx([k / 36 for k in range(1, 9)])
    assert unequal_gaussians().means == eight_gaussians().means


@pytest.mark.parametrize("mixture", [eight_gaussians(), unequal_gaussians()])
def test_mixture_samples(mixture: GaussianMixture) -> None:
    x = mixture.sample(40_000, seeded())
    assert_agree(x, mixture.log_prob, 1.6)
    assert_mean_is(mixture.log_prob(x), -entropy(mixture.log_prob, 2.5, 300))
    wider = GaussianMixture(mixture.means, 1.05 * 0.15, mixture.weights)
    assert_disagree(x, wider.log_prob, 1.6)
    lighter = GaussianMixture(mixture.means, mixture.sd, (*mixture.weights[:-1], 0.75 * mixture.weights[-1]))
    assert_disagree(x, lighter.log_prob, 1.6)


def test_mixture_in_one_and_five_dimensions() -> None:
    line = GaussianMixture(((-1.0,), (2.0,)), sd=0.5, weights=(1.0, 3.0))
    axis = midpoints(8.0, 1000)
    assert float(line.log_prob(axis[:, None]).exp().sum() * 0.016) == pytest.approx(1.0, abs=1e-9)
    assert_mean_is(line.sample(10_000, seeded())[:, 0], -0.25 + 1.5)
    deep = GaussianMixture(((0.0,) * 5,), sd=2.0, weights=(1.0,))
    x = torch.randn(7, 5, generator=seeded(), dtype=torch.float64)
    expected = stats.norm.logpdf(x.numpy(), 0, 2).sum(1)
    np.testing.assert_allclose(deep.log_prob(x).numpy(), expected, rtol=1e-12)


def test_mixture_with_a_standard_deviation_for_each_component() -> None:
    means, sds, weights = ((-1.0, 0.5), (1.0, 0.0), (0.0, 2.0)), (0.2, 0.5, 1.0), (0.5, 0.2, 0.3)
    mixture = GaussianMixture(means, sds, weights)
    assert mixture.sds == sds
    assert total_mass(mixture.log_prob, 9.0, 600) == pytest.approx(1.0, abs=1e-9)
    x = mixture.sample(40_000, seeded())
    logs = stats.norm.logpdf(x.double().numpy()[:, None], np.array(means), np.array(sds)[:, None]).sum(2)
    expected = special.logsumexp(logs, axis=1, b=np.array(weights))
    np.testing.assert_allclose(mixture.log_prob(x.double()).numpy(), expected, rtol=1e-10)
    assert_agree(x, mixture.log_prob, 4.0)
    assert_disagree(x, GaussianMixture(means, (0.2, 0.5, 1.2), weights).log_prob, 4.0)


def test_one_standard_deviation_is_the_same_for_all() -> None:
    mixture = eight_gaussians()
    assert mixture.sd == 0.15
    each = GaussianMixture(mixture.means, (0.15,) * 8, mixture.weights)
    x = mixture.sample(100, seeded())
    assert torch.equal(each.sample(100, seeded()), x)
    assert torch.equal(each.log_prob(x), mixture.log_prob(x))


def test_two_scales() -> None:
    mixture = two_scales()
    assert total_mass(mixture.log_prob, 5.0, 500) == pytest.approx(1.0, abs=1e-9)
    x = mixture.sample(40_000, seeded())
    assert_agree(x, mixture.log_prob, 4.0, cells=40, fine=12)
    assert_mean_is(mixture.log_prob(x), -entropy(mixture.log_prob, 5.0, 500))
    on_ring = (x.norm(dim=1) < 1.6).double()
    assert_mean_is(on_ring, 0.5)
    # No gaps in the ring: Gaussians a distance d apart ripple by 4 exp(-2π² (σ/d)²), here 0.012.
    angle = math.pi / 48
    between = 1.2 * torch.tensor([[math.cos(angle), math.sin(angle)], [1.0, 0.0]], dtype=torch.float64)
    assert mixture.log_prob(between).diff().item() == pytest.approx(0.012, abs=2e-3)


def test_the_two_scales_have_the_same_entropy() -> None:
    mixture = two_scales()
    ring = GaussianMixture(mixture.means[:48], mixture.sds[0], mixture.weights[:48])
    blobs = GaussianMixture(mixture.means[48:], mixture.sds[-1], mixture.weights[48:])
    assert entropy(ring.log_prob, 5.0, 500) == pytest.approx(entropy(blobs.log_prob, 5.0, 500), abs=0.05)


def test_bad_mixtures() -> None:
    with pytest.raises(InputError, match=r"lengths \[1, 2\]"):
        GaussianMixture(((0.0,), (0.0, 1.0)), 1.0, (1.0, 1.0))
    with pytest.raises(InputError, match=r"lengths \[\]"):
        GaussianMixture((), 1.0, ())
    with pytest.raises(InputError, match="1 weights for 2 means"):
        GaussianMixture(((0.0,), (1.0,)), 1.0, (1.0,))
    with pytest.raises(InputError, match="weight is 0"):
        GaussianMixture(((0.0,), (1.0,)), 1.0, (1.0, 0.0))
    with pytest.raises(InputError, match="sd is -2"):
        GaussianMixture(((0.0,),), -2.0, (1.0,))
    with pytest.raises(InputError, match="sd is 0"):
        GaussianMixture(((0.0,), (1.0,)), (1.0, 0.0), (1.0, 1.0))
    with pytest.raises(InputError, match="1 standard deviations for 2 means"):
        GaussianMixture(((0.0,), (1.0,)), (1.0,), (1.0, 1.0))
    with pytest.raises(InputError, match="NaN or infinity"):
        GaussianMixture(((math.nan,),), 1.0, (1.0,))


@pytest.mark.parametrize("board", [Checkerboard(), Checkerboard(cells=3, width=0.5), Checkerboard(cells=1)])
def test_board_density_and_samples(board: Checkerboard) -> None:
    half = 0.5 * board.cells * board.width
    assert total_mass(board.log_prob, 1.5 * half, 120 * board.cells) == pytest.approx(1.0, abs=1e-12)
    x = board.sample(20_000, seeded())
    assert bool((board.log_prob(x) == -math.log(board.filled * board.width**2)).all())
    assert_agree(x, board.log_prob, half, cells=4 * board.cells)
    assert stats.kstest(((x[:, 0] + half) % board.width / board.width).numpy(), "uniform").pvalue > 1e-3


def test_board_is_that_of_the_flows() -> None:
    """x2 = u - 2b + floor(x1) mod 2 with u in [0, 1): the customary recipe, doubled in size."""
    x1 = 4 * torch.rand(5000, generator=seeded()) - 2
    x2 = torch.rand(5000, generator=seeded(1)) - 2.0 * torch.randint(2, (5000,), generator=seeded(2))
    x = 2 * torch.stack([x1, x2 + x1.floor() % 2], dim=1)
    assert bool(Checkerboard().log_prob(x).isfinite().all())
    assert_agree(x, Checkerboard().log_prob, 4.0, cells=16)
    shifted = x + torch.tensor([0.2, 0.0])
    assert not bool(Checkerboard().log_prob(shifted).isfinite().all())


def test_board_edges_and_bad_points() -> None:
    board = Checkerboard()
    below = torch.nextafter(torch.tensor(0.0), torch.tensor(-1.0)).item()
    x = torch.tensor([[0.0, 0.0], [below, below], [below, 0.0], [4.0, 1.0], [-4.0, -4.0], [math.inf, 1.0]])
    assert board.log_prob(x).isfinite().tolist() == [True, True, False, False, True, False]
    assert bool(board.log_prob(torch.tensor([[math.nan, 1.0]])).isnan().all())
    y = torch.tensor([[1.0, 1.0]], requires_grad=True)
    (gradient,) = torch.autograd.grad(board.log_prob(y).sum(), y)
    assert gradient.tolist() == [[0.0, 0.0]]
    with pytest.raises(InputError, match="cells is 0"):
        Checkerboard(cells=0)
    with pytest.raises(InputError, match="width is inf"):
        Checkerboard(width=math.inf)


@pytest.mark.parametrize("scale", [3.0, 1.0])
def test_funnel_integrates_to_one(scale: float) -> None:
    """Over v on a line and over x on a logarithmic axis, x = ±exp(s), so that neck and mouth both fit."""
    v = midpoints(9.0 * scale, 300)
    s = midpoints(24.0, 960)
    grid = torch.cartesian_prod(v, s)
    points = torch.stack([grid[:, 0], grid[:, 1].exp()], dim=1)
    density = (Funnel(scale=scale).log_prob(points) + grid[:, 1]).exp()
    assert float(2 * density.sum() * (18 * scale / 300) * (48 / 960)) == pytest.approx(1.0, abs=1e-6)


def test_funnel_density_is_the_product_of_its_conditionals() -> None:
    funnel = Funnel(dim=10)
    x = funnel.sample(100, seeded()).double().numpy()
    expected = stats.norm.logpdf(x[:, 0], 0, 3)
    expected += stats.norm.logpdf(x[:, 1:], 0, np.exp(x[:, :1] / 2)).sum(1)
    np.testing.assert_allclose(funnel.log_prob(torch.from_numpy(x)).numpy(), expected, rtol=1e-10)


def test_funnel_samples() -> None:
    funnel = Funnel(dim=3, scale=1.0)
    x = funnel.sample(40_000, seeded())
    assert_agree(x, Funnel(scale=1.0).log_prob, 4.0)
    assert_disagree(x, Funnel(scale=1.05).log_prob, 4.0)
    # The entropy of v, and of x given v, whose mean over v is that at v = 0.
    assert_mean_is(funnel.log_prob(x), -1.5 * math.log(2 * math.pi * math.e))
    y = Funnel().sample(20_000, seeded()).double().numpy()
    assert stats.kstest(y[:, 0] / 3, "norm").pvalue > 1e-3
    assert stats.kstest(y[:, 1] * np.exp(-y[:, 0] / 2), "norm").pvalue > 1e-3


def test_bad_funnels() -> None:
    with pytest.raises(InputError, match="dim is 1"):
        Funnel(dim=1)
    with pytest.raises(InputError, match="scale is 0"):
        Funnel(scale=0.0)
