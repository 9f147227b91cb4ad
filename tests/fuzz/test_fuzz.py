"""A few thousand of the cases of `python -m tests.fuzz.run`, and what it sees of a reader's faults."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from burnin.core import InputError
from tests.fuzz import mutate, run
from tests.fuzz.readers import Target
from tests.fuzz.run import Fuzzer, opened, shares

CASES = 2500
RESULTS = Path(__file__).parents[2] / run.ROWS


@pytest.fixture(scope="module")
def fuzzer() -> Iterator[Fuzzer]:
    with opened(seed=0) as made:
        yield made


def test_no_reader_fails_on_a_changed_file(fuzzer: Fuzzer) -> None:
    for name, count in shares(fuzzer, CASES).items():
        done = fuzzer.block(name, 0, count)
        assert done["failures"] == [], name
        # Changes that no reader minds, or that all do, would try nothing.
        assert done["refused"] > 0 or count < 20, name


@pytest.mark.parametrize(
    ("does", "told"),
    [
        (KeyError("x"), "KeyError: 'x'"),
        (RecursionError("deep"), "RecursionError: deep"),
        (InputError("something is wrong"), "names no file"),
        (InputError("a\nb"), "an error of 3 characters"),
    ],
)
def test_what_a_reader_does_wrong_is_seen(fuzzer: Fuzzer, does: Exception, told: str) -> None:
    def read() -> None:
        raise does

    target = replace(fuzzer.readers["csv"][1], read=read)
    fault = fuzzer._case(target)[1]
    assert fault is not None
    assert told in fault


def test_hanging_and_opening_are_seen(fuzzer: Fuzzer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SECONDS", 0.05)

    def hang() -> None:
        while True:
            pass

    fault = fuzzer._case(Target((), hang))[1]
    assert fault is not None
    assert "HangError" in fault
    fuzzer.watch.on = True
    fuzzer.watch.hook("open", ("/etc/passwd", "r", 0))
    fuzzer.watch.hook("open", (f"{fuzzer.folder}/table.csv", "r", 0))
    fuzzer.watch.hook("os.system", (b"ls",))
    fuzzer.watch.on = False
    assert fuzzer._case(Target((), lambda: None)) == (False, "opens /etc/passwd; os.system (b'ls',)")


def test_a_case_is_the_same_whenever_it_is_made() -> None:
    made = [mutate.words(b"a,b\n1,2\n", random.Random("0:csv:7")) for _ in range(2)]
    assert made[0] == made[1]


def test_the_results_are_of_a_million_cases_without_a_failure() -> None:
    table = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert table["total"] == {
        "cases": sum(row["cases"] for row in table["rows"].values()),
        "refused": sum(row["refused"] for row in table["rows"].values()),
        "failures": 0,
    }
    assert table["total"]["cases"] >= 1_000_000
    assert all(row["failures"] == [] for row in table["rows"].values())
