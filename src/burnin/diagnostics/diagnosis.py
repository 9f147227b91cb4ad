"""The diagnostics of a training run, from its logged metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from burnin.core import InputError
from burnin.diagnostics.balance import Balance, ChainNoise, balance
from burnin.diagnostics.collapse import Collapse, Updates, count_updates, find_collapses
from burnin.diagnostics.correlation import (
    WINDOW,
    Values,
    auto_correlations,
    chance_bounds,
    cross_bound,
    cross_correlations,
    standardised,
    unit_mean_square,
)
from burnin.diagnostics.oscillation import Oscillation, chance_quantile, classify

MONITORS = ("grad_scale", "effective", "largest", "positive", "gap")
"""What a β-weighted contrast logs (robust, section 3)."""

WEIGHTED = (
    "the contrast is β-weighted, so d, the difference of the unweighted means, is no gradient and need not "
    "settle around 0"
)


@dataclass(frozen=True)
class ArmSeries:
    """What was logged of one arm, line by line.

    Attributes:
        name: the arm.
        update: the update of each line.
        d: difference of mean energies of data and negatives.
        r: mean norm of the energy's gradient along the chains.
        other: whatever else was logged by this arm's name: std, snr, step_size, the β monitors; NaN in
            lines that lack it.
    """

    name: str
    update: Values
    d: Values
    r: Values
    other: Mapping[str, Values]


@dataclass(frozen=True)
class Correlations:
    """Correlations over the window, by lag in units of logged lines.

    Attributes:
        d: auto-correlations of d at lags 0, 1, …
        r: auto-correlations of r.
        d_bounds: how far from 0 those of d at lags 1, 2, … may lie by chance (`chance_bounds`).
        r_bounds: likewise of r.
        cross: cross-correlation of d with r at lags -15 … 15; at negative lags d comes first.
        cross_bound: how far from 0 it may lie by chance.
    """

    d: Values
    r: Values
    d_bounds: Values
    r_bounds: Values
    cross: Values
    cross_bound: float


@dataclass(frozen=True)
class ArmDiagnosis:
    """What is known of one arm.

    Attributes:
        series: what was logged.
        num_window: how many of the last lines everything but `updates` and `collapses` is told from.
        weighted: whether its contrast is β-weighted. d, the difference of the unweighted means, is then
            no gradient and need not settle around 0, so neither the oscillation nor the kinds of updates
            are told from it.
        correlations: None where fewer than three lines were logged.
        oscillation: its kind.
        updates: expansions and contractions over all lines.
        recent: the same over the window.
        collapses: times in which d ran away downwards.
        balance: of r with the noise; None where the noise is not known or no step was taken.
        noise_level: the r at which drift and noise of a step are as long, line by line; None likewise.
        std: standard deviation over the batch of the loss, the window's median (hybrid, Fig. 6A).
        snr: mean over standard deviation of the loss, the window's median of |d| / std (Fig. 6B).
    """

    series: ArmSeries
    num_window: int
    weighted: bool
    correlations: Correlations | None
    oscillation: Oscillation
    updates: Updates
    recent: Updates
    collapses: list[Collapse]
    balance: Balance | None
    noise_level: Values | None
    std: float | None
    snr: float | None


@dataclass(frozen=True)
class Diagnosis:
    """The diagnostics of a run.

    Attributes:
        arms: one for each.
        every: updates between two logged lines, the unit of every lag.
    """

    arms: list[ArmDiagnosis]
    every: int

    def as_dict(self) -> dict[str, Any]:
        """Everything but the series themselves, as JSON takes it."""
        return {
            "every": self.every,
            "arms": {arm.series.name: _arm_dict(arm) for arm in self.arms},
        }


def read_series(metrics: Iterable[Mapping[str, Any]]) -> list[ArmSeries]:
    """The arms' series from the lines of a metrics.jsonl; lines without numbers (events) are left out.

    Raises:
        InputError: when d or r of a line is missing or not finite.
    """
    rows = [row for row in metrics if "loss" in row]
    names = sorted({key.removeprefix("d/") for row in rows for key in row if key.startswith("d/")})
    update = np.array([float(row["step"]) for row in rows])

    def column(key: str) -> Values:
        return np.array([float(row.get(key, np.nan)) for row in rows])

    found = []
    for name in names:
        d, r = column(f"d/{name}"), column(f"r/{name}")
        whole = np.isfinite(d) & np.isfinite(r)
        if not whole.all():
            at = int(update[np.argmin(whole)])
            raise InputError(f"d/{name} or r/{name} of update {at} is missing or not finite in the metrics")
        keys = {k.rpartition("/")[0] for row in rows for k in row if k.endswith(f"/{name}")} - {"d", "r"}
        found.append(ArmSeries(name, update, d, r, {k: column(f"{k}/{name}") for k in sorted(keys)}))
    return found


def diagnose(
    metrics: Iterable[Mapping[str, Any]], noise: Mapping[str, ChainNoise] | None = None
) -> Diagnosis:
    """Everything that d, r and the losses say about a run.

    Arguments:
        metrics: the lines of its metrics.jsonl.
        noise: of each arm's chains, to balance r with; arms without it are not balanced.
    """
    series = read_series(metrics)
    every = _every(series[0].update[-WINDOW:]) if series else 1
    return Diagnosis([_diagnose_arm(one, every, (noise or {}).get(one.name)) for one in series], every)


def _diagnose_arm(series: ArmSeries, every: int, noise: ChainNoise | None) -> ArmDiagnosis:
    d, r = series.d[-WINDOW:], series.r[-WINDOW:]
    weighted = bool(np.isfinite(series.other.get("grad_scale", np.array([np.nan]))[-WINDOW:]).any())
    if weighted:
        oscillation = Oscillation("unknown", WEIGHTED, len(d))
    elif every == 1:
        oscillation = classify(d)
    else:
        reason = (
            f"only one update in {every} was logged (run.log_every), so lag 1 is not the next update; "
            "set run.log_every=1 to tell the oscillation"
        )
        oscillation = Oscillation("unknown", reason, len(d))
    step_size = series.other.get("step_size")
    found = level = None
    if noise is not None and step_size is not None and r.any():
        found, level = balance(r, step_size[-WINDOW:], noise), noise.level(step_size)
    return ArmDiagnosis(
        series=series,
        num_window=len(d),
        weighted=weighted,
        correlations=_correlate(d, r) if len(d) > 2 else None,
        oscillation=oscillation,
        updates=count_updates(series.d),
        recent=count_updates(d),
        collapses=find_collapses(series.update.astype(int).tolist(), series.d),
        balance=found,
        noise_level=level,
        std=_median(series.other.get("std")),
        snr=_median(series.other.get("snr")),
    )


def _correlate(d: Values, r: Values) -> Correlations:
    scaled_d, scaled_r, quantile = unit_mean_square(d), standardised(r), chance_quantile()
    cross = cross_correlations(scaled_d, scaled_r)
    of_d, of_r = auto_correlations(scaled_d), auto_correlations(scaled_r)
    return Correlations(
        of_d,
        of_r,
        chance_bounds(scaled_d, of_d, quantile),
        chance_bounds(scaled_r, of_r, quantile),
        cross,
        cross_bound(scaled_d, scaled_r, chance_quantile(len(cross))),
    )


def _every(update: Values) -> int:
    """Updates between two lines: the commonest distance; the last line of a run may lie nearer."""
    gaps = np.diff(update).astype(int)
    if len(gaps) == 0:
        return 1
    values, counts = np.unique(gaps, return_counts=True)
    # A single gap among consecutive updates makes the lags across it wrong by little; most lines decide.
    return int(values[np.argmax(counts)])


def _median(values: Values | None) -> float | None:
    if values is None:
        return None
    known = values[-WINDOW:][np.isfinite(values[-WINDOW:])]
    return float(np.median(np.abs(known))) if len(known) else None


def _arm_dict(arm: ArmDiagnosis) -> dict[str, Any]:
    correlations = arm.correlations
    return {
        "logged": len(arm.series.d),
        "window": arm.num_window,
        "weighted": arm.weighted,
        "d": float(arm.series.d[-1]),
        "r": float(np.median(arm.series.r[-WINDOW:])),
        "oscillation": asdict(arm.oscillation),
        "updates": asdict(arm.updates),
        "recent": asdict(arm.recent),
        "collapses": [asdict(collapse) for collapse in arm.collapses],
        "balance": asdict(arm.balance) if arm.balance is not None else None,
        "std": arm.std,
        "snr": arm.snr,
        "correlations": None
        if correlations is None
        else {
            name: values.tolist() if isinstance(values, np.ndarray) else values
            for name, values in asdict(correlations).items()
        },
    }
