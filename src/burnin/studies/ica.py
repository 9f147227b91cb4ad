"""Linear ICA (stein, section 8.1, Fig. 8): training without the normaliser against maximum likelihood."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from burnin.core import InputError
from burnin.evaluation.assess import Assessment
from burnin.evaluation.model import Model
from burnin.objectives import log_likelihood
from burnin.report import figures
from burnin.rng import Streams
from burnin.settings import Config
from burnin.studies.rows import Study
from burnin.studies.table import Rows, mean_and_error

DIMS = (10, 30, 50)
SEEDS = (0, 1, 2)
TEST_POINTS = 20_000
METHODS: dict[str, str] = {
    "ml": "likelihood",
    "lsd": "lsd",
    "ssm": "sliced-score-matching",
    "nce": "nce",
    "cnce": "cnce",
}
"""Rows' names of the methods, and the objectives they are: the columns of the paper's table."""
NAME = re.compile(r"d(?P<dim>\d+)-(?P<method>\w+)-s(?P<seed>\d+)")


def row_name(dim: int, method: str, seed: int) -> str:
    """The name of a row.

    Example:
        >>> row_name(50, "lsd", 0)
        'd50-lsd-s0'
    """
    return f"d{dim}-{method}-s{seed}"


ROWS: dict[str, list[str]] = {
    row_name(dim, method, seed): [f"data.dim={dim}", f"objective.name={objective}", f"run.seed={seed}"]
    for seed in SEEDS
    for dim in DIMS
    for method, objective in METHODS.items()
}


def measure(model: Model, result: Assessment) -> dict[str, Any]:
    """Exact log-likelihood of fresh data under the model and under the truth, and the gap between them.

    The gap is an estimate of KL(true ‖ model); both are of the same points, so its error is the smaller.
    """
    if model.truth is None:
        raise InputError("linear ICA is judged by its exact density; use data.name ica")
    x = model.data.sample(TEST_POINTS, Streams(0)["test"]).double()
    with torch.no_grad():
        found = log_likelihood(model.energy.double(), x, model.temperature)
    truth = model.truth.log_prob(x)
    return {
        "log_likelihood": found.mean().item(),
        "log_likelihood_error": _error(found),
        "true_log_likelihood": truth.mean().item(),
        "gap": (truth - found).mean().item(),
        "gap_error": _error(truth - found),
    }


def _error(values: torch.Tensor) -> float:
    return float(values.std()) / math.sqrt(len(values))


def summary(rows: Rows) -> str:
    """Test log-likelihood by method and dimension, over seeds with its standard error; then the gaps."""
    groups = _grouped(rows)
    dims = sorted({dim for dim, _ in groups})
    # Every method of a seed is tested on the same points, so one method's rows hold the truth of all.
    truths = {dim: next(rows for (at, _), rows in groups.items() if at == dim) for dim in dims}
    truth = [mean_and_error(truths[dim], "true_log_likelihood") for dim in dims]
    lines = ["| test log-likelihood | " + " | ".join(f"{dim} dims" for dim in dims) + " |"]
    lines += ["|---" * (len(dims) + 1) + "|", "| truth | " + " | ".join(truth) + " |"]
    lines += _lines(groups, dims, "log_likelihood")
    lines += ["", "| nats below the truth | " + " | ".join(f"{dim} dims" for dim in dims) + " |"]
    lines += ["|---" * (len(dims) + 1) + "|", *_lines(groups, dims, "gap")]
    return "\n".join(lines) + "\n"


def _lines(
    groups: Mapping[tuple[int, str], Sequence[Mapping[str, Any]]], dims: Sequence[int], metric: str
) -> list[str]:
    return [
        f"| {method} | " + " | ".join(_cell(groups.get((dim, method), []), metric) for dim in dims) + " |"
        for method in METHODS
        if any((dim, method) in groups for dim in dims)
    ]


def _grouped(rows: Rows) -> dict[tuple[int, str], list[Mapping[str, Any]]]:
    groups: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
    for name, metrics in rows.items():
        match = NAME.fullmatch(name)
        assert match is not None, name
        groups.setdefault((int(match["dim"]), match["method"]), []).append(metrics)
    return groups


def _cell(rows: Sequence[Mapping[str, Any]], metric: str) -> str:
    if not rows:
        return ""
    diverged = sum(row["ended"] != "finished" for row in rows)
    return mean_and_error(rows, metric) + (f", {diverged} of {len(rows)} diverged" if diverged else "")


def draw(out: Path, config: Config, rows: Sequence[str]) -> None:
    """The gap to the truth by dimension, a line for each method and a dot for each seed."""
    made = {name: json.loads((out / f"{name}.json").read_text(encoding="utf-8")) for name in rows}
    groups = _grouped({name: row["metrics"] for name, row in made.items()})
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for index, method in enumerate(METHODS):
        found = {
            dim: [row["gap"] for row in group if row["gap"] is not None]
            for (dim, name), group in sorted(groups.items())
            if name == method
        }
        known = {dim: gaps for dim, gaps in found.items() if gaps}
        color = f"C{index}"
        for dim, gaps in known.items():
            axes.plot([dim] * len(gaps), gaps, ".", color=color, alpha=0.5)
        axes.plot(list(known), [sum(g) / len(g) for g in known.values()], "-", color=color, label=method)
    axes.set_yscale("log")
    axes.set(xlabel="dimensions", ylabel="nats below the true density", title="linear ICA")
    axes.legend(frameon=False, fontsize=8)
    figures.save(figure, out / "figure.png")


ICA = Study(
    name="ica",
    about="linear ICA in 10, 30 and 50 dimensions: maximum likelihood, and four ways without the normaliser",
    recipe="ica",
    quick_recipe="ica-quick",
    rows=ROWS,
    quick_rows=tuple(row_name(10, method, 0) for method in METHODS),
    metrics=("log_likelihood", "log_likelihood_error", "true_log_likelihood", "gap", "gap_error", "ended"),
    measure=measure,
    draw=draw,
    tabulate=summary,
)
