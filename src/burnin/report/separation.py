"""Energies of two data sets: where they lie, and how well a threshold tells them apart."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from burnin.evaluation.outliers import Separation, Values, roc_points
from burnin.report import figures

BINS = 60
EDGE = 0.005
"""Share of the energies at either end that is left out of the picture."""


def separation_figure(
    inside: Values, outside: Values, found: Separation, inside_name: str, outside_name: str
) -> Figure:
    """Histograms of the energies of both sets, and the ROC curve."""
    figure = Figure(figsize=(9.4, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
    draw_energies(left, {inside_name: inside, outside_name: outside}, found.threshold)
    draw_roc(right, inside, outside, found)
    return figure


def draw_energies(axes: Axes, energies: dict[str, Values], threshold: float | None = None) -> None:
    """Histograms over each other, as shares of each set, in bins that both share.

    Far ends are left out, and the key says how much of each set lies there.
    """
    low = min(float(np.quantile(values, EDGE)) for values in energies.values())
    high = max(float(np.quantile(values, 1 - EDGE)) for values in energies.values())
    room = 0.05 * (high - low) or 1.0
    bins = np.linspace(low - room, high + room, BINS + 1)
    for (name, values), color in zip(energies.items(), (figures.DATA, figures.OUTLIERS), strict=False):
        beyond = float(((values < bins[0]) | (values > bins[-1])).mean())
        told = figures.label(name, 44) + (f" ({beyond:.1%} beyond)" if beyond >= 0.001 else "")
        weights = np.full(len(values), 1 / len(values))
        axes.hist(values, bins=bins.tolist(), weights=weights, color=color, alpha=0.55, label=told)
    if threshold is not None:
        axes.axvline(
            threshold, color="0.3", linestyle="--", linewidth=1, label="95% of the inside is left of it"
        )
    axes.set_xlabel("energy / T")
    axes.set_ylabel("share of the set")
    _key_above(axes)


def draw_roc(axes: Axes, inside: Values, outside: Values, found: Separation) -> None:
    """The share of outliers found by the share of false alarms, for all thresholds."""
    false, true = roc_points(inside, outside)
    told = f"AUROC {found.auroc.value:.3f} ± {found.auroc.error:.3f}"
    axes.plot([0, 1], [0, 1], color="0.6", linestyle=":", linewidth=1)
    axes.plot(false, true, color=figures.SAMPLES, label=told)
    axes.plot(
        [0.05],
        [1 - found.fpr95.value],
        "o",
        color="0.3",
        markersize=5,
        label=f"FPR@95 {found.fpr95.value:.3f}",
    )
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_box_aspect(1)
    axes.set_xlabel("share of the inside called outliers")
    axes.set_ylabel("share of the outside called outliers")
    _key_above(axes)


def _key_above(axes: Axes) -> None:
    axes.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0.2)
