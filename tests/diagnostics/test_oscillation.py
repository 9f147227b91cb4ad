"""White noise is weak in 99 of 100 cases; alternating series are strong; drifting ones are none yet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from burnin.core import InputError
from burnin.diagnostics.correlation import LAGS, Values
from burnin.diagnostics.oscillation import FEWEST, LEVEL, chance_quantile, classify
from tests.diagnostics.series import auto_regressive, moving_average, white

SEEDS = 2000


def steady(n: int, seed: int) -> Values:
    return white(n, seed)


def heavy_tailed(n: int, seed: int) -> Values:
    return np.random.default_rng(seed).standard_t(5, size=n)


def growing(n: int, seed: int) -> Values:
    return white(n, seed) * np.linspace(0.2, 1, n)


@pytest.mark.parametrize("make", [steady, heavy_tailed, growing])
@pytest.mark.parametrize("n", [FEWEST, 300, 2000])
def test_uncorrelated_noise_is_weak(n: int, make: Callable[[int, int], Values]) -> None:
    others = sum(classify(make(n, seed)).kind != "weak" for seed in range(SEEDS))
    assert others <= SEEDS * LEVEL + 3 * np.sqrt(SEEDS * LEVEL * (1 - LEVEL))


@pytest.mark.parametrize("n", [200, 2000])
def test_an_alternating_series_is_strong(n: int) -> None:
    for seed in range(100):
        found = classify(auto_regressive(-0.5, n, seed))
        assert found.kind == "strong"
        assert found.lag == 1
        assert found.statistic < -found.bound
        assert "lag 1" in found.reason
        assert f"{found.statistic:+.3f}" in found.reason


def test_a_later_lag_is_named() -> None:
    found = classify(moving_average(-0.8, 4, 2000, seed=0))
    assert (found.kind, found.lag) == ("strong", 4)


def test_a_slow_oscillation_is_strong_though_neighbours_agree() -> None:
    t = np.arange(2000)
    found = classify(np.sin(2 * np.pi * t / 16) + 0.3 * white(2000, 0))
    assert found.kind == "strong"
    assert 4 < found.lag < 12  # where the cosine of period 16 is negative


@pytest.mark.parametrize("seed", range(20))
def test_series_that_still_move_have_none_yet(seed: int) -> None:
    n = 1000
    trend = np.linspace(-1, 1, n)  # through 0, so that neither its mean nor its signs tell
    assert classify(trend + white(n, seed)).kind == "none yet"
    assert classify(auto_regressive(0.5, n, seed)).kind == "none yet"
    assert classify(white(n, seed) - 0.5).kind == "none yet"


def test_one_sided_series_are_named_by_what_is_one_sided() -> None:
    n = 2000
    assert "mean" in classify(white(n, 0) - 0.5).reason
    skewed = np.random.default_rng(0).exponential(size=n) - 1  # mean 0, but 63% are negative
    found = classify(skewed)
    assert found.kind == "none yet"
    assert "share of positive d" in found.reason
    assert found.positive_share == pytest.approx(np.exp(-1), abs=4 * np.sqrt(0.37 * 0.63 / n))


@pytest.mark.parametrize("mean", [0.05, -0.05])
def test_a_trifle_off_0_is_symmetric_though_many_updates_tell_it(mean: float) -> None:
    """A mean of a twentieth of the spread is ten standard errors away after 40,000 updates."""
    found = classify(white(40_000, 0) + mean)
    assert abs(found.mean) > found.quantile * found.mean_error
    assert found.kind == "weak"
    assert classify(white(40_000, 0) + 4 * mean).kind == "none yet"


def test_a_transient_hides_the_rest_and_says_so() -> None:
    d = white(1000, 1)
    d[:10] *= 1000
    found = classify(d)
    assert found.kind == "none yet"
    assert "spread" in found.reason


@pytest.mark.parametrize("factor", [1e-30, 0.1, 1e250])
def test_scale_does_not_matter(factor: float) -> None:
    for d in (white(500, 0), auto_regressive(-0.5, 500, 0), auto_regressive(0.5, 500, 0)):
        plain, scaled = classify(d), classify(factor * d)
        assert (plain.kind, plain.lag) == (scaled.kind, scaled.lag)
        assert scaled.statistic == pytest.approx(plain.statistic)
        assert scaled.bound == pytest.approx(plain.bound)
        assert scaled.mean == pytest.approx(factor * plain.mean)
        assert scaled.mean_error == pytest.approx(factor * plain.mean_error)


def test_sign_does_not_matter_but_for_the_mean() -> None:
    plain, turned = classify(white(500, 3)), classify(-white(500, 3))
    assert (plain.kind, plain.statistic) == (turned.kind, turned.statistic)
    assert plain.mean == -turned.mean
    assert plain.positive_share == pytest.approx(1 - turned.positive_share)


def test_too_few_and_constant_series_are_unknown() -> None:
    assert classify(white(FEWEST - 1, 0)).kind == "unknown"
    assert "too few" in classify(white(FEWEST - 1, 0)).reason
    assert classify(np.zeros(100)).kind == "unknown"
    constant = classify(np.full(100, -2.0))
    assert constant.kind == "none yet"
    assert constant.share_error == pytest.approx(0.5 / np.sqrt(100))
    assert classify(np.array([1.0, -1.0] * 50)).kind == "strong"


def test_non_finite_values_are_refused() -> None:
    with pytest.raises(InputError, match="not finite"):
        classify(np.append(white(100, 0), np.nan))


def test_the_quantile_is_bonferronis() -> None:
    """P(|z| > q) is the level over the number of tests."""
    z = np.abs(np.random.default_rng(0).normal(size=1_000_000))
    share, tests = float(np.mean(z > chance_quantile(10, level=0.5))), 10
    assert abs(share - 0.5 / tests) < 4 * np.sqrt(0.05 * 0.95 / len(z))
    assert chance_quantile() == chance_quantile(LAGS + 2, LEVEL)
