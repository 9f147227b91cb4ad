"""Pictures of a training run: d, r and their correlations, the losses' spread, the β monitors.

Of a run without chains: the loss and the objective's own numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from burnin.diagnostics import MONITORS, ArmDiagnosis, ArmSeries, Correlations, Diagnosis
from burnin.diagnostics.correlation import Values

MONITOR_TITLES = {
    "grad_scale": "grad_scale: near 0, the negatives are out of the game",
    "effective": "effective number of negatives",
    "largest": "largest weight of a negative",
    "positive": "mean weight of the data point itself",
    "gap": "gap f⁺ - f⁻ of data and negatives",
}
DIRECT_TITLES = {
    "loss": "loss of the batch",
    "score": "root mean square of the score -∇E/T",
    "trace": "mean trace of the score's Jacobian",
    "accuracy": "share of points told from noise",
    "log_normaliser": "log of the normaliser, as learned",
    "log_likelihood": "log-likelihood of the batch",
    "critic": "mean square of the critic",
}
"""What objectives without chains log, in the order in which it is shown."""


def diagnosis_figure(diagnosis: Diagnosis, temperature: float) -> Figure:
    """The four panels of the convergent paper (section D, Figs. 1 and 2), one colour for each arm.

    d by update; r by update with the noise's level; cross-correlation of d and r by lag; auto-correlations
    of both by lag with what they would stay within by chance.
    """
    figure = Figure(figsize=(10, 6.2), layout="constrained")
    (top_left, top_right), (low_left, low_right) = figure.subplots(2, 2)
    for index, arm in enumerate(diagnosis.arms):
        color = f"C{index}"
        _draw_d(top_left, arm.series, temperature, color)
        _draw_r(top_right, arm, color)
        if arm.correlations is not None:
            _draw_cross(low_left, arm.series.name, arm.correlations, color)
            _draw_auto(low_right, arm.series.name, arm.correlations, color)
    unit = (
        "lag in updates" if diagnosis.every == 1 else f"lag in logged lines, {diagnosis.every} updates each"
    )
    top_left.axhline(0, color="0.5", linewidth=0.8)
    top_left.set_yscale("symlog", linthresh=1.0)
    top_left.set(title="d / T: a gradient, not a loss; it should settle around 0", xlabel="update")
    top_right.set(title="r: force along the chains; dotted: as long as the noise", xlabel="update")
    _log_where_wide(top_right)
    low_left.set(title="cross-correlation of d and r; left of 0, d comes first; band: by chance", xlabel=unit)
    low_right.set(title="auto-correlation of d (dots) and r (rings); band: d by chance", xlabel=unit)
    for axes in (low_left, low_right):
        axes.axhline(0, color="0.5", linewidth=0.8)
        if not axes.lines[:-1]:
            axes.text(0.5, 0.5, "too few updates", ha="center", va="center", transform=axes.transAxes)
    # No correlation is larger than 1; the band of a one-sided d may be.
    low_right.set_ylim(max(-1.05, low_right.get_ylim()[0]), 1.05)
    _finish([top_left, top_right, low_left, low_right])
    return figure


def losses_figure(diagnosis: Diagnosis) -> Figure | None:
    """Standard deviation and signal-to-noise ratio of each arm's loss by update (hybrid, Fig. 6).

    None where they were not logged.
    """
    arms = [arm.series for arm in diagnosis.arms if {"std", "snr"} <= arm.series.other.keys()]
    if not arms:
        return None
    figure = Figure(figsize=(10, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    for index, series in enumerate(arms):
        for axes, values in ((left, series.other["std"]), (right, np.abs(series.other["snr"]))):
            _draw_smooth(axes, series, values, f"C{index}")
    left.set(title="standard deviation of the loss over the batch", xlabel="update")
    _log_where_wide(left)
    right.set(title="signal to noise of the loss: |mean| / standard deviation", xlabel="update")
    _finish([left, right])
    return figure


def monitors_figure(diagnosis: Diagnosis) -> Figure | None:
    """The monitors of β-weighted contrasts by update (robust, section 3); None where there are none."""
    arms = [(i, arm.series) for i, arm in enumerate(diagnosis.arms) if "grad_scale" in arm.series.other]
    if not arms:
        return None
    figure = Figure(figsize=(10, 5.4), layout="constrained")
    panels = figure.subplots(2, 3).flatten()
    for axes, monitor in zip(panels, MONITORS, strict=False):
        for index, series in arms:
            _draw_smooth(axes, series, series.other[monitor], f"C{index}")
        axes.set(title=MONITOR_TITLES[monitor], xlabel="update")
    for axes in panels[len(MONITORS) :]:
        axes.set_axis_off()
    _finish(list(panels[: len(MONITORS)]))
    return figure


def direct_figure(metrics: Sequence[Mapping[str, Any]]) -> Figure | None:
    """The numbers of a run without chains by update; None where there are none."""
    rows = [row for row in metrics if "loss" in row]
    names = [name for name in DIRECT_TITLES if any(name in row for row in rows)]
    if not rows:
        return None
    figure = Figure(figsize=(10, 2.7), layout="constrained")
    update = np.array([float(row["step"]) for row in rows])
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        values = np.array([float(row.get(name, np.nan)) for row in rows])
        axes.plot(update, values, color="C0", alpha=0.25, linewidth=0.6)
        axes.plot(*smooth(update, values), color="C0")
        axes.set(title=DIRECT_TITLES[name], xlabel="update")
    _finish(list(panels))
    return figure


def smooth(update: Values, values: Values) -> tuple[Values, Values]:
    """A moving average over a fortieth of the run, only where its window is whole.

    A window that is cut at the ends would bend the curve towards its last few values.
    """
    width = max(1, len(values) // 40)
    averaged = np.convolve(values, np.ones(width) / width, mode="valid")
    middle = (width - 1) / 2
    low, high = int(np.floor(middle)), int(np.ceil(middle))
    return (update[low : low + len(averaged)] + update[high : high + len(averaged)]) / 2, averaged


def _draw_d(axes: Axes, series: ArmSeries, temperature: float, color: str) -> None:
    d = series.d / temperature
    axes.plot(series.update, d, color=color, alpha=0.25, linewidth=0.6)
    axes.plot(*smooth(series.update, d), color=color, label=series.name)


def _draw_r(axes: Axes, arm: ArmDiagnosis, color: str) -> None:
    axes.plot(arm.series.update, arm.series.r, color=color, label=arm.series.name, linewidth=0.8)
    if arm.noise_level is not None:
        axes.plot(arm.series.update, arm.noise_level, color=color, linestyle=":", linewidth=1.2)


def _draw_cross(axes: Axes, name: str, found: Correlations, color: str) -> None:
    lags = np.arange(len(found.cross)) - len(found.cross) // 2
    axes.axhspan(-found.cross_bound, found.cross_bound, color=color, alpha=0.12, linewidth=0)
    axes.plot(lags, found.cross, ".-", color=color, label=name)


def _draw_auto(axes: Axes, name: str, found: Correlations, color: str) -> None:
    lags = np.arange(len(found.d))
    axes.fill_between(lags[1:], -found.d_bounds, found.d_bounds, color=color, alpha=0.12, linewidth=0)
    axes.plot(lags, found.d, ".-", color=color, label=name)
    axes.plot(lags, found.r, "o--", color=color, markersize=4, markerfacecolor="white", linewidth=0.8)


def _draw_smooth(axes: Axes, series: ArmSeries, values: Values, color: str) -> None:
    """The smoothed curve of each stretch without gaps: a β that begins at 0 has no monitors yet."""
    known = np.isfinite(values)
    edges = [0, *(np.flatnonzero(np.diff(known)) + 1).tolist(), len(values)]
    label: str | None = series.name
    for start, stop in pairwise(edges):
        if known[start]:
            axes.plot(*smooth(series.update[start:stop], values[start:stop]), color=color, label=label)
            label = None


def _log_where_wide(axes: Axes) -> None:
    """A logarithmic axis where the curves span an order of magnitude; a linear one reads better else."""
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in axes.lines])
    if values.min() > 0 and values.max() > 10 * values.min():
        axes.set_yscale("log")


def _finish(panels: Sequence[Axes]) -> None:
    for axes in panels:
        axes.title.set_fontsize(9)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False, fontsize=8)
