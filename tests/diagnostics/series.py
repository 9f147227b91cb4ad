"""Series whose correlations are known, for the tests of this folder."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from burnin.diagnostics.correlation import Values


def white(n: int, seed: int) -> Values:
    return np.random.default_rng(seed).normal(size=n)


def auto_regressive(coefficient: float, n: int, seed: int) -> Values:
    """x_t = coefficient · x_{t-1} + e_t, from its stationary law."""
    e = white(n, seed)
    x = np.empty(n)
    x[0] = e[0] / np.sqrt(1 - coefficient**2)
    for t in range(1, n):
        x[t] = coefficient * x[t - 1] + e[t]
    return x


def moving_average(coefficient: float, lag: int, n: int, seed: int) -> Values:
    """x_t = e_t + coefficient · e_{t-lag}."""
    e = white(n + lag, seed)
    x: Values = e[lag:] + coefficient * e[:-lag]
    return x


def bartlett_error(rho: Callable[[int], float], k: int, n: int, reach: int = 200) -> float:
    """The standard error of the auto-correlation at lag k of a linear process with correlations rho(j)."""
    terms = (
        rho(j) ** 2
        + rho(j + k) * rho(j - k)
        - 4 * rho(k) * rho(j) * rho(j - k)
        + 2 * rho(j) ** 2 * rho(k) ** 2
        for j in range(-reach, reach + 1)
    )
    return math.sqrt(sum(terms) / n)
