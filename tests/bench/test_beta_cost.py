"""What β costs: pairs of turns, processes, and what the table says of them."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, replace
from typing import Any

import pytest

from burnin.bench import beta_cost, ours
from burnin.bench.cases import BETA, Case
from burnin.bench.contestants import Work
from burnin.core import InputError
from burnin.study_commands import bench


def test_the_ratio_of_a_process_is_that_of_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that the work itself moves: 1 second for a plain update, 1.5 for a weighted one."""
    now = [0.0]

    def updates(case: Case, engine: object, beta: float) -> Work:
        cost = 1.5 if beta == BETA else 1.0
        return Work(lambda steps: now.__setitem__(0, now[0] + cost * steps))

    monkeypatch.setattr(ours, "updates", updates)
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    case = beta_cost.TRAININGS[0]
    assert beta_cost._ratio(asdict(case), rounds=5, seconds=10.0) == pytest.approx(1.5)
    assert now[0] == 2 * 2.5 + 2 * 1.0 + 5 * 10 * 2.5  # first calls, the guess, five pairs of ten updates


def test_a_small_case_is_measured_in_processes_of_its_own() -> None:
    told: list[int] = []
    tiny = replace(beta_cost.TRAININGS[-1], chains=4, width=4)
    result = beta_cost.measure_beta(
        1, 0.006, lambda what, done, total: told.append(done), processes=2, cases=(tiny,)
    )
    tables = result["cases"][tiny.name]["tables"]
    assert told == [0, 1, 2] * len(tables)
    for found in tables.values():
        assert len(found["ratios"]) == 2
        assert min(found["ratios"]) > 0
        assert math.isfinite(found["error"])
    assert result["settings"]["rounds"] == beta_cost.SHORTER


@pytest.mark.parametrize(("ratios", "words"), [([1.0, 1.02], "1.03: met"), ([1.0, 1.1], "1.03: NOT met")])
def test_the_table(ratios: list[float], words: str) -> None:
    cell: dict[str, Any] = {"title": "a case", "tables": {"one core": beta_cost.summarise(ratios)}}
    text = beta_cost.write_beta({"cases": {"one": cell}, "settings": {"beta": 0.1}})
    assert words in text
    assert f"| a case | {sum(ratios) / 2:.3f} ± {(ratios[1] - ratios[0]) / 2:.3f} |" in text


def test_it_measures_cases_of_its_own() -> None:
    for more in ({"peers": True}, {"sizes": "mala"}, {"images": True}):
        with pytest.raises(InputError, match="cases of its own"):
            bench(beta=True, **more)
