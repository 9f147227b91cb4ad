"""Redraws the tables of README and docs from the JSON files under results/: python docs/draw.py."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from burnin.studies.rings import METRICS
from burnin.studies.table import markdown_table

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", ROOT / "docs" / "rings.md")
SHORT = ("density_kl", "sample_distance", "long_run_distance", "data_run_distance")
FIVE = ("data", "noise", "persistent", "refresh", "hybrid")


def pieces() -> dict[str, str]:
    """The text of every piece that pages may hold between markers."""
    table = json.loads((ROOT / "results" / "rings" / "table.json").read_text(encoding="utf-8"))
    rows = {name: row["metrics"] for name, row in table["rows"].items()}
    checks = [f"- {check['text']}: " + ("yes" if check["holds"] else "**no**") for check in table["checks"]]
    made = table["rows"]["hybrid"]["made_by"]
    seed = table["rows"]["hybrid"]["seed"]
    origin = (
        f"`{made['command']}`, seed {seed}, commit {made['commit']}, {made['time'][:10]}, {made['machine']}, "
        f"torch {made['torch']}."
    )
    return {
        "rings-short": markdown_table({name: rows[name] for name in FIVE}, SHORT),
        "rings-table": markdown_table(rows, METRICS),
        "rings-checks": "\n".join(checks) + "\n",
        "rings-origin": origin + "\n",
    }


def redrawn(text: str) -> str:
    """A page with every marked piece put in anew."""
    for name, piece in pieces().items():
        start, end = f"<!-- {name} -->\n", "<!-- end -->"
        if start in text:
            before, rest = text.split(start, 1)
            text = before + start + piece + rest[rest.index(end) :]
    return text


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(redrawn(page.read_text(encoding="utf-8")), encoding="utf-8")
        sys.stdout.write(f"{page.relative_to(ROOT)}\n")
