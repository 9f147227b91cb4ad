"""The Stein paper's toys (Fig. 4, B.4): densities of the plane learned without any chains."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from burnin.core import InputError
from burnin.evaluation.assess import Assessment
from burnin.evaluation.model import Model
from burnin.report import figures
from burnin.report.toys import Column, pairs_figure
from burnin.settings import Config
from burnin.studies.columns import toy_columns
from burnin.studies.rows import Study
from burnin.studies.table import Rows, mean_and_error

SEEDS = (0,)
DATA: dict[str, list[str]] = {
    "checkerboard": ["noise.scale=3.0"],
    "pinwheel": ["noise.scale=2.0"],
    "circles": ["noise.scale=2.0"],
    "mixture8": ["noise.scale=1.0"],
    "rings4": ["noise.scale=3.0"],
}
METHODS: dict[str, list[str]] = {
    "lsd": [
        "objective.name=lsd",
        "objective.lam=1.0",
        "objective.critic_activation=tanh",
        "objective.critic_standardise=true",
        "objective.critic_rate=4e-3",
    ],
    "score-matching": ["objective.name=score-matching"],
    "nce": ["objective.name=nce"],
}
"""What is not the paper's, of lsd: its critic, which is to be ahead of the energy."""
NAME = re.compile(r"(?P<data>\w+)-(?P<method>lsd|score-matching|nce)-s(?P<seed>\d+)")


def row_name(data: str, method: str, seed: int) -> str:
    """The name of a row.

    Example:
        >>> row_name("pinwheel", "lsd", 0)
        'pinwheel-lsd-s0'
    """
    return f"{data}-{method}-s{seed}"


ROWS: dict[str, list[str]] = {
    row_name(data, method, seed): [f"data.name={data}", *start, *changes, f"run.seed={seed}"]
    for seed in SEEDS
    for data, start in DATA.items()
    for method, changes in METHODS.items()
}


def measure(model: Model, result: Assessment) -> dict[str, Any]:
    """KL(true ‖ model) on a grid, and how far chains from noise end from the data."""
    if result.density_kl is None:
        raise InputError("the Stein toys need a data set of the plane whose density is known")
    return {
        "density_kl": result.density_kl,
        "sample_distance": result.sample_distance,
        "verdict": str(result.verdict.standing),
    }


def summary(rows: Rows) -> str:
    """KL(true ‖ model) by data and method, averaged over seeds with its standard error."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for name, metrics in rows.items():
        match = NAME.fullmatch(name)
        assert match is not None, name
        groups.setdefault((match["data"], match["method"]), []).append(metrics)
    lines = ["| density_kl | " + " | ".join(METHODS) + " |", "|---" * (len(METHODS) + 1) + "|"]
    for data in dict.fromkeys(data for data, _ in groups):
        cells = [_cell(groups.get((data, method), [])) for method in METHODS]
        lines.append(f"| {data} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return ""
    diverged = sum(row["ended"] != "finished" for row in rows)
    return mean_and_error(rows, "density_kl") + (f", {diverged} of {len(rows)} diverged" if diverged else "")


def draw(out: Path, config: Config, rows: Sequence[str]) -> None:
    """Data above, learned densities beside it, as in Fig. 4: seed 0 of every method that has a row."""
    panels: dict[str, list[Column]] = {}
    for data in DATA:
        named = {method: row_name(data, method, 0) for method in METHODS}
        present = {method: name for method, name in named.items() if name in rows}
        if present:
            panels[data] = toy_columns(out, data, present, "its chains")
    if panels:
        figures.save(pairs_figure(panels), out / "figure.png")


STEIN_TOY = Study(
    name="stein-toy",
    about="the Stein paper's toys: five densities of the plane learned without chains, by three objectives",
    recipe="stein-toy",
    quick_recipe="stein-toy-quick",
    rows=ROWS,
    quick_rows=tuple(row_name("pinwheel", method, 0) for method in METHODS),
    metrics=("density_kl", "sample_distance", "verdict", "ended", "seconds_training", "seconds"),
    measure=measure,
    draw=draw,
    tabulate=summary,
)
