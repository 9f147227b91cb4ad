"""Rows of the small variants, whole: what the recipes expect of them comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from burnin.studies import STUDIES, run_study


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("ica", ["d10-ml-s0", "d10-nce-s0"]),
        ("stein-toy", ["pinwheel-score-matching-s0", "pinwheel-nce-s0"]),
        ("stein-images", ["digits8-deep"]),
    ],
)
def test_quick_rows_are_as_expected(name: str, rows: list[str], tmp_path: Path) -> None:
    table, checks = run_study(STUDIES[name], tmp_path, quick=True, rows=rows, jobs=2, status=lambda *_: None)
    assert len(checks) == len(rows)
    missed = [check.text for check in checks if not check.holds]
    assert not missed, missed
    assert set(table["rows"]) == set(rows)
    assert (tmp_path / "figure.png").stat().st_size > 5000
