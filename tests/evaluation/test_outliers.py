"""AUROC, AUPR and FPR@95 of two sets of scores: by counting, by theory, and their standard errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from burnin.core import InputError
from burnin.evaluation.outliers import Values, roc_points, separation


def draw(n: int, m: int, shift: float, seed: int) -> tuple[Values, Values]:
    stream = np.random.default_rng(seed)
    return stream.normal(size=n), stream.normal(size=m) + shift


def test_the_numbers_are_those_of_counting() -> None:
    inside, outside = (x.round(1) for x in draw(40, 25, 1.0, 0))  # rounded, so that some tie
    found = separation(inside, outside, resamples=5)
    pairs = [(o > i) + 0.5 * (o == i) for o in outside for i in inside]
    assert found.auroc.value == pytest.approx(np.mean(pairs))
    allowed = sorted(inside)[math.ceil(0.95 * 40) - 1]
    assert found.threshold == allowed
    assert found.fpr95.value == pytest.approx(np.mean(outside <= allowed))
    swapped = separation(-outside, -inside, resamples=5)
    assert swapped.auroc.value == pytest.approx(found.auroc.value)
    assert swapped.aupr_outside.value == pytest.approx(found.aupr_inside.value)


def test_gaussians_get_what_theory_says() -> None:
    """N(0, 1) against N(δ, 1): AUROC Φ(δ/√2), FPR@95 Φ(z95 - δ); the errors say how near that must be."""
    inside, outside = draw(4000, 3000, 1.5, 1)
    found = separation(inside, outside, resamples=60)
    assert abs(found.auroc.value - norm.cdf(1.5 / math.sqrt(2))) < 4 * found.auroc.error
    assert abs(found.fpr95.value - norm.cdf(norm.ppf(0.95) - 1.5)) < 4 * found.fpr95.error
    false, true = roc_points(inside, outside)
    assert np.interp(0.05, false, true) == pytest.approx(1 - found.fpr95.value, abs=2e-3)


def test_errors_are_the_spread_over_data_sets() -> None:
    """100 sets: a spread is known to 1/sqrt(200) = 7%; the bound is four times that."""
    found = [separation(*draw(60, 40, 1.0, seed), resamples=2).auroc for seed in range(100)]
    spread = np.std([one.value for one in found], ddof=1)
    assert np.mean([one.error for one in found]) == pytest.approx(spread, rel=0.28)


def test_scores_that_say_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="1 of 3 scores outside are not finite"):
        separation(np.zeros(3), np.array([0.0, np.nan, 1.0]))
    with pytest.raises(InputError, match="at least 2"):
        separation(np.zeros(1), np.zeros(3))
