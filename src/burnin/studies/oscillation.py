"""Weak and strong oscillation of d (convergent, section D), on pictures and on a toy, in one figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from burnin.diagnostics import diagnose
from burnin.evaluation.assess import Assessment
from burnin.evaluation.model import Model
from burnin.report import figures
from burnin.settings import Config
from burnin.studies.rows import Study
from burnin.training import read_metrics

SGD = ['optimizer.name="SGD"', "optimizer.learning_rate=0.05"]
TOY = [
    'data={name="mixture8", noise=0.0}',
    "model={temperature=7.8125e-3, width=[32, 64, 64, 64], activation='leaky', standardise=false}",
    'scheme={name="persistent", bank_size=10000}',
    'noise={kind="uniform", scale=1.0, shift=0.0}',
    "sampler={num_steps=100, step_size=1.0}",
    "run.updates=6000",
]
ROWS: dict[str, list[str]] = {
    "digits-adam": [],
    "digits-sgd": [*SGD, "run.updates=3500"],
    "digits-annealed": [
        *SGD,
        'optimizer.decay="geometric"',
        "optimizer.decay_from=0.1",
        "optimizer.final_rate=0.1",
        "run.updates=15000",
    ],
    "toy-sgd": [*TOY, 'optimizer.name="SGD"', "optimizer.learning_rate=0.1"],
}
"""Where the paper finds it strong (images with Adam, or with SGD at a high rate) and weak (images with SGD at
a low rate, toys). The high rate is section B's 0.05; the low one a tenth of it: at its 0.0005 the mean of d
is not at 0 within so few updates."""


def measure(model: Model, result: Assessment) -> dict[str, Any]:
    """What the chains of such a model are worth; the oscillation itself is told of every row."""
    return {
        "sample_distance": result.sample_distance,
        "long_run_distance": result.long_run,
        "verdict": str(result.verdict.standing),
    }


def draw(out: Path, config: Config, rows: Sequence[str]) -> None:
    """Auto-correlations of d, and its cross-correlation with r, by lag; bands are what chance gives d."""
    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for index, name in enumerate(rows):
        arm = diagnose(read_metrics(out / name / "metrics.jsonl")).arms[0]
        found = arm.correlations
        if found is None:
            continue
        color, label = f"C{index}", f"{name}: {arm.oscillation.kind}"
        left.plot(np.arange(1, len(found.d)), found.d[1:], "o-", color=color, label=label, markersize=3)
        band = found.d_bounds
        left.fill_between(np.arange(1, len(band) + 1), -band, band, color=color, alpha=0.08)
        half = len(found.cross) // 2
        right.plot(np.arange(-half, half + 1), found.cross, "o-", color=color, label=name, markersize=3)
    left.set(title="auto-correlation of d; bands: by chance", xlabel="lag in updates")
    right.set(title="cross-correlation of d and r; left of 0, d comes first", xlabel="lag in updates")
    for axes in (left, right):
        axes.axhline(0, color="0.5", linewidth=0.8)
        axes.legend(frameon=False, fontsize=8)
    figures.save(figure, out / "figure.png")


OSCILLATION = Study(
    name="oscillation",
    about="weak and strong oscillation of d: 8×8 digits with Adam and SGD, and a toy",
    recipe="digits",
    quick_recipe=None,
    rows=ROWS,
    quick_rows=(),
    metrics=("oscillation", "sample_distance", "long_run_distance", "verdict", "ended", "seconds_training"),
    measure=measure,
    draw=draw,
)
