"""`burnin bench` on the command line: what it refuses, what it writes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import burnin.bench
from burnin.cli import main
from tests.bench.results import made_up


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["burnin", "bench", *arguments])
    try:
        main()
    except SystemExit as exit:
        return exit.code if isinstance(exit.code, int) else 1
    return 0


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """In place of measuring: a made-up result; the settings it was asked with."""
    asked: list[Any] = []

    def measure(settings: Any, status: Any) -> dict[str, Any]:
        asked.append(settings)
        return made_up()

    monkeypatch.setattr(burnin.bench, "measure", measure)
    monkeypatch.chdir(tmp_path)
    return asked


def test_it_prints_a_table_and_writes_json(
    measured: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        call(monkeypatch, "--sizes", "hmc, training", "--repeats", "2", "--json", "out.json", "--peers") == 0
    )
    assert "## Ratios, one core" in capsys.readouterr().out
    assert json.loads(Path("out.json").read_text(encoding="utf-8")) == made_up()
    assert [case.name for case in measured[0].cases] == ["hmc", "training"]
    assert (measured[0].repeats, measured[0].peers) == (2, True)


def test_docs_are_written_in_a_working_copy(measured: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("docs").mkdir()
    assert call(monkeypatch, "--docs") == 0
    assert Path("docs/benchmarks.md").read_text(encoding="utf-8").startswith("# Benchmarks")
    assert json.loads(Path("results/bench/table.json").read_text(encoding="utf-8")) == made_up()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--json", "there.json"), "there.json exists; choose another --json, or add --force"),
        (("--json", "no/out.json"), "no folder no"),
        (("--sizes", "mla"), "did you mean 'mala'?"),
        (("--threads", "10000"), "cores to use"),
        (("--docs",), "no folder docs"),
    ],
)
def test_bad_input_ends_in_one_line_before_anything_is_measured(
    measured: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    words: str,
) -> None:
    Path("there.json").write_text("old", encoding="utf-8")
    assert call(monkeypatch, *arguments) == 2
    said = capsys.readouterr().err
    assert words in said
    assert len(said.splitlines()) == 1
    assert measured == []
    assert Path("there.json").read_text(encoding="utf-8") == "old"


def test_force_writes_over(measured: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("there.json").write_text("old", encoding="utf-8")
    assert call(monkeypatch, "--json", "there.json", "--force") == 0
    assert json.loads(Path("there.json").read_text(encoding="utf-8")) == made_up()


def test_help_shows_an_example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert call(monkeypatch, "--help") == 0
    assert "Example: burnin bench" in capsys.readouterr().out
