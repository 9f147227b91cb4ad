"""The small variant of the rings study, whole: two of its five rows, held against its own expected values."""

from __future__ import annotations

from pathlib import Path

from burnin.config import load_config
from burnin.studies import STUDIES, run_study


def test_quick_rings_are_as_expected(tmp_path: Path) -> None:
    rows = ("data", "hybrid")
    table, checks = run_study(
        STUDIES["rings"], tmp_path, quick=True, rows=rows, jobs=2, status=lambda *_: None
    )
    missed = [check.text for check in checks if not check.holds]
    assert not missed, missed
    of_these = [
        e
        for e in load_config("rings-quick").expected
        if e.scheme in rows and (e.at_least_times is None or e.of_scheme in rows)
    ]
    assert len(checks) == len(of_these) >= 5
    assert set(table["rows"]) == set(rows)
    assert (tmp_path / "figure.png").stat().st_size > 10_000
