"""Auto- and cross-correlations of d and r by lag, and how large they are by chance.

d is scaled to unit mean square and not centred, so that a d which stays on one side of 0 correlates with
itself; r is standardised. Both are the scalings of the convergent paper's plots (section D, Figs. 1 and 2).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

WINDOW = 2000
"""How many of the last logged updates the correlations are taken over."""

LAGS = 15
"""The largest lag."""


def unit_mean_square(d: Values) -> Values:
    """d / sqrt(mean d²), not centred; zeros stay zeros.

    Example:
        >>> unit_mean_square(np.array([3.0, -3.0, 3.0]))
        array([ 1., -1.,  1.])
    """
    largest = float(np.abs(d).max(initial=0.0))
    if largest == 0:
        return np.zeros_like(d)
    inside = d / largest  # first, so that the squares of a collapsing d stay finite
    scaled: Values = inside / np.sqrt(np.mean(inside**2))
    return scaled


def standardised(r: Values) -> Values:
    """(r - mean r) / std r; zeros where r is constant."""
    return unit_mean_square(r - r.mean()) if len(r) and float(np.ptp(r)) > 0 else np.zeros_like(r)


def auto_correlations(scaled: Values, lags: int = LAGS) -> Values:
    """ρ_k = (1/n) Σ u_t u_{t+k} for k = 0 … `lags`, of a series u of unit mean square."""
    n = len(scaled)
    return np.array([float(scaled[: n - k] @ scaled[k:]) / n for k in range(min(lags, n - 1) + 1)])


def cross_correlations(d: Values, r: Values, lags: int = LAGS) -> Values:
    """c_k = (1/n) Σ d_{t+k} r_t for k = -`lags` … `lags`, of scaled series.

    At negative lags d comes first. There c is negative where updates do what they should: a negative d
    enlarges the force that follows, a positive d shrinks it (hybrid, appendix A.3).
    """
    n = len(d)
    reach = min(lags, n - 1)

    def at(k: int) -> float:
        product = d[k:] @ r[: n - k] if k >= 0 else d[: n + k] @ r[-k:]
        return float(product) / n

    return np.array([at(k) for k in range(-reach, reach + 1)])


def chance_bounds(scaled: Values, correlations: Values, quantile: float) -> Values:
    """How far from 0 ρ_1, ρ_2, … of an uncorrelated series may lie: `quantile` standard errors.

    The standard error of white noise is 1/sqrt(n). Two things can make it larger, and both are counted:

        s_k² = (1/n) · max(1, (1/n) Σ u_t² u_{t+k}²) · (1 + 2 Σ_{j<k} ρ_j²)

    the middle factor where the spread of the series changes within the window (it is 1 for a steady one),
    the last where shorter lags are correlated (Bartlett's formula for a moving average of order k - 1).
    """
    n = len(scaled)
    squares = scaled**2
    uneven = [max(1.0, float(squares[: n - k] @ squares[k:]) / n) for k in range(1, len(correlations))]
    shorter = 1 + 2 * np.concatenate([[0.0], np.cumsum(correlations[1:-1] ** 2)])
    bounds: Values = quantile * np.sqrt(np.array(uneven) * shorter[: len(uneven)] / n)
    return bounds


def cross_bound(d: Values, r: Values, quantile: float) -> float:
    """How far from 0 the cross-correlations of unrelated scaled series may lie: `quantile` standard errors.

        s² = (var d / n) · max(1, 1 + 2 Σ_k ρ_k(d) ρ_k(r)),    k = 1 … 15

    (Bartlett), with the auto-correlations of the centred d, since a constant correlates with nothing. Where
    d is white around 0, it is 1/n however smooth r is.
    """
    shared = auto_correlations(standardised(d))[1:] @ auto_correlations(r)[1:]
    return quantile * float(d.std()) * float(np.sqrt(max(1.0, 1 + 2 * float(shared)) / len(d)))


def mean_error(x: Values, lags: int = LAGS) -> float:
    """The standard error of the mean of a correlated series.

        sqrt(var x · max(1, 1 + 2 Σ_k (1 - k/(K+1)) ρ_k) / n),    K = `lags`

    (Newey and West). It is never taken below that of white noise, so that an alternating series, whose
    mean is known better than that, is not called one-sided for a trifle.
    """
    n = len(x)
    if n < 2 or float(np.ptp(x)) == 0:
        return 0.0
    rho = auto_correlations(standardised(x), lags)[1:]
    weights = 1 - np.arange(1, len(rho) + 1) / (len(rho) + 1)
    inflation = max(1.0, 1 + 2 * float(weights @ rho))
    return float(x.std()) * float(np.sqrt(inflation / n))
