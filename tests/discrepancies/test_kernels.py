"""Kernel discrepancies against closed forms, automatic derivatives, and their level under the model."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import Tensor

from burnin.core import InputError
from burnin.discrepancies.finite_set import NULLS, Null, fit_locations, fssd, stein_features
from burnin.discrepancies.kernel_settings import KernelSettings, fitted_kernel
from burnin.discrepancies.kernelised import (
    FACTORS,
    LinearKSD,
    effective_share,
    ksd,
    linear_ksd,
    normal_cdf,
    normal_quantile,
    optimise_bandwidth,
)
from burnin.discrepancies.kernels import (
    RBF,
    InverseMultiquadric,
    Kernel,
    median_bandwidth,
    stein_kernel,
    stein_kernel_of_pairs,
)
from burnin.discrepancies.models import Points
from tests.discrepancies.gaussians import SHIFT, rightly_modelled, shifted, stream, within_binomial

KERNELS: list[Kernel] = [RBF(1.3), InverseMultiquadric(0.8), InverseMultiquadric(1.5, exponent=-0.3)]
KSD_OF_SHIFT = 0.45 * (1.3**2 / (1.3**2 + 2))
"""‖shift‖² E k(x, x'), where x - x' is N(0, 2) in two dimensions."""


def value_of(kernel: Kernel, x: Tensor, y: Tensor) -> Tensor:
    return kernel.derivatives((x - y).square().sum()).value


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_stein_kernel_is_equation_5_by_automatic_derivatives(kernel: Kernel) -> None:
    left, right = shifted(3, seed=1), shifted(4, seed=2)
    got = stein_kernel(kernel, left, right)
    for i in range(3):
        for j in range(4):
            x, y, s, t = left.x[i], right.x[j], left.scores[i], right.scores[j]
            k = value_of(kernel, x, y)
            of_pair = partial(value_of, kernel)
            by_x = torch.func.grad(of_pair)(x, y)
            by_y = torch.func.grad(of_pair, argnums=1)(x, y)
            mixed = torch.func.jacrev(torch.func.grad(of_pair), argnums=1)(x, y)
            wanted = k * (s @ t) + s @ by_y + by_x @ t + mixed.trace()
            assert got[i, j].item() == pytest.approx(wanted.item(), rel=1e-9)
    pairs = stein_kernel_of_pairs(kernel, left, right.rows(0, 3))
    torch.testing.assert_close(pairs, got[:, :3].diagonal())


def test_ksd_of_two_gaussians_is_the_closed_form() -> None:
    result = ksd(shifted(3000), RBF(1.3))
    assert abs(result.u - KSD_OF_SHIFT) < 4 * result.sigma / math.sqrt(3000)
    assert result.sigma / math.sqrt(3000) < 0.1 * KSD_OF_SHIFT


def test_linear_ksd_of_two_gaussians_is_the_closed_form() -> None:
    result = linear_ksd(shifted(200_000), RBF(1.3))
    error = result.values.std().item() / math.sqrt(len(result.values))
    assert abs(result.mean - KSD_OF_SHIFT) < 4 * error
    assert error < 0.05 * KSD_OF_SHIFT


def test_fssd_of_two_gaussians_is_the_closed_form() -> None:
    n, h2 = 5000, 1.3**2
    locations = torch.tensor([[0.0, 0.0], [1.0, -1.0], [0.5, 2.0]], dtype=torch.float64)
    means = (h2 / (h2 + 1)) * torch.exp(-locations.square().sum(1) / (2 * (h2 + 1)))
    wanted = (SHIFT.square().sum() * means.square().sum() / locations.numel()).item()
    result = fssd(shifted(n), locations, RBF(1.3))
    assert abs(result.value - wanted) < 4 * result.sigma / math.sqrt(n)
    assert result.sigma / math.sqrt(n) < 0.1 * wanted


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("block", [1, 7, 64, 1000])
def test_blocks_give_what_the_whole_matrix_gives(kernel: Kernel, block: int) -> None:
    n, draws = 65, 20
    points = shifted(n)
    h = stein_kernel(kernel, points, points)
    signs = torch.empty(n, draws, dtype=torch.int8).random_(0, 2, generator=stream(3)).double() * 2 - 1
    result = ksd(points, kernel, num_bootstrap=draws, generator=stream(3), block=block)
    assert result.v == pytest.approx(h.mean().item(), rel=1e-10)
    off = h - torch.diag(h.diagonal())
    assert result.u == pytest.approx(off.sum().item() / (n * (n - 1)), rel=1e-10)
    torch.testing.assert_close(result.row_means, off.sum(1) / (n - 1))
    torch.testing.assert_close(result.bootstrap, ((signs.T @ off) * signs.T).sum(1) / (n * (n - 1)))


def test_the_data_may_lie_far_from_zero() -> None:
    points = shifted(50)
    moved = Points(points.x + 1e4, points.scores)
    assert ksd(moved, RBF(1.0)).u == pytest.approx(ksd(points, RBF(1.0)).u, rel=1e-6)


def test_ksd_keeps_its_level() -> None:
    level, trials = 0.1, 200
    count = 0
    for trial in range(trials):
        points = rightly_modelled(60, seed=trial)
        count += ksd(points, RBF(1.0), num_bootstrap=199, generator=stream(trial)).p_value <= level
    assert within_binomial(count, trials, level)


def test_linear_ksd_keeps_its_level() -> None:
    level, trials = 0.1, 400
    count = sum(
        linear_ksd(rightly_modelled(400, seed=trial), RBF(1.0)).p_value <= level for trial in range(trials)
    )
    assert within_binomial(count, trials, level)


@pytest.mark.parametrize("null", NULLS)
def test_fssd_keeps_its_level(null: Null) -> None:
    level, trials = 0.1, 200
    locations = torch.randn(3, 2, generator=stream(8), dtype=torch.float64)
    count = 0
    for trial in range(trials):
        points = rightly_modelled(200, seed=trial)
        result = fssd(points, locations, RBF(1.0), num_simulations=199, null=null, generator=stream(trial))
        count += result.p_value <= level
    assert within_binomial(count, trials, level)


def test_the_bootstrap_draws_the_null_itself() -> None:
    """The mean of the draws is 0 and their variance that of u under the model."""
    n = 300
    result = ksd(rightly_modelled(n, 0), RBF(1.0), num_bootstrap=4000, generator=stream())
    draws = result.bootstrap
    assert abs(draws.mean().item()) < 4 * draws.std().item() / math.sqrt(len(draws))
    h = stein_kernel(RBF(1.0), *(2 * [rightly_modelled(n, 0)]))
    off = h - torch.diag(h.diagonal())
    wanted = 2 * off.square().sum().item() / (n * (n - 1)) ** 2
    assert draws.var().item() == pytest.approx(wanted, rel=0.2)


def test_fssd_keeps_its_level_with_more_features_than_points() -> None:
    """150 features of 100 points: the covariance's estimated spectrum is too wide, signs do not need it."""
    level, trials, dim = 0.1, 400, 30
    locations = torch.randn(5, dim, generator=stream(8), dtype=torch.float64)
    counts = dict.fromkeys(NULLS, 0)
    for trial in range(trials):
        x = torch.randn(100, dim, generator=stream(trial), dtype=torch.float64)
        for null in NULLS:
            result = fssd(
                Points(x, -x), locations, RBF(8.0), num_simulations=199, null=null, generator=stream(trial)
            )
            counts[null] += result.p_value <= level
    assert within_binomial(counts["signs"], trials, level)
    assert counts["spectrum"] < counts["signs"]


def test_signs_have_the_variance_of_pairs() -> None:
    points = rightly_modelled(300, 0)
    locations = torch.randn(2, 2, generator=stream(8), dtype=torch.float64)
    result = fssd(points, locations, RBF(1.0), num_simulations=20_000, generator=stream(1))
    products = result.features @ result.features.T
    pairs = products.square().sum() - products.diagonal().square().sum()
    assert abs(result.null.mean().item()) < 4 * result.null.std().item() / math.sqrt(20_000)
    assert result.null.var().item() == pytest.approx(2 * pairs.item() / 299**2, rel=0.1)


def test_the_simulated_null_has_the_variance_of_its_eigenvalues() -> None:
    points = rightly_modelled(300, 0)
    locations = torch.randn(2, 2, generator=stream(8), dtype=torch.float64)
    result = fssd(points, locations, RBF(1.0), num_simulations=20_000, null="spectrum", generator=stream(1))
    weights = torch.linalg.eigvalsh(torch.cov(result.features.T))
    assert abs(result.null.mean().item()) < 4 * result.null.std().item() / math.sqrt(20_000)
    assert result.null.var().item() == pytest.approx(2 * weights.square().sum().item(), rel=0.1)
    for null in NULLS:
        few = fssd(points.rows(0, 3), locations, RBF(1.0), num_simulations=10, null=null, generator=stream(1))
        assert few.null.isfinite().all()


def test_fitted_locations_are_worth_the_fit() -> None:
    points, kernel = shifted(300, 0.3 * SHIFT), RBF(1.0)
    generator = stream(2)
    locations, fitted = fit_locations(points, kernel, generator=generator, num_locations=2)
    fresh = shifted(300, 0.3 * SHIFT, seed=5)
    chance = torch.randn(2, 2, generator=stream(3), dtype=torch.float64) * 2

    def power(where: Tensor, k: Kernel) -> float:
        result = fssd(fresh, where, k)
        return result.value / result.sigma

    assert power(locations, fitted) > power(chance, kernel)
    same, held = fit_locations(points, kernel, generator=stream(2), num_locations=2, fit_bandwidth=False)
    assert held.bandwidth == pytest.approx(1.0)
    assert stein_features(points, same, held).shape == (300, 4)


def test_the_best_bandwidth_is_no_worse_than_the_first() -> None:
    points = shifted(150)
    for criterion in ("power", "discrepancy"):
        best = optimise_bandwidth(points, RBF(0.2), criterion)
        first, second = ksd(points, RBF(0.2)), ksd(points, best)
        if criterion == "power":
            assert second.u / second.sigma > first.u / first.sigma
        else:
            assert second.u > first.u


def test_the_power_foretold_is_the_power_found() -> None:
    """The normal law of u under a wrong model against the rejections of fresh data sets."""
    n, trials, shift = 150, 100, 0.5 * SHIFT
    foretold = ksd(shifted(4000, shift), RBF(1.3), num_bootstrap=500, generator=stream(1)).power(n, 0.05)
    found = sum(
        ksd(shifted(n, shift, seed=t), RBF(1.3), num_bootstrap=199, generator=stream(t)).p_value <= 0.05
        for t in range(1, trials + 1)
    )
    assert 0.3 < foretold < 0.99
    assert within_binomial(found, trials, foretold)


def test_the_median_is_of_distances_between_different_points() -> None:
    x = torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    assert median_bandwidth(x, stream()) == pytest.approx(math.sqrt(18))
    many = torch.randn(3000, 1, generator=stream())
    assert median_bandwidth(many, stream()) == pytest.approx(math.sqrt(2) * 0.6745, rel=0.1)


def test_the_normal_law_is_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    for x in (-8.0, -1.0, 0.3, 2.5):
        assert normal_cdf(x) == pytest.approx(stats.norm.cdf(x), rel=1e-12)
    assert normal_quantile(0.975) == pytest.approx(stats.norm.ppf(0.975), rel=1e-9)


def test_wrong_input_is_told() -> None:
    one = shifted(1)
    with pytest.raises(InputError, match="at least 2 points"):
        ksd(one, RBF(1.0))
    with pytest.raises(InputError, match="at least 4 points"):
        linear_ksd(one, RBF(1.0))
    with pytest.raises(InputError, match="give it a generator"):
        ksd(shifted(5), RBF(1.0), num_bootstrap=3)
    with pytest.raises(InputError, match="give it a generator"):
        fssd(shifted(5), torch.zeros(1, 2), RBF(1.0), num_simulations=3)
    with pytest.raises(InputError, match="between -1 and 0"):
        InverseMultiquadric(1.0, exponent=-1.5)
    with pytest.raises(InputError, match="coincide"):
        median_bandwidth(torch.zeros(5, 2), stream())
    with pytest.raises(InputError, match="needs the bootstrap"):
        ksd(shifted(5), RBF(1.0)).power(5, 0.05)


def test_the_linear_test_has_a_bandwidth_at_which_enough_pairs_count() -> None:
    """The most powerful by chance is often so narrow that the mean of h is one of a few pairs."""
    counting: dict[bool, list[float]] = {False: [], True: []}
    for seed in range(6):
        for in_pairs, counts in counting.items():
            points = rightly_modelled(500, seed=seed)
            rest, kernel = fitted_kernel(
                points, KernelSettings(), stream(), standardise=True, in_pairs=in_pairs
            )
            counts.append(effective_share(rest, kernel) * (len(rest.x) // 2))
    assert min(counting[False]) < 10
    assert min(counting[True]) > 20  # chosen for 30 by the training points, counted on the others
    none_is_enough = optimise_bandwidth(rightly_modelled(50, seed=3), RBF(1.0), least_share=1.0)
    shares = [effective_share(rightly_modelled(50, seed=3), RBF(factor)) for factor in FACTORS]
    assert float(none_is_enough.bandwidth) == pytest.approx(FACTORS[shares.index(max(shares))])


def test_the_linear_test_knows_of_skewness() -> None:
    """Means of a skewed variable of mean 0: the normal law rejects too rarely, the corrected less so."""
    level, trials = 0.05, 2000
    draws = torch.randn(trials, 100, generator=stream(4), dtype=torch.float64).square().pow(2) - 3
    results = [LinearKSD(row) for row in draws]
    assert not within_binomial(sum(result.normal_p_value <= level for result in results), trials, level)
    plain = sum(result.normal_p_value <= level for result in results) / trials
    better = sum(result.p_value <= level for result in results) / trials
    assert abs(better - level) < abs(plain - level) / 2
