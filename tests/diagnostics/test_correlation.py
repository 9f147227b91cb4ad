"""Correlations against known series, the scalings, and the errors that bounds are made of."""

from __future__ import annotations

import numpy as np
import pytest

from burnin.diagnostics.correlation import (
    LAGS,
    auto_correlations,
    chance_bounds,
    cross_bound,
    cross_correlations,
    mean_error,
    standardised,
    unit_mean_square,
)
from tests.diagnostics.series import auto_regressive, bartlett_error, moving_average, white


def test_d_is_scaled_but_not_centred_and_r_is_standardised() -> None:
    x = 3 + white(500, 0)
    d, r = unit_mean_square(x), standardised(x)
    assert np.mean(d**2) == pytest.approx(1)
    assert d.mean() == pytest.approx(x.mean() / np.sqrt(np.mean(x**2)))
    assert r.mean() == pytest.approx(0, abs=1e-12)
    assert r.std() == pytest.approx(1)
    # A d that stays on one side correlates with itself at every lag, by mean² / mean square.
    assert auto_correlations(d)[LAGS] == pytest.approx(0.9, abs=4 / np.sqrt(500))
    assert abs(auto_correlations(r)[LAGS]) < 4 / np.sqrt(500)


def test_constant_and_huge_series_stay_finite() -> None:
    assert not standardised(np.full(20, 7.0)).any()
    assert not unit_mean_square(np.zeros(20)).any()
    assert auto_correlations(unit_mean_square(np.array([1e300, -1e300] * 50)))[1] == pytest.approx(-0.99)


@pytest.mark.parametrize("lag", [1, 3])
def test_a_moving_average_has_its_known_lags(lag: int) -> None:
    """x_t = e_t + θ e_{t-q} has ρ_q = θ / (1 + θ²) and no other; Bartlett's formula gives the errors."""
    theta, n = -0.6, 20_000
    rho = theta / (1 + theta**2)
    found = auto_correlations(unit_mean_square(moving_average(theta, lag, n, seed=1)))
    assert found[0] == pytest.approx(1)

    def known(k: int) -> float:
        return 1.0 if k == 0 else rho if abs(k) == lag else 0.0

    for k in range(1, LAGS + 1):
        assert abs(found[k] - known(k)) < 4 * bartlett_error(known, k, n), k


def test_cross_correlation_is_that_of_the_peer_and_its_sign_of_lag() -> None:
    e = white(300, 2)
    d, r = unit_mean_square(e[2:]), standardised(-e[:-2])  # r_t = -d_{t-2}: d comes first by two
    cross = cross_correlations(d, r)
    assert len(cross) == 2 * LAGS + 1
    assert int(np.argmin(cross)) - LAGS == -2
    assert cross[LAGS - 2] < -0.95
    full = np.correlate(d, r, "full") / len(d)
    middle = len(full) // 2
    np.testing.assert_allclose(cross, full[middle - LAGS : middle + LAGS + 1], atol=1e-12)


def test_the_bound_of_white_noise_is_a_multiple_of_one_over_root_n() -> None:
    n = 40_000
    x = unit_mean_square(white(n, 3))
    bounds = chance_bounds(x, auto_correlations(x), quantile=3.0)
    assert len(bounds) == LAGS
    # The products u_t² u_{t+k}² have mean 1 and variance 8, so their mean is 1 within 4·sqrt(8/n).
    assert bounds == pytest.approx(3 / np.sqrt(n), rel=4 * np.sqrt(8 / n))


def test_the_bound_grows_where_the_spread_changes() -> None:
    """With σ_t ∝ t the variance of ρ_k is n Σσ⁴ / (Σσ²)² = 9/5 of that of steady noise."""
    n = 40_000
    x = unit_mean_square(white(n, 4) * np.arange(1, n + 1))
    bounds = chance_bounds(x, auto_correlations(x), quantile=1.0)
    # Products have the variance 8·Σσ⁸/Σσ⁴² relative to their mean: 8·(1/9)/(1/25)/n.
    assert bounds**2 * n == pytest.approx(9 / 5, rel=4 * np.sqrt(8 * 25 / 9 / n))


def test_the_bound_counts_shorter_lags() -> None:
    """AR(φ): Bartlett's variance at long lags is (1 + φ²) / (1 - φ²) / n."""
    phi, n = 0.5, 40_000
    x = unit_mean_square(auto_regressive(phi, n, seed=5))
    rho = auto_correlations(x)
    inflation = (chance_bounds(x, rho, quantile=1.0)[-1] * np.sqrt(n)) ** 2
    errors = 4 * np.sqrt(8 / n) + 4 * np.sqrt(LAGS / n)  # of the products, of the sum of ρ²
    assert inflation == pytest.approx((1 + phi**2) / (1 - phi**2), rel=errors)


@pytest.mark.parametrize("phi", [0.0, 0.5, -0.5])
def test_the_error_of_a_mean_counts_correlation(phi: float) -> None:
    n = 200_000
    x = auto_regressive(phi, n, seed=6)
    lags = np.arange(1, LAGS + 1)
    inflation = max(1.0, 1 + 2 * float(np.sum((1 - lags / (LAGS + 1)) * phi**lags)))
    found = mean_error(x) ** 2 * n / x.var()
    # The relative error of Bartlett's estimate of a spectrum at 0 is sqrt(4/3 · K / n).
    assert found == pytest.approx(inflation, rel=4 * np.sqrt(4 / 3 * (LAGS + 1) / n))


@pytest.mark.parametrize(("shift", "smoothness"), [(0.0, 0.0), (3.0, 0.0), (0.0, 0.8), (3.0, 0.8)])
def test_cross_correlations_of_unrelated_series_stay_within_their_bound(
    shift: float, smoothness: float
) -> None:
    """One standard error holds 68% of the values, however smooth r is, and wherever d lies."""
    n, repeats, within = 1000, 400, 0
    for i in range(repeats):
        d = unit_mean_square(shift + auto_regressive(smoothness, n, 2 * i))
        r = standardised(auto_regressive(0.8, n, 2 * i + 1))
        within += abs(cross_correlations(d, r)[LAGS]) < cross_bound(d, r, quantile=1.0)
    assert abs(within / repeats - 0.683) < 4 * np.sqrt(0.683 * 0.317 / repeats)


def test_the_cross_bound_of_white_noise_is_one_over_root_n() -> None:
    d, r = unit_mean_square(white(1000, 0)), standardised(white(1000, 1))
    # The sum of fifteen products of correlations, each of size 1/n, is below 4·sqrt(15)/n.
    assert cross_bound(d, r, quantile=2.0) == pytest.approx(2 / np.sqrt(1000), rel=8 * np.sqrt(15) / 1000)
