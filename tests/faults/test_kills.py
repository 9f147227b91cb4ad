"""Runs that are killed a few times; `python -m tests.faults.run` kills hundreds."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

import burnin.training.checkpoint
from tests.faults import lives, recipe
from tests.faults.run import opened

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks, and looks into /proc")


@pytest.mark.parametrize(("run", "kind"), [("rolled back", "call"), ("bank", "torn"), ("hybrid", "moment")])
def test_a_run_killed_until_it_ends_is_as_one_never_killed(run: str, kind: lives.Kind) -> None:
    with opened(seed=1) as room:
        row = room.killed(run, kind, 0)
    assert (row["corrupted"], row["differing"], row["ends"]) == ([], [], 1)
    assert row["kills"] > 0


def test_files_that_are_not_written_whole_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the kills would prove nothing."""

    def write(path: Path, payload: bytes) -> None:
        with path.open("wb") as file:
            file.write(payload)
            file.flush()
            os.fsync(file.fileno())

    monkeypatch.setattr(burnin.training.checkpoint, "write_atomically", write)
    with opened(seed=1) as room:
        row = room.killed("bank", "torn", 0)
    assert len(row["corrupted"]) == 1


def test_the_next_life_says_what_it_recovered(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(lives.RECIPE, encoding="utf-8")
    folder = tmp_path / "run"
    # After the flushes of the start and of some checkpoints: the next one's tensors are half written.
    first = lives.live(folder, "bank", lives.Death("torn", 9, cut=0.5))
    assert first.killed
    last = lives.live(folder, "bank")
    assert last.fault is None
    said = re.fullmatch(
        r"goes on from update (\d+); (\d+) logged after it are made again; "
        r"(\d) files? that a killed run left removed",
        last.said[0],
    )
    assert said is not None, last.said
    assert int(said[1]) + int(said[2]) == first.update
    assert int(said[3]) >= 1


def test_a_recipe_killed_from_outside_ends_as_one_never_killed(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(lives.RECIPE, encoding="utf-8")
    result = tmp_path / "result.json"
    given = [str(path), "--kills", "1", "--seed", "3", "--out", str(tmp_path / "runs"), "--json", str(result)]
    made = recipe.main(given)
    assert (made["updates"], made["differing"], len(made["died_after_checkpoint"])) == (lives.UPDATES, [], 1)
    assert json.loads(result.read_text()) == made
    *_, weights = sorted((tmp_path / "runs" / "killed").glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    assert recipe.compare(tmp_path / "runs" / "whole", tmp_path / "runs" / "killed") == [weights.name]
