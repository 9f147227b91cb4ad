"""A run that is killed and resumed leaves the same numbers as one that was never stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from burnin.config import load_config, read_run_config
from burnin.core import InputError, Outcome
from burnin.runs import train_in
from burnin.training import Snapshot, load_checkpoint
from burnin.training.checkpoint import checkpoint_steps

UPDATES, EVERY = 120, 12
# Everything that has a state: an average, a fitted scale, a guard, Adam, a schedule, noise on the data.
RECIPE = f"""
title = "to be killed"
[run]
updates = {UPDATES}
checkpoint_every = {EVERY}
batch_size = 16
tensorboard = false
[data]
name = "rings10"
noise = 0.01
[model]
temperature = 0.5
width = 8
depth = 1
frequencies = [1.0, 2.0]
gaussian_factor = "learned"
average = 0.9
[scheme]
name = "hybrid"
bank_size = 50
[sampler]
num_steps = 4
step_size = [[0, 0.3], [4, 0.05]]
scale = "fisher"
[sampler_from_noise]
num_chains = 8
num_steps = 6
heat = [[1, 4.0], [5, 1.0]]
resample_below = 0.9
[optimizer]
warmup = 20
decay = "cosine"
[guard]
warmup = 50
"""
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE, encoding="utf-8")
    return path


def start(recipe: Path, folder: Path, scheme: str, *more: str) -> subprocess.Popen[str]:
    program = [sys.executable, "-m", "burnin.cli", "train", str(recipe), "--out", str(folder)]
    return subprocess.Popen(
        [*program, "--set", f"scheme.name={scheme}", *more],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )


def finish(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors


def kill_on_the_way(process: subprocess.Popen[str], folder: Path) -> None:
    """SIGKILL as soon as a checkpoint a third of the way is there."""
    deadline = time.monotonic() + 200
    while not any(step >= UPDATES // 3 for step in checkpoint_steps(folder)):
        assert process.poll() is None, "training ended before it could be killed"
        assert time.monotonic() < deadline, "no checkpoint appeared"
        time.sleep(0.005)
    time.sleep(0.02)  # so that updates beyond the checkpoint are lost
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)
    assert process.returncode == -signal.SIGKILL, "training ended before it could be killed"


def metrics(folder: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        row.pop("seconds", None)
    return rows


def assert_bitwise_equal(a: Snapshot, b: Snapshot) -> None:
    assert a.state == b.state
    assert a.tensors.keys() == b.tensors.keys()
    for name, value in a.tensors.items():
        assert value.dtype == b.tensors[name].dtype, name
        assert value.numpy().tobytes() == b.tensors[name].numpy().tobytes(), name


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("scheme", ["persistent", "hybrid"])
def test_killed_and_resumed_equals_never_stopped(tmp_path: Path, recipe: Path, scheme: str) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    never_stopped, victim = start(recipe, whole, scheme), start(recipe, killed, scheme)
    try:
        kill_on_the_way(victim, killed)
        at = checkpoint_steps(killed)[-1]
        assert UPDATES // 3 <= at < UPDATES
        if scheme == "persistent":  # a crash can leave lines beyond the checkpoint, and half a line
            with (killed / "metrics.jsonl").open("a") as file:
                file.write("" if file.tell() == 0 or _ends_whole(killed) else "\n")
                file.write(json.dumps({"step": at + 1, "loss": 0.0}) + '\n{"step": 1')
        victim = start(recipe, killed, scheme, "--resume")
        finish(victim)
        finish(never_stopped)
    finally:
        for process in (victim, never_stopped):
            process.kill()
            process.wait()

    a, b = load_checkpoint(killed), load_checkpoint(whole)
    assert a.state["step"] == UPDATES
    rooms = {name.split(".")[0] for name in a.tensors}
    assert {"energy", "average", "optimizer", "scale", "stream"} <= rooms
    assert ("start.bank.position" in a.tensors) == (scheme == "persistent")
    assert_bitwise_equal(a, b)
    assert metrics(killed) == metrics(whole)
    updates = [row["step"] for row in metrics(killed) if "event" not in row]
    assert updates == list(range(1, UPDATES + 1))

    before = contents(killed)
    assert train_in(killed, None, resume=True) is Outcome.OK
    reworded = read_run_config(killed).model_copy(update={"about": "words that decide no number"})
    assert train_in(killed, reworded, resume=True) is Outcome.OK
    with pytest.raises(InputError, match="other settings"):
        train_in(killed, load_config(str(recipe), ["run.seed=1"]), resume=True)
    assert contents(killed) == before, "resuming a finished run changed it"


def _ends_whole(folder: Path) -> bool:
    return (folder / "metrics.jsonl").read_bytes().endswith(b"\n")


@pytest.mark.parametrize("cut", [1, 3])
def test_a_resume_from_the_very_first_checkpoints(tmp_path: Path, recipe: Path, cut: int) -> None:
    """A run that ended after `cut` updates with only the checkpoint of update 0 or 2, and goes on from it."""
    settings = ["run.updates=6", "run.checkpoint_every=2", "scheme.name=persistent"]
    config = load_config(str(recipe), settings)
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    train_in(whole, config, resume=False)

    class Stop(BaseException):
        pass

    def stop(step: int, numbers: object) -> None:
        if step == cut:
            raise Stop

    with pytest.raises(Stop):
        train_in(stopped, config, resume=False, on_update=stop)
    assert checkpoint_steps(stopped)[-1] == cut - 1
    assert train_in(stopped, None, resume=True) is Outcome.OK
    assert_bitwise_equal(load_checkpoint(stopped), load_checkpoint(whole))
    assert metrics(stopped) == metrics(whole)


def test_other_seeds_give_other_numbers(tmp_path: Path, recipe: Path) -> None:
    """Else the comparisons above would prove nothing."""
    tensors = []
    for seed in (0, 1):
        settings = ["run.updates=3", "scheme.name=persistent", f"run.seed={seed}"]
        train_in(tmp_path / str(seed), load_config(str(recipe), settings), resume=False)
        tensors.append(load_checkpoint(tmp_path / str(seed)).tensors)
    same = {name for name in tensors[0] if torch.equal(tensors[0][name], tensors[1][name])}
    for room in ("energy.", "average.", "optimizer.", "scale.", "stream.", "start.bank."):
        assert any(name.startswith(room) and name not in same for name in tensors[0]), room
    assert not any(name.endswith("weight") or name.startswith("stream.") for name in same), same
