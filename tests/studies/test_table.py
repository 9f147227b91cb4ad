"""Expectations held against a table, and the table as Markdown and JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from burnin.settings import Expectation
from burnin.studies.table import check_expectations, format_value, markdown_table, write_json

ROWS: dict[str, dict[str, Any]] = {
    "hybrid": {"kl": 0.02, "distance": 2.0, "shares": [0.333, 0.334, 0.3333], "seconds": 1234.56},
    "noise": {"kl": 0.5, "distance": 2.0, "shares": [1.0, 0.0, 0.0], "seconds": 12.345},
}


def check(**expected: Any) -> list[tuple[str, bool]]:
    return [(c.text, c.holds) for c in check_expectations([Expectation(**expected)], ROWS)]


@pytest.mark.parametrize(("bound", "holds"), [(0.3, True), (0.02, True), (0.0199, False)])
def test_at_most(bound: float, holds: bool) -> None:
    [(text, answer)] = check(scheme="hybrid", metric="kl", at_most=bound)
    assert answer == holds
    assert "hybrid kl = 0.02" in text
    assert f"≤ {bound:g}" in text


@pytest.mark.parametrize(("bound", "holds"), [(0.3, True), (0.5, True), (0.51, False)])
def test_at_least(bound: float, holds: bool) -> None:
    [(text, answer)] = check(scheme="noise", metric="kl", at_least=bound)
    assert answer == holds
    assert f"≥ {bound:g}" in text


@pytest.mark.parametrize(("times", "holds"), [(5, True), (25, True), (25.1, False)])
def test_at_least_times(times: float, holds: bool) -> None:
    [(text, answer)] = check(scheme="noise", metric="kl", at_least_times=times)
    assert answer == holds
    assert "25 × hybrid's" in text


@pytest.mark.parametrize(("times", "holds"), [(0.05, True), (0.04, True), (0.039, False)])
def test_at_most_times(times: float, holds: bool) -> None:
    [(text, answer)] = check(scheme="hybrid", metric="kl", at_most_times=times, of_scheme="noise")
    assert answer == holds
    assert f"0.04 × noise's, expected ≤ {times:g} ×" in text


@pytest.mark.parametrize(("times", "holds"), [(100, True), (101, False)])
def test_times_of_another_metric(times: float, holds: bool) -> None:
    expected = {"scheme": "hybrid", "metric": "distance", "of_scheme": "hybrid", "of_metric": "kl"}
    [(text, answer)] = check(**expected, at_least_times=times)
    assert answer == holds
    assert "100 × hybrid's kl" in text


@pytest.mark.parametrize(
    ("errors", "holds"), [((0.01, 0.02), True), ((0.01, 0.001), False), ((0.02, None), False)]
)
def test_a_tie_within_the_larger_standard_error(errors: tuple[float, float | None], holds: bool) -> None:
    rows: dict[str, dict[str, Any]] = {
        "a": {"auroc": 0.885, "error": errors[0]},
        "b": {"auroc": 0.9, "error": errors[1]},
    }
    expected = Expectation(
        scheme="a", metric="auroc", at_least_times=1.0, of_scheme="b", give_or_take="error"
    )
    assert check_expectations([expected], rows)[0].holds is holds
    other = Expectation(scheme="b", metric="auroc", at_most_times=1.0, of_scheme="a", give_or_take="error")
    assert check_expectations([other], rows)[0].holds is holds


def test_times_of_another_scheme_and_of_zero() -> None:
    assert check(scheme="hybrid", metric="kl", at_least_times=0.03, of_scheme="noise")[0][1]
    rows = {"a": {"kl": 1.0}, "b": {"kl": 0.0}}
    expected = Expectation(scheme="a", metric="kl", at_least_times=1e9, of_scheme="b")
    assert check_expectations([expected], rows)[0].holds


@pytest.mark.parametrize("unknown", [None, math.nan])
def test_times_of_a_number_that_is_not_known_hold_nothing(unknown: float | None) -> None:
    rows: dict[str, dict[str, Any]] = {"a": {"kl": 1.0}, "b": {"kl": unknown}}
    expected = Expectation(scheme="a", metric="kl", at_least_times=1.0, of_scheme="b")
    assert not check_expectations([expected], rows)[0].holds
    bound = Expectation(scheme="b", metric="kl", at_most=1.0)
    assert not check_expectations([bound], rows)[0].holds


def test_rows_that_were_not_made_are_not_judged() -> None:
    assert check(scheme="data", metric="kl", at_most=1.0) == []
    assert check(scheme="noise", metric="kl", at_least_times=2, of_scheme="data") == []


def test_both_bounds_make_two_checks() -> None:
    assert [holds for _, holds in check(scheme="noise", metric="kl", at_most=1.0, at_least=0.6)] == [
        True,
        False,
    ]


@pytest.mark.parametrize("bound", [{"at_most": 1.0}, {"at_least": 1.0}, {"at_least_times": 1.0}])
def test_a_number_that_is_nan_holds_nothing(bound: dict[str, float]) -> None:
    rows = {"hybrid": {"kl": math.nan}}
    assert not check_expectations([Expectation(scheme="hybrid", metric="kl", **bound)], rows)[0].holds


def test_claims_are_marked() -> None:
    checks = check_expectations(
        [
            Expectation(scheme="noise", metric="kl", at_most=0.1, claim=True),
            Expectation(scheme="noise", metric="kl", at_most=0.1),
        ],
        ROWS,
    )
    assert [(c.holds, c.claim) for c in checks] == [(False, True), (False, False)]


def test_markdown_has_metrics_down_and_schemes_across() -> None:
    lines = markdown_table(ROWS, ["kl", "shares", "seconds", "absent"]).splitlines()
    assert lines == [
        "| | hybrid | noise |",
        "|---|---|---|",
        "| kl | 0.02 | 0.5 |",
        "| shares | 0.33 / 0.33 / 0.33 | 1.00 / 0.00 / 0.00 |",
        "| seconds | 1235 | 12.3 |",
        "| absent |  |  |",
    ]


def test_many_rows_go_down() -> None:
    assert markdown_table(ROWS, ["kl", "seconds"], rows_down=True).splitlines() == [
        "| | kl | seconds |",
        "|---|---|---|",
        "| hybrid | 0.02 | 1235 |",
        "| noise | 0.5 | 12.3 |",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (0.123456, "0.123"),
        (1e-7, "1e-07"),
        (999.9, "1e+03"),
        (1000.4, "1000"),
        (3, "3"),
        (math.inf, "inf"),
    ],
)
def test_values(value: object, text: str) -> None:
    assert format_value(value) == text


def test_json_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "table.json"
    write_json(path, {"π": [1, 2.5, None]})
    assert json.loads(path.read_text(encoding="utf-8")) == {"π": [1, 2.5, None]}
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_json(path, {"bad": object()})
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["table.json"]
