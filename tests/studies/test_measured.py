"""Studies whose rows train no model: rows resume, are refused with other settings, and are judged pooled."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from burnin.core import InputError, Report
from burnin.studies import MeasuredStudy, run_study
from burnin.studies.measured import MeasuredRecipe
from burnin.studies.table import Rows


class Growth(MeasuredRecipe):
    factor: float = 1.0


def measure(recipe: Growth, report: Report) -> dict[str, Any]:
    report("growing", 1, 1)
    return {"value": recipe.factor * (1 + recipe.run.seed), "unbounded": float("inf")}


def pool(rows: Rows) -> dict[str, dict[str, Any]]:
    return {"sum": {"value": sum(row["value"] for row in rows.values())}}


@pytest.fixture
def study(tmp_path: Path) -> MeasuredStudy[Growth]:
    recipe = tmp_path / "growth.toml"
    recipe.write_text(
        'title = "growth"\nfactor = 2.0\n[[expected]]\nscheme = "sum"\nmetric = "value"\nat_least = 6.0\n',
        encoding="utf-8",
    )
    return MeasuredStudy(
        name="growth",
        about="two numbers",
        recipe=str(recipe),
        quick_recipe=None,
        rows={"first": ["run.seed=0"], "second": ["run.seed=1"]},
        quick_rows=(),
        settings=Growth,
        metrics=("value",),
        measure=measure,
        pool=pool,
        pooled=("sum",),
        draw=None,
    )


def make(study: MeasuredStudy[Growth], out: Path, *rows: str, **options: Any) -> tuple[Any, Any]:
    return run_study(study, out, quick=False, rows=rows, jobs=1, status=lambda *_: None, **options)


def test_rows_are_made_once_and_judged_together(study: MeasuredStudy[Growth], tmp_path: Path) -> None:
    out = tmp_path / "out"
    _, missed = make(study, out, "first")
    assert [(check.text, check.holds) for check in missed] == [("sum value = 2, expected ≥ 6", False)]
    before = (out / "first.json").read_bytes()
    table, held = make(study, out)
    assert [check.holds for check in held] == [True]
    assert (out / "first.json").read_bytes() == before, "made again"
    row = json.loads((out / "second.json").read_text(encoding="utf-8"))
    assert row == table["rows"]["second"]
    assert (row["seed"], row["metrics"]["value"], row["metrics"]["unbounded"]) == (1, 4.0, None)
    assert row["made_by"]["command"] == "burnin reproduce growth --rows second"
    assert {"commit", "time", "machine"} <= row["made_by"].keys()
    assert {"seconds", "cpu_seconds"} <= row["metrics"].keys()
    assert row["config"] == {"run": {"seed": 1, "threads": 1}, "factor": 2.0}
    assert "| value | 2 | 4 |" in (out / "table.md").read_text(encoding="utf-8")


def test_other_settings_need_another_folder(study: MeasuredStudy[Growth], tmp_path: Path) -> None:
    out = tmp_path / "out"
    make(study, out, "first")
    with pytest.raises(InputError, match="other settings"):
        make(study, out, "first", changes=["factor=3.0"])
    with pytest.raises(InputError, match="did you mean 'factor'"):
        make(study, tmp_path / "new", changes=["facter=3.0"])
    with pytest.raises(InputError, match="did you mean 'first'"):
        make(study, out, "frist")


def test_figures_show_rows_of_a_known_table_too(study: MeasuredStudy[Growth], tmp_path: Path) -> None:
    first, drawn = tmp_path / "first", list[str]()
    make(study, first, "first")
    drawing = replace(study, draw=lambda out, recipe, rows: drawn.extend(rows))
    make(drawing, tmp_path / "both", known=first / "table.json")
    assert drawn == ["first", "second"]
