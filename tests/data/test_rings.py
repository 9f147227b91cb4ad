from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import special, stats

from burnin.core import InputError
from burnin.data import Rings
from tests.data.grids import (
    assert_agree,
    assert_disagree,
    assert_mean_is,
    entropy,
    midpoints,
    total_mass,
)


def draws(rings: Rings, n: int, seed: int = 0) -> torch.Tensor:
    return rings.sample(n, torch.Generator().manual_seed(seed))


def test_paper_settings() -> None:
    rings = Rings.paper()
    assert rings == Rings((1.0, 2.0, 3.0), sd=0.1, thin_sd=0.01, thin_dims=7, thick_dims=1)
    assert rings.dim == 10
    assert Rings.four() == Rings((1.0, 2.0, 3.0, 4.0), sd=0.15)
    assert Rings.four().dim == 2


@pytest.mark.parametrize(
    ("rings", "half"),
    [(Rings.paper().plane(), 4.0), (Rings.four(), 5.5), (Rings((0.2,), sd=0.5), 4.5)],
)
def test_plane_integrates_to_one(rings: Rings, half: float) -> None:
    assert total_mass(rings.log_prob, half, 400) == pytest.approx(1.0, abs=1e-7)


def test_three_dimensions_integrate_to_one() -> None:
    rings = Rings((1.0,), sd=0.3, thin_sd=0.1, thin_dims=1)
    x, z = midpoints(3.0, 120), midpoints(0.8, 80)
    mass = rings.log_prob(torch.cartesian_prod(x, x, z)).exp().sum() * (6 / 120) ** 2 * (1.6 / 80)
    assert float(mass) == pytest.approx(1.0, abs=1e-7)


def test_equals_the_integral_over_the_angle() -> None:
    """log_prob against the definition of A.1: the mean over z and φ of a 10-D Gaussian, by brute force."""
    rings = Rings.paper()
    x = draws(rings, 20).double()
    x[10:] *= 1.02  # off the rings too
    angles = 2 * np.pi * np.arange(4000) / 4000  # the trapezoid rule is exact for a periodic integrand
    sds = np.array([0.1] * 3 + [0.01] * 7)
    logs = []
    for radius in (1.0, 2.0, 3.0):
        centres = np.zeros((len(angles), 10))
        centres[:, 0], centres[:, 1] = radius * np.cos(angles), radius * np.sin(angles)
        logs.append(stats.norm.logpdf(x.numpy()[:, None], centres, sds).sum(2))
    expected = special.logsumexp(np.concatenate(logs, axis=1), axis=1) - math.log(3 * len(angles))
    np.testing.assert_allclose(rings.log_prob(x).numpy(), expected, rtol=1e-10)


def test_equals_scipy_bessel() -> None:
    length = np.linspace(0.0, 50.0, 501)
    terms = [
        special.i0e(r * length / 0.15**2) * stats.norm.pdf(length, r, 0.15) / (0.15 * math.sqrt(2 * math.pi))
        for r in (1.0, 2.0, 3.0, 4.0)
    ]
    with np.errstate(divide="ignore"):
        expected = np.log(np.mean(terms, axis=0))
    x = torch.from_numpy(np.stack([0.6 * length, -0.8 * length], axis=1))
    got = Rings.four().log_prob(x).numpy()
    near = np.isfinite(expected) & (expected > -600)  # beyond, scipy's product underflows; ours does not
    assert near.sum() > 60
    np.testing.assert_allclose(got[near], expected[near], rtol=1e-9)
    assert np.isfinite(got).all()


def test_far_away_in_single_precision() -> None:
    rings = Rings.paper().plane()
    x = torch.tensor([[0.0, 0.0], [1e-20, 0.0], [30.0, 40.0], [-3e5, 4e5]], requires_grad=True)
    logs = rings.log_prob(x)
    (score,) = torch.autograd.grad(logs.sum(), x)
    assert bool(score.isfinite().all())
    assert torch.allclose(logs.double(), rings.log_prob(x.detach().double()), rtol=1e-5)
    # Far out only the largest ring counts: the score is -(ℓ - r)/σ² - 1/(2ℓ), towards the centre.
    assert float(score[2].norm()) == pytest.approx((50 - 3) / 0.01 + 1 / 100, rel=1e-4)
    assert score[0].tolist() == [0.0, 0.0]
    assert bool(rings.log_prob(torch.tensor([[math.nan, 0.0]])).isnan().all())


@pytest.mark.parametrize(("rings", "half"), [(Rings.paper(), 3.6), (Rings.four(), 4.8)])
def test_samples_agree_with_the_plane_density(rings: Rings, half: float) -> None:
    x = draws(rings, 100_000)
    assert_agree(x, rings.plane().log_prob, half, cells=60, fine=8)
    # The check has the power to see an sd wrong by 5%, or a ring that is missing.
    assert_disagree(x, Rings(rings.radii, sd=1.05 * rings.sd).log_prob, half, cells=60, fine=8)
    assert_disagree(x, Rings(rings.radii[1:], sd=rings.sd).log_prob, half, cells=60, fine=8)


def test_other_coordinates_are_the_stated_gaussians() -> None:
    x = draws(Rings.paper(), 20_000).double().numpy()
    for column, sd in enumerate([0.1] + [0.01] * 7, start=2):
        assert stats.kstest(x[:, column] / sd, "norm").pvalue > 1e-3 / 8
    correlations = np.corrcoef(np.column_stack([x, np.hypot(x[:, 0], x[:, 1])]).T)
    off_diagonal = correlations[~np.eye(11, dtype=bool)]
    assert np.abs(off_diagonal).max() < stats.norm.isf(0.5e-3 / 55) / math.sqrt(len(x))


def test_mean_log_prob_is_minus_the_entropy() -> None:
    rings = Rings.paper()
    of_plane = entropy(rings.plane().log_prob, half=4.0, count=500)
    of_rest = 8 * 0.5 * math.log(2 * math.pi * math.e) + math.log(0.1) + 7 * math.log(0.01)
    assert_mean_is(rings.log_prob(draws(rings, 20_000)), -(of_plane + of_rest))


def test_radii_are_drawn_equally() -> None:
    length = draws(Rings.paper(), 30_000)[:, :2].norm(dim=1)
    counts = [int(((length - r).abs() < 0.5).sum()) for r in (1.0, 2.0, 3.0)]
    assert sum(counts) == 30_000
    assert stats.chisquare(counts).pvalue > 1e-3


def test_bad_settings() -> None:
    with pytest.raises(InputError, match="radii is empty"):
        Rings((), sd=0.1)
    with pytest.raises(InputError, match="radius is -1"):
        Rings((1.0, -1.0), sd=0.1)
    with pytest.raises(InputError, match="sd is 0"):
        Rings((1.0,), sd=0.0)
    with pytest.raises(InputError, match="thin_sd is nan"):
        Rings((1.0,), sd=0.1, thin_sd=math.nan)
    with pytest.raises(InputError, match="thin_dims is -1"):
        Rings((1.0,), sd=0.1, thin_dims=-1)
