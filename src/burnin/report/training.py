"""Pictures of a training run: d, r and their correlations, the losses' spread, the β monitors.

Of a run without chains: the loss and the objective's own numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from burnin.diagnostics import MONITORS, ArmDiagnosis, ArmSeries, Correlations, Diagnosis
from burnin.diagnostics.correlation import Values
from burnin.report import figures
from burnin.report.drawn import Panel

Draw = Callable[[Axes], None]

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
    for axes, (title, draw) in zip(
        figure.subplots(2, 2).flatten(), _diagnosis_draws(diagnosis, temperature).items(), strict=True
    ):
        draw(axes)
        axes.set_title(title, fontsize=9)
        _finish(axes)
    return figure


def diagnosis_panels(diagnosis: Diagnosis, temperature: float) -> tuple[Panel, ...]:
    """The four panels one by one."""
    draws = _diagnosis_draws(diagnosis, temperature)
    arms = ", ".join(arm.series.name for arm in diagnosis.arms)
    last = ", ".join(f"{a.series.name} {a.series.d[-1] / temperature:.3g}" for a in diagnosis.arms)
    force = ", ".join(f"{a.series.name} {np.median(a.series.r):.3g}" for a in diagnosis.arms)
    seen = (
        f"Curves of d over T by update; at the last update: {last}.",
        f"Curves of r by update; medians: {force}.",
        f"Cross-correlations of d and r by lag, arms {arms}, with the band of chance.",
        f"Auto-correlations of d and of r by lag, arms {arms}, with the band of chance.",
    )
    return tuple(_panel(title, draw, alt) for (title, draw), alt in zip(draws.items(), seen, strict=True))


def losses_panels(diagnosis: Diagnosis) -> tuple[Panel, ...]:
    """Standard deviation and signal-to-noise ratio of each arm's loss by update (hybrid, Fig. 6).

    Empty where they were not logged.
    """
    arms = [(i, a.series) for i, a in enumerate(diagnosis.arms) if {"std", "snr"} <= a.series.other.keys()]
    if not arms:
        return ()

    def draw_std(axes: Axes) -> None:
        for index, series in arms:
            _draw_smooth(axes, series, series.other["std"], f"C{index}")
        _log_where_wide(axes)

    def draw_snr(axes: Axes) -> None:
        for index, series in arms:
            _draw_smooth(axes, series, np.abs(series.other["snr"]), f"C{index}")

    std, snr = (
        ", ".join(f"{series.name} {np.nanmedian(np.abs(series.other[name])):.3g}" for _, series in arms)
        for name in ("std", "snr")
    )
    return (
        _panel("standard deviation of the loss over the batch", draw_std, f"By update; medians: {std}."),
        _panel("signal to noise of the loss: |mean| / deviation", draw_snr, f"By update; medians: {snr}."),
    )


def monitors_panels(diagnosis: Diagnosis) -> tuple[Panel, ...]:
    """The monitors of β-weighted contrasts by update (robust, section 3); empty where there are none."""
    arms = [(i, arm.series) for i, arm in enumerate(diagnosis.arms) if "grad_scale" in arm.series.other]

    def draw_of(monitor: str) -> Draw:
        def draw(axes: Axes) -> None:
            for index, series in arms:
                _draw_smooth(axes, series, series.other[monitor], f"C{index}")

        return draw

    panels = []
    for monitor in MONITORS if arms else ():
        medians = ", ".join(f"{s.name} {np.nanmedian(s.other[monitor]):.3g}" for _, s in arms)
        alt = f"By update; medians: {medians}."
        panels.append(_panel(MONITOR_TITLES[monitor], draw_of(monitor), alt))
    return tuple(panels)


def direct_panels(metrics: Sequence[Mapping[str, Any]]) -> tuple[Panel, ...]:
    """The numbers of a run without chains by update; empty where there are none."""
    rows = [row for row in metrics if "loss" in row]
    names = [name for name in DIRECT_TITLES if any(name in row for row in rows)]
    update = np.array([float(row["step"]) for row in rows])

    def draw_of(values: Values) -> Draw:
        def draw(axes: Axes) -> None:
            axes.plot(update, values, color="C0", alpha=0.25, linewidth=0.6, rasterized=True)
            axes.plot(*smooth(update, values), color="C0")
            axes.set_xlabel("update")

        return draw

    panels = []
    for name in names:
        values = np.array([float(row.get(name, np.nan)) for row in rows])
        alt = f"By update, from {values[0]:.3g} to {values[-1]:.3g}."
        panels.append(_panel(DIRECT_TITLES[name], draw_of(values), alt))
    return tuple(panels)


def smooth(update: Values, values: Values) -> tuple[Values, Values]:
    """A moving average over a fortieth of the run, only where its window is whole.

    A window that is cut at the ends would bend the curve towards its last few values.
    """
    width = max(1, len(values) // 40)
    averaged = np.convolve(values, np.ones(width) / width, mode="valid")
    middle = (width - 1) / 2
    low, high = int(np.floor(middle)), int(np.ceil(middle))
    return (update[low : low + len(averaged)] + update[high : high + len(averaged)]) / 2, averaged


def _diagnosis_draws(diagnosis: Diagnosis, temperature: float) -> dict[str, Draw]:
    """What is drawn in each of the four panels, by their titles."""
    unit = (
        "lag in updates" if diagnosis.every == 1 else f"lag in logged lines, {diagnosis.every} updates each"
    )
    arms = list(enumerate(diagnosis.arms))
    known = [
        (index, arm.series.name, arm.correlations) for index, arm in arms if arm.correlations is not None
    ]

    def draw_d(axes: Axes) -> None:
        for index, arm in arms:
            _draw_d(axes, arm.series, temperature, f"C{index}")
        axes.axhline(0, color="0.5", linewidth=0.8)
        axes.set_yscale("symlog", linthresh=1.0)
        axes.set_xlabel("update")

    def draw_r(axes: Axes) -> None:
        for index, arm in arms:
            _draw_r(axes, arm, f"C{index}")
        axes.set_xlabel("update")
        _log_where_wide(axes)

    def draw_cross(axes: Axes) -> None:
        for index, name, found in known:
            _draw_cross(axes, name, found, f"C{index}")
        _finish_lags(axes, unit)

    def draw_auto(axes: Axes) -> None:
        for index, name, found in known:
            _draw_auto(axes, name, found, f"C{index}")
        _finish_lags(axes, unit)
        # No correlation is larger than 1; the band of a one-sided d may be.
        axes.set_ylim(max(-1.05, axes.get_ylim()[0]), 1.05)

    return {
        "d / T: a gradient, not a loss; it should settle around 0": draw_d,
        "r: force along the chains; dotted: as long as the noise": draw_r,
        "cross-correlation of d and r; left of 0, d comes first; band: by chance": draw_cross,
        "auto-correlation of d (dots) and r (rings); band: d by chance": draw_auto,
    }


def _finish_lags(axes: Axes, unit: str) -> None:
    axes.axhline(0, color="0.5", linewidth=0.8)
    axes.set_xlabel(unit)
    if not axes.lines[:-1]:
        axes.text(0.5, 0.5, "too few updates", ha="center", va="center", transform=axes.transAxes)


def _draw_d(axes: Axes, series: ArmSeries, temperature: float, color: str) -> None:
    d = series.d / temperature
    axes.plot(series.update, d, color=color, alpha=0.25, linewidth=0.6, rasterized=True)
    axes.plot(*smooth(series.update, d), color=color, label=series.name)


def _draw_r(axes: Axes, arm: ArmDiagnosis, color: str) -> None:
    series = arm.series
    axes.plot(series.update, series.r, color=color, label=series.name, linewidth=0.8, rasterized=True)
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
    axes.plot(lags, found.r, "o--", color=color, markersize=4, markerfacecolor="none", linewidth=0.8)


def _draw_smooth(axes: Axes, series: ArmSeries, values: Values, color: str) -> None:
    """The smoothed curve of each stretch without gaps: a β that begins at 0 has no monitors yet."""
    known = np.isfinite(values)
    edges = [0, *(np.flatnonzero(np.diff(known)) + 1).tolist(), len(values)]
    label: str | None = series.name
    for start, stop in pairwise(edges):
        if known[start]:
            axes.plot(*smooth(series.update[start:stop], values[start:stop]), color=color, label=label)
            label = None
    axes.set_xlabel("update")


def _log_where_wide(axes: Axes) -> None:
    """A logarithmic axis where the curves span an order of magnitude; a linear one reads better else."""
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in axes.lines])
    if values.min() > 0 and values.max() > 10 * values.min():
        axes.set_yscale("log")


def _panel(title: str, draw: Draw, alt: str) -> Panel:
    figure, axes = figures.plain(4.8, 2.9)
    draw(axes)
    _finish(axes)
    return Panel(figure, f"{title}. {alt}", title)


def _finish(axes: Axes) -> None:
    if axes.get_legend_handles_labels()[0]:
        figures.key_of(axes)
