"""The small variant of the robust toys, whole: without β a sampler and no density, with it the reverse."""

from __future__ import annotations

from pathlib import Path

from burnin.config import load_config
from burnin.studies import STUDIES, run_study


def test_quick_toys_are_as_expected(tmp_path: Path) -> None:
    study = STUDIES["robust-toy"]
    table, checks = run_study(study, tmp_path, quick=True, jobs=2, status=lambda *_: None)
    missed = [check.text for check in checks if not check.holds]
    assert not missed, missed
    assert len(checks) == len(load_config("robust-toy-quick").expected) == 4
    assert set(table["rows"]) == set(study.quick_rows)
    assert (tmp_path / "figure.png").stat().st_size > 10_000
