"""Ratios, requirements and pages of a measurement that is known; the page in docs is as written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from burnin.bench import write_docs, write_page, write_summary
from burnin.bench.contestants import BASELINE, FLOOR, JAX, TORCHEBM
from burnin.bench.ratios import add_ratios
from burnin.core import InputError
from tests.bench.results import LARGE, SMALL, TRAINING, made_up

ROOT = Path(__file__).parent.parent.parent


def row(text: str, title: str, start: str) -> list[str]:
    """The cells of the row that begins with `start`, in the section of that title."""
    section = text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    line = next(line for line in section.splitlines() if line.startswith(f"| {start}"))
    return [part.strip() for part in line.strip("|").replace("\\|", "¦").split("|")]


def checks(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {check["text"]: check["tables"]["one core"] for check in result["requirements"]}


def test_ratios_are_taken_within_a_round() -> None:
    ratios = made_up()["tables"]["one core"]["ratios"]
    assert ratios[SMALL][BASELINE] == {"median": pytest.approx(4), "quartiles": [pytest.approx(4)] * 2}
    assert ratios[SMALL][TORCHEBM]["median"] == pytest.approx(5)
    assert ratios[SMALL][FLOOR]["median"] == pytest.approx(1.25)
    assert ratios[LARGE][FLOOR]["median"] == pytest.approx(2)
    assert JAX not in ratios[SMALL]


def test_requirements_name_the_worst_ratio() -> None:
    found = checks(made_up())
    assert found["against the autograd.grad loop, small sizes: ≥ 2"]["met"] is True
    large = found["against the autograd.grad loop, large sizes: ≥ 1.2"]
    assert (large["met"], large["case"], large["ratio"]) == (False, LARGE, pytest.approx(1.1))
    assert found["against the autograd.grad loop, everything measured: ≥ 1"]["met"] is True
    assert found["against JAX jit + scan, every size: ≥ 1"] == {"ratio": None, "case": None, "met": None}
    assert found["against the floor, small sizes: ≤ 2"]["met"] is True
    assert found["against the floor, large sizes: ≤ 1.3"]["met"] is False
    assert found["one hybrid update against the script: ≥ 2"]["case"] == TRAINING


def test_a_contestant_that_failed_on_one_case_meets_nothing() -> None:
    result = made_up()
    result["tables"]["one core"]["rows"][TRAINING][BASELINE] = {"error": "gone"}
    found = checks(add_ratios(result))
    everything = found["against the autograd.grad loop, everything measured: ≥ 1"]
    assert (everything["ratio"], everything["met"]) == (pytest.approx(1.1), False)
    assert found["one hybrid update against the script: ≥ 2"]["met"] is None


@pytest.mark.parametrize("write", [write_summary, write_page])
def test_tables_hold_the_numbers(write: Any) -> None:
    text = write(made_up())
    ratios = row(text, "Ratios, one core", "100×2")
    assert ratios[1:4] == ["native", "**4.00** (4.00–4.00)", "**5.00** (5.00–5.00)"]
    assert ratios[4:] == ["", "**1.25** (1.25–1.25)"]
    times = row(text, "Microseconds for each step, one core", "100×2")
    assert times[1] == "**100** (100–150), least 100"
    assert times[4] == "ValueError: a ¦ b"
    assert row(text, "Microseconds for each step, one core", "1024×10")[1].startswith("**10,000**")
    assert row(text, "Microseconds for each step, one core", "1024×10")[3] == ""
    assert row(text, "Peak memory, one core", "100×2")[1] == "260 MB (+60)"
    assert row(text, "First call in seconds, one core", "100×2")[2] == "1.23"
    required = row(text, "What is required", "against the floor, large")
    assert required[1] == "**not met**: 2.00 (1024×10, 256×3)"
    assert "one core, 100×2, 64×3, JAX: ValueError: a | b" in text
    assert text.index("Ratios") < text.index("Microseconds") < text.index("Peak") < text.index("First call")


def test_what_more_cores_bring_is_the_ratio_of_medians() -> None:
    result = made_up()
    assert "## What more cores bring" not in write_page(result)
    slower = json.loads(json.dumps(result["tables"]["one core"]))
    slower["rows"][SMALL][BASELINE]["median"] *= 2
    result["tables"]["all cores"] = slower
    cells = row(write_page(add_ratios(result)), "What more cores bring", "100×2")
    assert cells[1:] == ["1.00", "0.50", "1.00", "", "1.00"]


def test_the_summary_says_how_to_install_what_is_missing() -> None:
    result = made_up() | {"missing": {"jax": "jax is not installed; pip install …"}}
    assert "jax is not installed; pip install …\n" in write_summary(result)


def test_a_busy_machine_is_mentioned() -> None:
    result = made_up()
    assert "busy" not in write_summary(result)
    result["settings"]["load"] = 1.26
    assert "the machine was busy before the measurement began (load 1.3)" in write_summary(result)
    assert "the machine was busy before the measurement began (load 1.3)" in write_page(result)


def test_docs_are_written_from_the_numbers_beside_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="working copy"):
        write_docs(tmp_path, made_up())
    (tmp_path / "docs").mkdir()
    page, table = write_docs(tmp_path, made_up())
    assert page.read_text(encoding="utf-8") == write_page(json.loads(table.read_text(encoding="utf-8")))


def test_the_page_is_as_written_from_results() -> None:
    result = json.loads((ROOT / "results" / "bench" / "table.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert page == write_page(result), "run: python docs/draw.py"
