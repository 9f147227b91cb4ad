"""Sweeps: experiments whose rows are a grid's cells, with means over seeds in one table and one report."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from burnin.config import load_config
from burnin.evaluation.assess import Assessment
from burnin.evaluation.model import Model
from burnin.settings import Config
from burnin.studies import STUDIES
from burnin.studies.experiment import run_rows
from burnin.studies.grid import Cell, by_group, cells, parse_grid
from burnin.studies.rows import Study, TrainedRows
from burnin.studies.table import Rows, mean_and_error, write_json
from burnin.studies.workers import Round, Say

GENERAL = (
    "density_kl",
    "log_likelihood",
    "sample_distance",
    "long_run_distance",
    "data_run_distance",
    "seconds_training",
)
"""What is measured of any model; docs/verdict.md says what each means."""


@dataclass(frozen=True)
class Sweep:
    """A recipe, the cells of its grid, and the experiment that they are the rows of."""

    recipe: str
    title: str
    found: tuple[Cell, ...]
    study: TrainedRows
    configs: dict[str, Config]
    commands: dict[str, str]

    def groups(self, rows: Rows) -> dict[str, dict[str, Any]]:
        """Of each group, every number's mean over its rows, standard error and count."""
        return {name: pooled(list(made)) for name, made in by_group(self.found, rows).items()}


def measure_any(model: Model, result: Assessment) -> dict[str, Any]:
    """The numbers of any model; those that cannot be had are left out."""
    likelihood = result.evidence.log_likelihood
    numbers = {
        "density_kl": result.density_kl,
        "log_likelihood": None if likelihood is None else likelihood.value,
        "sample_distance": result.sample_distance,
        "long_run_distance": result.long_run,
        "data_run_distance": result.data_run,
    }
    return {name: value for name, value in numbers.items() if value is not None} | {
        "standing": str(result.verdict.standing)
    }


def plan(recipe: str, grid: str, changes: Sequence[str] = ()) -> Sweep:
    """A grid's rows, every one of which is checked before the first is made.

    A recipe of a reproduction is measured as that does, unless the grid changes its data.

    Raises:
        InputError: for anything wrong with the recipe, the changes or the grid.
    """
    first = load_config(recipe, changes)
    axes = parse_grid(grid, first)
    found = tuple(cells(axes))
    configs = {cell.name: load_config(recipe, [*changes, *cell.changes]) for cell in found}
    other_data = any(config.data != first.data for config in configs.values())
    study = _of_reproduction(recipe, first) if not other_data else None
    if study is None:
        study = Study(
            name="sweep",
            about=first.about,
            recipe=recipe,
            quick_recipe=None,
            rows={},
            quick_rows=(),
            metrics=GENERAL,
            measure=measure_any,
            draw=None,
        )
    sets = [f"--set {shlex.quote(change)}" for change in changes]
    commands = {
        cell.name: " ".join(
            ["burnin sweep", shlex.quote(recipe), *sets, "--grid", shlex.quote(";".join(cell.changes))]
        )
        for cell in found
    }
    rows = {cell.name: list(cell.changes) for cell in found}
    metrics = study.metrics
    table = replace(study, rows=rows, draw=None, tabulate=lambda made: tabulate(found, metrics, made))
    return Sweep(recipe, first.title, found, table, configs, commands)


def run_sweep(sweep: Sweep, out: Path, make: Round, *, say: Say, known: Path | None = None) -> dict[str, Any]:
    """Makes the rows that are missing; then table.json, table.md and report.html; gives the table."""
    from burnin.studies.sweep_page import sweep_page

    table, _ = run_rows(sweep.study, out, sweep.configs, sweep.commands, make, say=say, known=known)
    rows = {name: row["metrics"] for name, row in table["rows"].items()}
    table = {"study": "sweep", "recipe": sweep.recipe, "groups": sweep.groups(rows), "rows": table["rows"]}
    write_json(out / "table.json", table)
    sweep_page(sweep, table).write(out / "report.html")
    return table


def tabulate(found: Sequence[Cell], metrics: Sequence[str], rows: Rows) -> str:
    """A line for each group: means over its seeds ± standard error."""
    groups = by_group(found, rows)
    shown = [name for name in metrics if any(_numeric(row.get(name)) for row in rows.values())]
    lines = ["| | rows | " + " | ".join(shown) + " |", "|---" * (len(shown) + 2) + "|"]
    for group, made in groups.items():
        have = {name: [row for row in made if name not in row or _numeric(row[name])] for name in shown}
        cells_ = [mean_and_error(have[name], name) for name in shown]
        lines.append(f"| {group} | {len(made)} | " + " | ".join(cells_) + " |")
    return "\n".join(lines) + "\n"


def pooled(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means, standard errors (None of a single row) and counts of the numbers that rows have.

    Example:
        >>> pooled([{"kl": 1.0}, {"kl": 3.0}])
        {'kl': {'mean': 2.0, 'error': 1.0, 'rows': 2}}
    """
    names = dict.fromkeys(name for row in rows for name in row)
    result: dict[str, Any] = {}
    for name in names:
        values = [float(row[name]) for row in rows if _numeric(row.get(name))]
        if values:
            error = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
            result[name] = {"mean": fmean(values), "error": error, "rows": len(values)}
    return result


def _numeric(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _of_reproduction(recipe: str, config: Config) -> TrainedRows | None:
    """The first reproduction whose rows are trained by this recipe, with its data."""
    for study in STUDIES.values():
        if isinstance(study, TrainedRows) and recipe in (study.recipe, study.quick_recipe):
            return study if study.load(recipe, []).data == config.data else None
    return None
