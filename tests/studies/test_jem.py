"""JEM's study: its tables from rows that are written by hand, and its small variant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from burnin.studies.experiment import run_study
from burnin.studies.jem import JEM, JEM_FASHION, SCENARIOS
from burnin.studies.jem_tables import pool, summary
from burnin.studies.table import check_expectations


def row(accuracy: float, **changes: Any) -> dict[str, Any]:
    numbers = {
        "accuracy": accuracy,
        "accuracy_end": accuracy,
        "ece": 0.1,
        "ece_by_chance": 0.1,
        "cross_entropy": 0.1,
        "auroc_energy": 0.5,
        "auroc_max_probability": 0.5,
        "inception_score": 5.0,
        "frechet": 10.0,
        "gap_last": 1.0,
        "rollbacks": 0,
        "diverged_at": None,
        "began_at": None,
        "named_at": None,
        "ended": "finished",
        "features": "by hand",
    }
    return numbers | changes


ROWS = {
    "plain-s0": row(0.9),
    "plain-s1": row(0.8),
    "default-0-s0": row(0.7, diverged_at=900, began_at=500, named_at=520, ended="not finite", gap_last=2e9),
    "default-0-s1": row(0.8, diverged_at=800, began_at=600, named_at=633),
    "default-0-guard-s0": row(0.95, rollbacks=1, inception_score=9.0),
    "default-0.5-s0": row(0.7, inception_score=6.0, frechet=4.0),
    "few-steps-2-s0": row(0.85, diverged_at=900, began_at=500),
    "default-2-s0": row(0.85, inception_score=5.5, frechet=5.0),
}


def test_seeds_are_pooled() -> None:
    pooled = pool(ROWS)
    assert abs(pooled["default-0"]["accuracy"] - 0.75) < 1e-12
    assert pooled["default-0"]["diverged"] == 2
    assert pooled["default-0"]["unfinished"] == 1
    assert pooled["default-0"]["named_after"] == 33
    assert pooled["default-2"]["named_after"] is None
    assert (pooled["default-0"]["unnamed"], pooled["few-steps-2"]["unnamed"]) == (0, 1)
    assert abs(pooled["default-2"]["points_behind"]) < 1e-9  # of 0.85 on average
    assert abs(pooled["default-2"]["ahead"] - 10) < 1e-9
    assert abs(pooled["default-0-guard"]["ahead"] - 20) < 1e-9


def test_table_2_has_the_best_beta_by_each_measure_without_the_guard() -> None:
    last = summary(ROWS).strip().splitlines()[-1]
    assert last == ("| default | 0.75 | 0.85 (β* = 2) | 5 | 6 (β* = 0.5) | 10 | 4 (β* = 0.5) |")
    assert "| default-0 | 2 | 2 | 0 | 2.0e+09, 1 |" in summary(ROWS)


def test_every_expectation_is_of_a_way_that_the_study_has() -> None:
    for study in (JEM, JEM_FASHION):
        assert study.pooled is not None
        ways = {expected.scheme for expected in study.load(study.recipe, []).expected}
        assert ways
        assert ways <= set(study.pooled)
    assert all(f"{scenario}-0-guard" in (JEM.pooled or ()) for scenario in SCENARIOS)


def test_what_is_held_against_rows_that_are_not_made_is_not_judged() -> None:
    rows = {"default-2-s0": ROWS["default-2-s0"]}
    checks = check_expectations(JEM.load(JEM.recipe, []).expected, pool(rows))
    assert [check.text.split(" = ")[0] for check in checks] == ["default-2 diverged"]


def test_the_small_variant_learns(tmp_path: Path) -> None:
    table, checks = run_study(JEM, tmp_path, quick=True, jobs=1, status=lambda *_: None)
    assert len(checks) == 2
    assert all(check.holds for check in checks), checks
    assert set(table["rows"]) == {"plain-s0", "default-0-s0"}
    assert (tmp_path / "scenario-default.png").is_file()
    assert (tmp_path / "figure.png").is_file()
