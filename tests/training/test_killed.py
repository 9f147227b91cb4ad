"""A run on pictures that is killed ten times ends with the weights of one that was never stopped."""

from __future__ import annotations

import multiprocessing
import random
import signal
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest
import torch

from burnin.config import load_config
from burnin.runs import train_in
from burnin.training import load_checkpoint
from burnin.training.checkpoint import checkpoint_steps
from tests.training.test_resume import assert_bitwise_equal, metrics

UPDATES, KILLS = 60, 10
SETTINGS = [
    f"run.updates={UPDATES}",
    "run.checkpoint_every=4",
    "run.batch_size=16",
    "run.log_every=1",
    "run.tensorboard=false",
    "model.width=2",
    "sampler.num_steps=3",
    "scheme.bank_size=50",
    "guard.warmup=20",
]
PRELOADED = ["tests.training.test_killed", "burnin.assemble", "sklearn.datasets", "torch._dynamo"]


def train(folder: Path, scheme: str) -> None:
    """In a process of its own; a folder that holds a run is gone on with."""
    torch.set_num_threads(1)
    resume = bool(checkpoint_steps(folder))
    train_in(folder, None if resume else load_config("images-quick", scheme_of(scheme)), resume=resume)


def scheme_of(scheme: str) -> list[str]:
    return [*SETTINGS, f'scheme.name="{scheme}"']


def start(folder: Path, scheme: str) -> ForkServerProcess:
    """Forked from a process that has imported everything: seconds are saved at each of the starts."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    process = context.Process(target=train, args=(folder, scheme))
    process.start()
    return process


def last_step(folder: Path) -> int:
    """The last update whose metrics are whole in the file."""
    path = folder / "metrics.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return len(lines)


@pytest.mark.parametrize("scheme", ["refresh", "hybrid"])
def test_killed_ten_times(tmp_path: Path, scheme: str) -> None:
    chance = random.Random(scheme)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    found_at = []
    for update in sorted(chance.sample(range(2, UPDATES - 8), KILLS)):
        process = start(killed, scheme)
        deadline = time.monotonic() + 60
        while last_step(killed) < update:
            assert process.is_alive(), "training ended before it could be killed"
            assert time.monotonic() < deadline, "training does not go on"
            time.sleep(0.001)
        time.sleep(0.02 * chance.random())  # anywhere in an update, or while a checkpoint is written
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        found_at.append(checkpoint_steps(killed)[-1])
    assert len(set(found_at)) > KILLS // 2, "the kills were all at one place"
    process = start(killed, scheme)
    process.join()
    assert process.exitcode == 0
    process = start(whole, scheme)
    process.join()
    assert process.exitcode == 0
    assert load_checkpoint(killed).state["step"] == UPDATES
    assert_bitwise_equal(load_checkpoint(killed), load_checkpoint(whole))
    assert metrics(killed) == metrics(whole)
