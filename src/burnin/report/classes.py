"""The figure of a classifier: reliability, confusion, and what attacks leave."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from burnin.evaluation.calibration import Reliability
from burnin.evaluation.classes import HeldOutClasses
from burnin.evaluation.outliers import Estimate
from burnin.report import figures
from burnin.report.drawn import Panel
from burnin.report.page import Block, Facts, Panels

RADII = (0.0, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3)
"""Of attacks, in halves of the range from black to white."""
MOST_NAMED = 20


def classes_figure(held: HeldOutClasses, attacked: Sequence[float] | None = None) -> Figure:
    """Confidence against accuracy; which classes are taken for which; accuracy by the attack's radius."""
    wide = 2 if attacked is None else 3
    figure = Figure(figsize=(4.6 * wide, 4.2), layout="constrained")
    panels = figure.subplots(1, wide)
    draw_reliability(panels[0], held.found.reliability)
    panels[0].set_title(f"reliability; calibration error {held.found.ece.value:.3f}", fontsize=10)
    draw_confusion(panels[1], held)
    panels[1].set_title("share of each class", fontsize=10)
    if attacked is not None:
        panels[2].plot(RADII, attacked, "o-", color=figures.SAMPLES)
        panels[2].set(
            title="accuracy under attack (PGD, ℓ∞)", xlabel="radius; black to white is 2", ylim=(-0.02, 1.02)
        )
    return figure


def classes_blocks(held: HeldOutClasses) -> tuple[Block, ...]:
    """The classifier's numbers and pictures in a report."""
    found, sides = held.found, (4.2, 4.0)
    reliability, confusion = (
        Figure(figsize=sides, layout="constrained"),
        Figure(figsize=sides, layout="constrained"),
    )
    draw_reliability(reliability.subplots(), found.reliability)
    draw_confusion(confusion.subplots(), held)
    facts = Facts(
        (
            ("accuracy", _with_error(found.accuracy), f"of {len(held.labels):,} pictures that were held out"),
            (
                "cross-entropy",
                f"{_with_error(found.cross_entropy)} nats",
                "-log p of the right class, on average",
            ),
            (
                "calibration error",
                _with_error(found.ece),
                f"mean distance of confidence from accuracy; {found.ece_by_chance:.3f} by chance alone",
            ),
        )
    )
    seen = ("Accuracy by confidence, near the diagonal if calibrated", "Which class is taken for which")
    panels = (Panel(reliability, seen[0], "reliability"), Panel(confusion, seen[1], "classes"))
    return facts, Panels(
        panels, "Left: on the line, confidence is what it says. Right: percent of each class."
    )


def draw_reliability(axes: Axes, found: Reliability) -> None:
    """Accuracy by confidence, with bars of what chance leaves open; on the line where calibrated."""
    error = np.sqrt(np.maximum(found.accuracy * (1 - found.accuracy), 0.25 / found.count) / found.count)
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8)
    axes.errorbar(found.confidence, found.accuracy, error, fmt="o", color=figures.SAMPLES, markersize=4)
    axes.set(xlabel="confidence", ylabel="accuracy", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))


def draw_confusion(axes: Axes, held: HeldOutClasses) -> None:
    """Which classes are taken for which, in percent of each."""
    classes = len(held.names)
    table = np.zeros((classes, classes))
    np.add.at(table, (held.labels.numpy(), held.probabilities.argmax(1).numpy()), 1)
    share = table / np.maximum(table.sum(1, keepdims=True), 1)
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    axes.set(xlabel="taken for", ylabel="class")
    if classes <= MOST_NAMED:
        names = [figures.label(name, 10) for name in held.names]
        axes.set_xticks(range(classes), names, rotation=60, fontsize=7)
        axes.set_yticks(range(classes), names, fontsize=7)
        for row, column in zip(*np.nonzero(share >= 0.005), strict=True):
            color = "white" if share[row, column] > 0.5 else "#222222"
            text = f"{100 * share[row, column]:.0f}"
            axes.text(column, row, text, ha="center", va="center", fontsize=6, color=color)


def _with_error(one: Estimate) -> str:
    return f"{one.value:.3f} ± {one.error:.3f}"
