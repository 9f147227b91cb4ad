"""How well energies tell two sets apart: AUROC, AUPR and FPR@95, with standard errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from burnin.core import InputError

Values = NDArray[np.float64]
ACCEPTED = 0.95
RESAMPLES = 200


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error."""

    value: float
    error: float


@dataclass(frozen=True)
class Separation:
    """How well a score that is larger for outliers, such as an energy, tells them from what is inside.

    Attributes:
        inside, outside: how many scores of each.
        auroc: the chance that one from outside scores higher than one from inside, ties counting a half.
        aupr_outside: area under precision and recall, outliers being what is looked for.
        aupr_inside: likewise, what is inside being looked for.
        fpr95: share of the outliers that are let in by the threshold that lets in 95% of what is inside.
        threshold: that threshold.
    """

    inside: int
    outside: int
    auroc: Estimate
    aupr_outside: Estimate
    aupr_inside: Estimate
    fpr95: Estimate
    threshold: float


def separation(inside: Values, outside: Values, *, resamples: int = RESAMPLES, seed: int = 0) -> Separation:
    """How well scores tell two sets apart; larger means outside.

    The error of AUROC is that of DeLong et al. (1988): with V(o) the share of inside scores below o and W(i)
    the share of outside scores above i, its square is var V / outside + var W / inside. The others are
    spreads over `resamples` bootstrap sets, in which each side is drawn anew with replacement.

    Raises:
        InputError: when a set has fewer than two scores, or one is not a finite number.

    Example:
        >>> import numpy as np
        >>> found = separation(np.array([0.0, 1.0, 2.0, 3.0]), np.array([2.5, 4.0, 5.0]), resamples=20)
        >>> round(found.auroc.value, 4), found.threshold, round(found.fpr95.value, 4)
        (0.9167, 3.0, 0.3333)
    """
    inside, outside = _checked("inside", inside), _checked("outside", outside)
    generator = np.random.default_rng(seed)
    drawn = np.array(
        [
            _of_resample(generator.choice(inside, len(inside)), generator.choice(outside, len(outside)))
            for _ in range(resamples)
        ]
    )
    errors = drawn.std(axis=0, ddof=1)
    aupr_outside, aupr_inside, fpr95 = _of_resample(inside, outside)
    return Separation(
        inside=len(inside),
        outside=len(outside),
        auroc=Estimate(_auroc(inside, outside), _delong(inside, outside)),
        aupr_outside=Estimate(aupr_outside, float(errors[0])),
        aupr_inside=Estimate(aupr_inside, float(errors[1])),
        fpr95=Estimate(fpr95, float(errors[2])),
        threshold=_threshold(inside),
    )


def roc_points(inside: Values, outside: Values) -> tuple[Values, Values]:
    """False and true positive rates, outliers being positive, for every threshold."""
    from sklearn.metrics import roc_curve

    false, true, _ = roc_curve(*_labelled(inside, outside))
    return false, true


def _auroc(inside: Values, outside: Values) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(*_labelled(inside, outside)))


def _of_resample(inside: Values, outside: Values) -> tuple[float, float, float]:
    from sklearn.metrics import average_precision_score

    truth, score = _labelled(inside, outside)
    looked_for = float(average_precision_score(truth, score))
    kept = float(average_precision_score(1 - truth, -score))
    return looked_for, kept, float((outside <= _threshold(inside)).mean())


def _threshold(inside: Values) -> float:
    """The smallest score that lets in 95% of what is inside."""
    return float(np.quantile(inside, ACCEPTED, method="inverted_cdf"))


def _delong(inside: Values, outside: Values) -> float:
    below = (_share(inside, outside, "left") + _share(inside, outside, "right")) / 2
    above = 1 - (_share(outside, inside, "left") + _share(outside, inside, "right")) / 2
    return float(np.sqrt(below.var(ddof=1) / len(outside) + above.var(ddof=1) / len(inside)))


def _share(among: Values, of: Values, side: str) -> Values:
    """The share of `among` that is below (left), or not above (right), each of `of`."""
    return np.searchsorted(np.sort(among), of, side) / len(among)  # type: ignore[call-overload, no-any-return]


def _labelled(inside: Values, outside: Values) -> tuple[NDArray[np.int64], Values]:
    truth = np.concatenate([np.zeros(len(inside), np.int64), np.ones(len(outside), np.int64)])
    return truth, np.concatenate([inside, outside])


def _checked(name: str, scores: Values) -> Values:
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 1 or len(scores) < 2:
        raise InputError(f"the scores {name} are {scores.shape}; wanted a list of at least 2")
    bad = int((~np.isfinite(scores)).sum())
    if bad:
        raise InputError(
            f"{bad} of {len(scores)} scores {name} are not finite: the energy diverges there; give data at "
            "which it does not"
        )
    return scores
