"""The three lines of the verdict."""

from __future__ import annotations

import math

import pytest

from burnin.evaluation.verdict import Evidence, judge


@pytest.mark.parametrize(
    ("evidence", "answers"),
    [
        (Evidence(5.0, 5.0, 5.0, 0.3, 100), (True, True, True)),
        (Evidence(5.01, 1.0, 1.0, 0.0, 100), (False, True, True)),
        (Evidence(1.0, 5.01, 1.0, 0.0, 100), (True, False, True)),
        (Evidence(1.0, 1.0, 5.01, 0.0, 100), (True, False, True)),
        (Evidence(1.0, 1.0, 1.0, 0.31, 100), (True, True, False)),
        (Evidence(1.0, 1.0, 1.0, None, 100), (True, True, None)),
        (Evidence(math.inf, math.inf, math.inf, math.inf, 100), (False, False, False)),
        (Evidence(math.nan, math.nan, math.nan, math.nan, 100), (False, False, False)),
    ],
)
def test_each_answer_has_its_own_bound(evidence: Evidence, answers: tuple[bool, bool, bool | None]) -> None:
    verdict = judge(evidence)
    assert (verdict.generator, verdict.density, verdict.fits) == answers
    for line, answer in zip(verdict.lines, answers, strict=True):
        word = {True: "yes.", False: "NO.", None: "unknown."}[answer]
        assert word in line
        assert "\n" not in line
    assert [line.split(":")[0] for line in verdict.lines] == ["generator", "density", "fit"]


@pytest.mark.parametrize(
    ("distance", "grade"), [(2.0, "good"), (2.01, "fair"), (5.0, "fair"), (5.01, "poor")]
)
def test_grades(distance: float, grade: str) -> None:
    assert f"({grade})" in judge(Evidence(distance, 1.0, 1.0, None, 10)).lines[0]
    assert (
        f"({grade})"
        in judge(Evidence(1.0, 1.0, 1.0, {2.0: 0.05, 2.01: 0.06, 5.0: 0.3, 5.01: 0.4}[distance], 10)).lines[2]
    )
