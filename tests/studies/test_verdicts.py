"""Verdicts held against the truth: the small variant, and what counts as right."""

from __future__ import annotations

from pathlib import Path

import pytest

from burnin.evaluation.verdict import Standing
from burnin.studies import STUDIES
from burnin.studies.experiment import run_study
from burnin.studies.verdicts import VERDICTS, exact_standing


def test_the_small_variant_tells_three_kinds_apart(tmp_path: Path) -> None:
    table, checks = run_study(STUDIES["verdicts"], tmp_path, quick=True, jobs=1, status=lambda *_: None)
    assert [check.holds for check in checks] == [True]
    assert {name: row["metrics"]["verdict"] for name, row in table["rows"].items()} == {
        "mixture-data-s0": str(Standing.NEAR_DATA),
        "mixture-noise-s0": str(Standing.GENERATOR),
        "mixture-hybrid-s0": str(Standing.BOTH),
    }
    assert "3 of 3 verdicts are right" in (tmp_path / "table.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("distance", "kl", "near", "standing"),
    [
        (1.0, 0.1, 0.1, Standing.BOTH),
        (1.0, 2.0, 0.1, Standing.GENERATOR),
        (40.0, 2.0, 0.1, Standing.NEAR_DATA),
        (40.0, 2.0, 2.0, Standing.NEITHER),
    ],
)
def test_what_a_model_is_by_its_exact_density(
    distance: float, kl: float, near: float, standing: Standing
) -> None:
    assert exact_standing(distance, kl, near) is standing


def test_wrong_verdicts_are_counted_and_missing_ones_not_judged() -> None:
    rows = {name: {"right": index >= 3} for index, name in enumerate(VERDICTS.rows)}
    assert VERDICTS.judged(rows)["all"] == {"models": 20, "right": 17}
    del rows["rings-data-s0"]
    assert VERDICTS.judged(rows) == {}
