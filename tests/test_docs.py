"""The examples in README and docs are executed; their shell lines are parsed by the real command line."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
import typer.main

from burnin.cli import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_shell_examples_parse(page: Path) -> None:
    group = typer.main.get_command(app)
    for block in blocks(page, "sh"):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if not words or words[0] != "burnin":
                continue
            command = group.get_command(group.make_context("burnin", words[1:]), words[1])  # type: ignore[attr-defined]
            assert command is not None, line
            command.make_context(words[1], words[2:])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_there_are_examples() -> None:
    assert sum(len(blocks(page, "python")) for page in PAGES) >= 5


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        *(
            f"docs/{page}.md"
            for page in (
                "rings",
                "robust",
                "stein",
                "verdict",
                "data",
                "bench-density",
                "measures",
                "trust",
                "calibration",
                "jem",
                "scale",
            )
        ),
    ],
)
def test_tables_are_as_drawn_from_results(name: str) -> None:
    spec = importlib.util.spec_from_file_location("draw", ROOT / "docs" / "draw.py")
    assert spec is not None
    assert spec.loader is not None
    draw = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(draw)
    text = (ROOT / name).read_text(encoding="utf-8")
    assert draw.redrawn(text) == text, "run: python docs/draw.py"
