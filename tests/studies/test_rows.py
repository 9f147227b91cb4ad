"""Rows of a study: one that fails ends it, at once and without leaving processes behind."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from burnin.core import InputError
from burnin.evaluation.assess import Assessment
from burnin.evaluation.model import Model
from burnin.studies.experiment import run_study
from burnin.studies.rows import Study

SMALL = [
    "run.updates=2",
    "study={samples=20, distance_sets=5, long_chains=10, long_steps=5, data_chains=10, data_steps=5, "
    "likelihood_particles=8}",
]
ENDLESS = ["run.updates=100000000", "run.checkpoint_every=50000000"]


def refuse(model: Model, result: Assessment) -> dict[str, Any]:
    """A measure that fails."""
    raise InputError("no number for this row")


def test_a_row_that_fails_ends_the_study(tmp_path: Path) -> None:
    study = Study(
        name="failing",
        about="one row fails, one would never end",
        recipe="robust-toy",
        quick_recipe=None,
        rows={"fails": SMALL, "endless": ENDLESS},
        quick_rows=(),
        metrics=(),
        measure=refuse,
        draw=None,
    )
    with pytest.raises(InputError, match="no number for this row"):
        run_study(study, tmp_path, quick=False, jobs=2, status=lambda *_: None)
    assert not multiprocessing.active_children()
    assert not (tmp_path / "fails.json").exists()
