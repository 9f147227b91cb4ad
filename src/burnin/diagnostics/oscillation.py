"""Weak and strong oscillation of d (convergent, section D)."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from burnin.core import InputError
from burnin.diagnostics.correlation import (
    LAGS,
    Values,
    auto_correlations,
    chance_bounds,
    mean_error,
    unit_mean_square,
)

Kind = Literal["none yet", "weak", "strong", "unknown"]
LEVEL = 0.01
"""How often an uncorrelated d around 0 may be called anything but weak."""

FEWEST = 50
"""Fewer updates say nothing about fifteen lags."""

SYMMETRIC = 0.1
"""d is approximately symmetric around 0 while its mean is below this share of its root mean square."""

OFF_CENTRE = 0.25
"""Likewise for a d that swings: updates that undo recent ones are told even if its mean is a little off."""

UNSTEADY = 2.0
"""How much larger the bound at lag 1 may be than that of a steady d."""

MEANING: dict[Kind, str] = {
    "none yet": "d does not yet move around 0: the model is still on its way",
    "weak": "d scatters around 0 and does not depend on recent updates, as it does for a converged model",
    "strong": (
        "expansion follows contraction and the other way round: the model changes too quickly for its "
        "chains; lower learning_rate"
    ),
    "unknown": "the oscillation cannot be told",
}


@dataclass(frozen=True)
class Oscillation:
    """How d moves around 0, and what says so.

    Attributes:
        kind: "none yet" (not symmetric around 0, still moving, or its spread not settled), "weak" (symmetric,
            no update depends on another), "strong" (an update tends to undo recent ones), or "unknown".
        reason: the statistic that decided, with its bound, in words.
        num_values: how many updates it was told from.
        mean: mean of d, with its standard error corrected for correlation.
        mean_error: that error.
        positive_share: share of positive d; a d of exactly 0 counts half.
        share_error: the standard error of a share of 1/2, corrected likewise.
        lag: the lag whose auto-correlation lies farthest out, in units of its bound; 0 for unknown.
        statistic: that auto-correlation.
        bound: what it would stay within by chance.
        quantile: how many standard errors every bound is: the two-sided normal quantile of LEVEL, shared
            among the lags looked at (1 … 15), the mean and the share (Bonferroni).
    """

    kind: Kind
    reason: str
    num_values: int
    mean: float = 0.0
    mean_error: float = 0.0
    positive_share: float = 0.5
    share_error: float = 0.0
    lag: int = 0
    statistic: float = 0.0
    bound: float = 0.0
    quantile: float = 0.0


def chance_quantile(tests: int = LAGS + 2, level: float = LEVEL) -> float:
    """The normal quantile that `tests` numbers all stay within, but for a chance of `level` (Bonferroni).

    By default these are fifteen auto-correlations, a mean and a share.

    Example:
        >>> round(chance_quantile(), 2)
        3.44
    """
    return NormalDist().inv_cdf(1 - level / (2 * tests))


def classify(d: Values) -> Oscillation:
    """Tells the oscillation of d, one value for each update without gaps.

    1. strong: some ρ_k, k = 1 … 15, lies below minus its bound: the sign of d tends to be the opposite of
       its recent sign; and d moves around 0, its mean within a quarter of its root mean square and its
       share of positive values within the 1/2 ± 10% that goes with it. A positive ρ at the shortest lags is
       no objection: momentum makes an optimiser swing slowly.
    2. none yet: the mean of d, or its share of positive values, lies farther from 0, or from 1/2, than
       its bound, and not just by a trifle: the paper asks for approximate symmetry, so a mean within a
       tenth of the root mean square, and the share of 1/2 ± 4% that goes with it, are none.
    3. none yet: some ρ_k lies above its bound: d wanders, the model is still moving.
    4. none yet: the spread of d changes so much within the window (a transient) that the bound at lag 1
       is more than twice that of a steady d: nothing found there means nothing.
    5. weak: none of these.

    All bounds hold together, so of 100 series of white noise at most one is expected not to be weak.

    Example:
        >>> noise = np.random.default_rng(0).normal(size=1000)
        >>> classify(noise).kind, classify(noise[1:] - noise[:-1]).kind, classify(noise - 1).kind
        ('weak', 'strong', 'none yet')
    """
    n = len(d)
    if not np.isfinite(d).all():
        raise InputError("d is not finite everywhere; its oscillation cannot be told")
    if n < FEWEST:
        return Oscillation("unknown", f"{n} updates are too few, {FEWEST} are needed", n)
    largest = float(np.abs(d).max())
    if largest == 0:
        return Oscillation("unknown", "d is 0 throughout", n)
    quantile = chance_quantile()
    signs = np.sign(d) / 2
    inside = d / largest  # so that the variance of a collapsing d stays finite
    mean, error = float(inside.mean()), mean_error(inside)
    share, share_error = float(signs.mean()), _share_error(signs)
    scaled = unit_mean_square(d)
    rho = auto_correlations(scaled)
    bounds = chance_bounds(scaled, rho, quantile)
    lag = _farthest(rho[1:] / bounds)

    def told(kind: Kind, reason: str, lag: int) -> Oscillation:
        return Oscillation(
            kind,
            reason,
            n,
            mean=mean * largest,
            mean_error=error * largest,
            positive_share=share + 0.5,
            share_error=share_error,
            lag=lag,
            statistic=float(rho[lag]),
            bound=float(bounds[lag - 1]),
            quantile=quantile,
        )

    rms = float(np.sqrt(np.mean(inside**2)))
    below, above = rho[1:] < -bounds, rho[1:] > bounds
    around = abs(mean) <= OFF_CENTRE * rms and abs(share) <= NormalDist().cdf(OFF_CENTRE) - 0.5
    if below.any() and around:
        lag = _farthest(np.where(below, -rho[1:] / bounds, 0.0))
        return told("strong", f"{_in_words(lag, rho, bounds)}: negative", lag)
    limit = max(quantile * error, SYMMETRIC * rms)
    if abs(mean) > limit:
        size = f"{mean * largest:.3g}, beyond ±{limit * largest:.3g}"
        return told("none yet", f"the mean of d is {size}", lag)
    limit = max(quantile * share_error, NormalDist().cdf(SYMMETRIC) - 0.5)
    if abs(share) > limit:
        return told(
            "none yet", f"the share of positive d is {share + 0.5:.1%}, beyond 50% ± {limit:.1%}", lag
        )
    if above.any():
        lag = _farthest(np.where(above, rho[1:] / bounds, 0.0))
        return told("none yet", f"{_in_words(lag, rho, bounds)}: positive, d still wanders", lag)
    if bounds[0] > UNSTEADY * quantile / np.sqrt(n):
        reason = f"the spread of d changes too much within the {n:,} updates to tell correlations"
        return told("none yet", reason, lag)
    return told("weak", f"{_in_words(lag, rho, bounds)}, and it is the farthest out of lags 1 to {LAGS}", lag)


def _share_error(signs: Values) -> float:
    """The standard error of a share of 1/2, whose signs have variance 1/4, corrected for correlation."""
    spread = float(signs.std())
    return (mean_error(signs) / spread if spread > 0 else len(signs) ** -0.5) / 2


def _farthest(excess: Values) -> int:
    return int(np.argmax(np.abs(excess))) + 1


def _in_words(lag: int, rho: Values, bounds: Values) -> str:
    return (
        f"the auto-correlation of d at lag {lag} is {rho[lag]:+.3f}, by chance within ±{bounds[lag - 1]:.3f}"
    )
