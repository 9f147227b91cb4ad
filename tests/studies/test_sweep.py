"""burnin sweep, as a user runs it: rows, means over seeds, a page, and nothing made twice."""

from __future__ import annotations

from pathlib import Path

from burnin.limits import read_json
from tests.studies.test_rows import SMALL
from tests.test_cli import Burnin, assert_refused, burnin

__all__ = ["burnin"]


def test_a_sweep_has_rows_a_table_and_a_page(burnin: Burnin) -> None:
    sets = [word for change in SMALL for word in ("--set", change)]
    command = ["sweep", "rings-quick", "--grid", "lam=10;seed=0:2", *sets, "--out", "out", "--jobs", "1"]
    result = burnin(*command)
    assert result.code == 0, result.err
    table = read_json(Path("out/table.json"))
    ((name, group),) = table["groups"].items()
    assert "lam" in name
    assert f"| {name} | 2 |" in result.out
    kl = [row["metrics"]["density_kl"] for row in table["rows"].values()]
    assert len(kl) == 2
    assert group["density_kl"]["mean"] == sum(kl) / 2
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "<h2>In short</h2>" in page
    assert "<h2>Verdict</h2>" not in page, "a sweep judges no model"
    rows = {path: path.stat().st_mtime_ns for path in Path("out").glob("*seed*.json")}
    assert len(rows) == 2
    assert burnin(*command).code == 0
    assert all(path.stat().st_mtime_ns == made for path, made in rows.items()), "rows are made once"
    assert_refused(burnin("sweep", "rings-quick", "--grid", "lam=10", "--on", "ray"), "here", "slurm")
