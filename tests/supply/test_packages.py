"""What burnin stands on: pinned, licensed, and told on the page of dependencies."""

from __future__ import annotations

import re

import pytest
from packaging.requirements import Requirement
from tools import supply


def test_all_that_is_installed_is_pinned() -> None:
    assert supply.unpinned() == []
    assert {"torch", "hatchling", "pytest", "cloudpickle"} <= set(supply.closure(["", "dev", "build"]))


def test_what_is_not_pinned_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = supply.pins()
    other = {**pinned, "torch": "1.0"}
    del other["cloudpickle"]
    monkeypatch.setattr(supply, "pins", lambda: other)
    found = supply.unpinned()
    assert [line.split("==")[0] for line in found] == ["cloudpickle", "torch"]


def test_licences_are_known_and_let_everybody_use_burnin() -> None:
    told = supply.licences()
    assert {name: stated for name, (_, stated) in told.items() if supply.refused(stated)} == {}


@pytest.mark.parametrize(
    ("stated", "wrong"),
    [
        ("MIT", False),
        ("Apache-2.0 OR BSD-2-Clause", False),
        ("GPL-3.0-only", True),
        ("GNU General Public License v3 (GPLv3)", True),
        ("GPL-2.0 OR MIT", False),
        ("MIT AND GPL-3.0", True),
        ("AGPL-3.0", True),
        ("unknown", True),
        ("Proprietary", True),
    ],
)
def test_which_licences_are_refused(stated: str, wrong: bool) -> None:
    assert supply.refused(stated) is wrong


def test_the_page_of_licences_is_as_written() -> None:
    assert supply.PAGE.read_text(encoding="utf-8") == supply.page(), "run: python tools/supply.py licences"


def test_every_dependency_is_justified() -> None:
    page = (supply.ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    words = set(re.findall(r"[a-z0-9-]+", page.lower()))
    names = {Requirement(line).name for lines in supply.project().values() for line in lines} - {"burnin"}
    assert {name for name in names if name.lower() not in words} == set()


def test_what_was_not_audited_is_not_taken_for_safe() -> None:
    safe = {"name": "a", "version": "1", "vulns": []}
    weak = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1"}]}
    unknown = {"name": "c", "skip_reason": "not found"}
    assert supply.audited({"dependencies": [safe]}) == []
    assert supply.audited({"dependencies": [safe, weak]}) == ["b 2: PYSEC-1"]
    assert supply.audited({"dependencies": [safe, unknown]}) == ["1 of 2 packages were not audited: c"]
