"""The small variant of the convergent toys, whole: chains at their steady state make a density."""

from __future__ import annotations

from pathlib import Path

from burnin.evaluation.verdict import Standing
from burnin.studies import STUDIES, run_study


def test_quick_toy_is_as_expected(tmp_path: Path) -> None:
    study = STUDIES["convergent-toy"]
    table, checks = run_study(study, tmp_path, quick=True, jobs=1, status=lambda *_: None)
    assert [check.holds for check in checks] == [True], checks
    assert table["rows"]["mixture-convergent"]["metrics"]["verdict"] == str(Standing.BOTH)
    assert (tmp_path / "figure.png").stat().st_size > 10_000
