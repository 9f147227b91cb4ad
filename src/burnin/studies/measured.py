"""Studies whose rows train no model in a folder: each is measured from its settings alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch

from burnin.config import load_recipe
from burnin.core import Report
from burnin.settings import Part, Recipe
from burnin.studies.experiment import Experiment
from burnin.studies.table import Rows, json_safe
from burnin.studies.workers import Maker


class RunPart(Part):
    """Seed of a row's draws, and torch's threads: the numbers are the same bits for the same number only."""

    seed: int = 0
    threads: int = 1


class MeasuredRecipe(Recipe):
    """What every recipe that trains no model has."""

    run: RunPart = RunPart()


Measured = TypeVar("Measured", bound=MeasuredRecipe)
Measure = Callable[[Measured, Report], dict[str, Any]]
"""A row's numbers from its settings; told whom to report to."""


@dataclass(frozen=True, kw_only=True)
class MeasuredStudy(Experiment[Measured]):
    """An experiment whose rows are measured from their settings.

    A row that is cut off starts again, so rows should be small: a block of trials, not all of them.
    `pool` puts blocks together; the recipe's expectations are about what comes out.

    Attributes:
        settings: what a recipe is read as.
        measure: a row's numbers.
        pool: from the rows' numbers to those that are judged, by a name of their own.
    """

    settings: type[Measured]
    measure: Measure[Measured]
    pool: Callable[[Rows], Rows]

    def load(self, recipe: str, changes: Sequence[str]) -> Measured:
        """A row's settings."""
        return load_recipe(self.settings, recipe, changes)

    def parse(self, settings: Mapping[str, Any]) -> Measured:
        """The settings that a row was made with."""
        return self.settings.model_validate(settings)

    def maker(self) -> Maker[Measured]:
        """Measures."""
        return partial(measure_row, self.measure)

    def judged(self, rows: Rows) -> Rows:
        """The pooled numbers."""
        return self.pool(rows)

    def drawable(self, rows: Rows) -> list[str]:
        """All: figures are drawn from the rows' numbers."""
        return list(rows)


def measure_row(
    measure: Measure[Measured], out: Path, name: str, settings: Measured, report: Report, threads: int
) -> dict[str, Any]:
    """A row from its numbers: with its seed, and the time that it took."""
    torch.set_num_threads(max(1, settings.run.threads))
    start, spent = time.perf_counter(), time.process_time()
    metrics = json_safe(measure(settings, report))
    metrics |= {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - spent,
    }
    return {"seed": settings.run.seed, "metrics": metrics}
