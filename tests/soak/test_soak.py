"""The soak's arithmetic, and a few turns of it; `python -m tests.soak.run` runs for hours."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.soak.run import DRAWN, Soak, soak


def readings(memory: list[float]) -> Soak:
    return Soak([(float(number), value, number, number) for number, value in enumerate(memory)])


def test_memory_that_grows_is_told_from_memory_that_is_flat() -> None:
    assert readings([50.0] + [100.0, 101.0] * 20).summary()["flat"]  # the first tenth does not count
    growing = readings([100.0 + 0.1 * number for number in range(100)]).summary()
    assert not growing["flat"]
    assert growing["drift"] == pytest.approx(0.0802, abs=0.002)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_few_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.soak.run.TURN", 3)
    monkeypatch.setattr("tests.soak.run.RENEWED", 6)
    seen = soak(tmp_path, 0.0, ["run.tensorboard=false", "run.checkpoint_every=3"])
    assert (seen.runs, seen.diverged) == (2, 0)
    assert [reading[2:] for reading in seen.readings] == [(3, DRAWN), (6, 2 * DRAWN), (9, 3 * DRAWN)]
    assert all(reading[1] > 50 for reading in seen.readings)
