"""Everything public is documented and typed, and its reference can be written."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from tools import api

import burnin

SOURCE = Path(burnin.__file__).parent


def test_everything_public_has_a_docstring_and_types() -> None:
    assert api.complaints() == []


def test_every_room_that_names_its_public_parts_is_in_the_reference() -> None:
    rooms = {
        ".".join(path.parent.relative_to(SOURCE.parent).parts)
        for path in SOURCE.rglob("__init__.py")
        if "__all__" in path.read_text(encoding="utf-8")
    }
    assert rooms == set(api.ROOMS)


def test_what_is_not_documented_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def bare(x, y: int = 0):  # type: ignore[no-untyped-def]
        return x

    monkeypatch.setattr("burnin.samplers.run", bare)
    found = [line for line in api.complaints() if line.startswith("burnin.samplers.run")]
    assert found == [
        "burnin.samplers.run has no docstring",
        "burnin.samplers.run: x has no type",
        "burnin.samplers.run: its result has no type",
    ]


def test_the_reference_is_written_without_a_warning(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pages = api.write(tmp_path)
    assert len(pages) == len(api.ROOMS) + 1
    text = (tmp_path / "burnin.samplers.md").read_text(encoding="utf-8")
    assert "## MALA" in text
    assert "### MALA.step" in text
    assert "min(1, exp(-(E(x') - E(x))/T)" in text
