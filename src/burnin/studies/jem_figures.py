"""Figures of JEM's study: training by scenario (Figs. 16, 20 to 25), calibration, attacks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from burnin.report import figures
from burnin.settings import Config
from burnin.studies.jem_curves import CURVE_FILE, read_looks
from burnin.training import read_metrics

BLOCK = 50
"""Updates whose gap is drawn as one band from the least to the largest."""
FEWEST = 10
"""Pictures of a bin whose accuracy is shown."""
LINEAR = 1.0
"""The gap's axis is linear up to it, and logarithmic beyond."""


def draw(out: Path, config: Config, rows: Sequence[str]) -> None:
    """scenario-NAME.png for each, and figure.png: reliability and robust accuracy, plain and default."""
    firsts = [name for name in rows if name.endswith("-s0")]
    scenarios: dict[str, list[str]] = {}
    for name in firsts:
        stem = name.removesuffix("-s0").removesuffix("-guard")
        if not name.startswith("plain"):
            scenarios.setdefault(stem.rpartition("-")[0], []).append(name)
    for scenario, names in scenarios.items():
        figures.save(_training(out, scenario, names), out / f"scenario-{scenario}.png")
    shown = [name for name in firsts if name.startswith(("plain", "default", "long")) and "guard" not in name]
    figures.save(_classifiers(out, shown or firsts), out / "figure.png")


def _training(out: Path, scenario: str, names: Sequence[str]) -> Figure:
    """The gap f⁺ - f⁻ in units of o, Inception Score, Fréchet distance and accuracy, by update."""
    figure = Figure(figsize=(12, 6.4), layout="constrained")
    panels = figure.subplots(2, 2)
    for index, name in enumerate(names):
        color, label = f"C{index}", _words(name, scenario)
        style = "--" if "-guard" in name else "-"  # until it first acts it is the same run
        logged = [row for row in read_metrics(out / name / "metrics.jsonl") if "d/bank" in row]
        _band(panels[0, 0], logged, color, style)
        looks = read_looks(out / name / CURVE_FILE)
        step = [look.step for look in looks]
        for axes, values in (
            (panels[0, 1], [look.accuracy for look in looks]),
            (panels[1, 0], [look.inception_score for look in looks]),
            (panels[1, 1], [look.frechet for look in looks]),
        ):
            axes.plot(step, values, style, color=color, label=label, linewidth=1.2)
    panels[0, 0].set_yscale("symlog", linthresh=LINEAR)
    panels[0, 0].set_title("E⁻ - E⁺, least to largest of 50 updates")
    panels[0, 1].set_title("accuracy on what is held out")
    panels[1, 0].set_title("Inception Score of the bank")
    panels[1, 1].set_title("Fréchet distance of the bank")
    panels[1, 1].set_yscale("log")
    for axes in panels.flat:
        axes.set_xlabel("update")
    panels[0, 1].legend(frameon=False, fontsize=8)
    figure.suptitle(scenario)
    return figure


def _band(axes: Axes, logged: Sequence[dict[str, Any]], color: str, style: str) -> None:
    gap = -np.array([row["d/bank"] for row in logged], dtype=float)
    step = np.array([row["step"] for row in logged])
    blocks = [slice(start, start + BLOCK) for start in range(0, len(gap), BLOCK)]
    low, high = (np.array([pick(gap[block]) for block in blocks]) for pick in (np.min, np.max))
    middle = np.array([step[block].mean() for block in blocks])
    axes.fill_between(middle, low, high, color=color, alpha=0.25, linewidth=0)
    axes.plot(middle, [np.median(gap[block]) for block in blocks], style, color=color, linewidth=1.2)


def _words(name: str, scenario: str) -> str:
    star = name.removesuffix("-s0").removeprefix(f"{scenario}-")
    return f"β* = {star.removesuffix('-guard')}" + (", guard" if star.endswith("-guard") else "")


def _classifiers(out: Path, names: Sequence[str]) -> Figure:
    """The reliability diagram and the accuracy under attack."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot([0, 1], [0, 1], color="0.6", linewidth=0.8)
    for index, name in enumerate(names):
        metrics = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))["metrics"]
        bins = [one for one in zip(*metrics["reliability"], strict=True) if one[2] >= FEWEST]
        color = f"C{index % 10}"
        label = f"{name.removesuffix('-s0')} (ECE {metrics['ece']:.3f})"
        confidence, accuracy = [one[0] for one in bins], [one[1] for one in bins]
        left.plot(confidence, accuracy, "o-", color=color, markersize=3, linewidth=1, label=label)
        right.plot(metrics["radii"], metrics["robust_accuracy"], "o-", color=color, markersize=3, linewidth=1)
    left.set(title=f"reliability, bins of {FEWEST} pictures at least", xlabel="confidence", ylabel="accuracy")
    right.set(title="accuracy under attack (PGD, ℓ∞)", xlabel="radius, black and white being -1 and 1")
    left.legend(frameon=False, fontsize=7, loc="lower right")
    return figure
