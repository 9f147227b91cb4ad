"""The figure of a classifier: reliability, confusion, and what attacks leave."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from burnin.evaluation.calibration import Classed, Reliability
from burnin.report import figures

RADII = (0.0, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3)
"""Of attacks, in halves of the range from black to white."""
MOST_NAMED = 20


def classes_figure(
    found: Classed,
    probabilities: Tensor,
    labels: Tensor,
    names: Sequence[str],
    attacked: Sequence[float] | None = None,
) -> Figure:
    """Confidence against accuracy; which classes are taken for which; accuracy by the attack's radius."""
    wide = 2 if attacked is None else 3
    figure = Figure(figsize=(4.6 * wide, 4.2), layout="constrained")
    panels = figure.subplots(1, wide)
    draw_reliability(panels[0], found.reliability)
    panels[0].set_title(f"reliability; calibration error {found.ece.value:.3f}", fontsize=10)
    _confusion(panels[1], probabilities.argmax(1), labels, names)
    if attacked is not None:
        panels[2].plot(RADII, attacked, "o-", color=figures.SAMPLES)
        panels[2].set(
            title="accuracy under attack (PGD, ℓ∞)", xlabel="radius; black to white is 2", ylim=(-0.02, 1.02)
        )
    return figure


def draw_reliability(axes: Axes, found: Reliability) -> None:
    """Accuracy by confidence, with bars of what chance leaves open; on the line where calibrated."""
    error = np.sqrt(np.maximum(found.accuracy * (1 - found.accuracy), 0.25 / found.count) / found.count)
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8)
    axes.errorbar(found.confidence, found.accuracy, error, fmt="o", color=figures.SAMPLES, markersize=4)
    axes.set(xlabel="confidence", ylabel="accuracy", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))


def _confusion(axes: Axes, chosen: Tensor, labels: Tensor, names: Sequence[str]) -> None:
    classes = len(names)
    table = np.zeros((classes, classes))
    np.add.at(table, (labels.numpy(), chosen.numpy()), 1)
    share = table / np.maximum(table.sum(1, keepdims=True), 1)
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    axes.set(xlabel="taken for", ylabel="class")
    axes.set_title("share of each class", fontsize=10)
    if classes <= MOST_NAMED:
        axes.set_xticks(range(classes), [figures.label(name, 10) for name in names], rotation=60, fontsize=7)
        axes.set_yticks(range(classes), [figures.label(name, 10) for name in names], fontsize=7)
        for row, column in zip(*np.nonzero(share >= 0.005), strict=True):
            color = "white" if share[row, column] > 0.5 else "black"
            text = f"{100 * share[row, column]:.0f}"
            axes.text(column, row, text, ha="center", va="center", fontsize=6, color=color)
