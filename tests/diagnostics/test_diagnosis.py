"""From the lines of a metrics.jsonl to numbers and sentences."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from burnin.core import InputError
from burnin.diagnostics import ChainNoise, classify, diagnose, read_series
from burnin.diagnostics.correlation import WINDOW, Values
from burnin.diagnostics.words import findings, table, table_text
from tests.diagnostics.series import auto_regressive, white


def lines(d: Values, *, every: int = 1, arm: str = "noise", r: Values | None = None) -> list[dict[str, Any]]:
    forces = np.full(len(d), 2.0) if r is None else r
    return [
        {
            "step": every * (i + 1),
            "loss": 0.0,
            f"d/{arm}": float(d[i]),
            f"r/{arm}": float(forces[i]),
            f"std/{arm}": 4.0,
            f"snr/{arm}": -0.5,
            f"step_size/{arm}": 0.1,
        }
        for i in range(len(d))
    ]


def test_numbers_come_from_the_last_lines_and_counts_from_all() -> None:
    d = np.concatenate([np.full(500, -9.0), white(WINDOW, 0)])
    arm = diagnose(lines(d, r=2 + 0.1 * white(len(d), 1))).arms[0]
    assert arm.num_window == WINDOW
    assert arm.oscillation == classify(d[-WINDOW:])
    assert arm.oscillation.kind == "weak"
    assert arm.recent.expansions == int(np.sum(d[-WINDOW:] < 0))
    assert arm.updates.expansions == arm.recent.expansions + 500
    assert (arm.std, arm.snr) == (4.0, 0.5)
    assert arm.correlations is not None
    assert [len(x) for x in (arm.correlations.d, arm.correlations.d_bounds, arm.correlations.cross)] == [
        16,
        15,
        31,
    ]
    assert arm.correlations.d[0] == pytest.approx(1)
    assert arm.oscillation.bound == pytest.approx(arm.correlations.d_bounds[arm.oscillation.lag - 1])


def test_a_thinned_log_tells_no_oscillation_and_says_why() -> None:
    rows = lines(auto_regressive(-0.5, 500, 0), every=10)
    rows.append({**rows[-1], "step": 5003})  # the last update is always logged
    found = diagnose(rows)
    assert found.every == 10
    oscillation = found.arms[0].oscillation
    assert oscillation.kind == "unknown"
    assert "one update in 10" in oscillation.reason
    said = " ".join(findings(found))
    assert "a lag of 1 is 10 updates" in said
    assert "run.log_every=1" in said
    assert diagnose(lines(auto_regressive(-0.5, 500, 0))).arms[0].oscillation.kind == "strong"


def test_every_arm_has_its_column_and_its_sentences() -> None:
    first, second = lines(white(300, 0), arm="data"), lines(auto_regressive(-0.5, 300, 1), arm="noise")
    both = [{**a, **b} for a, b in zip(first, second, strict=True)]
    noise = {"noise": ChainNoise(temperature=0.5, dim=4)}
    found = diagnose([*both, {"step": 300, "event": "something happened"}], noise)
    assert [arm.series.name for arm in found.arms] == ["data", "noise"]
    header, *rows = table(found)
    assert header == ("", "data", "noise")
    cells = {row[0]: row[1:] for row in rows}
    assert cells["oscillation"] == ("weak", "strong")
    ratio = 0.1 * 2.0 / np.sqrt(2 * 0.1 * 0.5 * 4)
    assert cells["drift / noise of a step"] == ("–", f"{ratio:.2g}")
    assert cells["collapse"] == ("no", "no")
    text = table_text(found).splitlines()
    assert text[4][text[0].index("data") :].startswith("weak")
    assert text[4][text[0].index("noise") :] == "strong"
    said = findings(found)
    assert any(text.startswith("data: Weak oscillation") for text in said)
    assert any(text.startswith("noise: Strong oscillation") and "learning_rate" in text for text in said)
    assert sum("expansion updates" in text for text in said) == 2
    assert sum("balanced" in text for text in said) == 1


def test_collapse_and_imbalance_are_said_with_what_to_change() -> None:
    d = -np.exp(np.arange(800) / 100)
    found = diagnose(lines(d, r=np.full(800, 1e-4)), {"noise": ChainNoise(1.0, 2)})
    said = " ".join(findings(found))
    assert "Collapse (d → -∞): d fell without a turn from update 1" in said
    assert "data.noise" in said
    assert "d runs away" in said
    assert "still on its way" not in said
    assert "the noise dominates" in said
    descending = findings(diagnose(lines(d, r=np.full(800, 1e4)), {"noise": ChainNoise(1.0, 2)}))
    assert any("the drift dominates" in text and "lower step_size" in text for text in descending)


@pytest.mark.parametrize("n", [1, 2, 3, 20, 49])
def test_short_runs_say_so(n: int) -> None:
    found = diagnose(lines(white(n, 0)), {"noise": ChainNoise(1.0, 2)})
    assert found.arms[0].oscillation.kind == "unknown"
    assert any("too few" in text for text in findings(found))
    assert table_text(found)
    json.dumps(found.as_dict(), allow_nan=False)


def test_everything_goes_to_json() -> None:
    found = diagnose(lines(-np.exp(np.arange(800) / 100)), {"noise": ChainNoise(1.0, 2)})
    content = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    arm = content["arms"]["noise"]
    assert arm["collapses"][0]["began"] == 1
    assert arm["oscillation"]["kind"] == "none yet"
    assert len(arm["correlations"]["cross"]) == 31
    assert arm["balance"]["state"] in ("balanced", "the noise dominates", "the drift dominates")


def test_arms_without_steps_and_without_numbers() -> None:
    rows = lines(white(100, 0), r=np.zeros(100))
    assert diagnose(rows, {"noise": ChainNoise(1.0, 2)}).arms[0].balance is None
    bare = [{key: row[key] for key in ("step", "loss", "d/noise", "r/noise")} for row in rows]
    arm = diagnose(bare, {"noise": ChainNoise(1.0, 2)}).arms[0]
    assert (arm.std, arm.snr, arm.balance) == (None, None, None)
    assert diagnose([]).arms == []
    assert diagnose([{"step": 0, "event": "began"}]).arms == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_missing_and_non_finite_numbers_are_refused(value: float | None) -> None:
    rows = lines(white(60, 0))
    if value is None:
        del rows[30]["r/noise"]
    else:
        rows[30]["r/noise"] = value
    with pytest.raises(InputError, match="update 31"):
        read_series(rows)


def test_a_weighted_contrasts_d_is_not_taken_for_a_gradient() -> None:
    rows = [{**row, "grad_scale/noise": 0.9} for row in lines(auto_regressive(-0.5, 300, 0) - 2)]
    found = diagnose(rows)
    assert found.arms[0].weighted
    assert found.arms[0].oscillation.kind == "unknown"
    said = " ".join(findings(found))
    assert "β-weighted" in said
    assert "expansion" not in said


def test_monitors_that_begin_later_are_unknown_before() -> None:
    rows = lines(white(60, 0))
    for row in rows[40:]:
        row["grad_scale/noise"] = 0.5
    values = read_series(rows)[0].other["grad_scale"]
    assert np.isnan(values[:40]).all()
    assert (values[40:] == 0.5).all()
