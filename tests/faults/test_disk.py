"""A disk that is full, a folder that is read-only or another's, a file that is gone, a clock that jumps."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burnin.config import load_config
from burnin.core import BurninError, InputError, Outcome, StorageError
from burnin.runs import train_in
from burnin.training import RunFolder, load_checkpoint
from burnin.training.checkpoint import checkpoint_steps
from burnin.training.locking import hold
from tests.faults.lives import RECIPE, end_of

SHORT = ["run.updates=4", "run.checkpoint_every=2"]


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE, encoding="utf-8")
    return str(path)


def failing(patch: pytest.MonkeyPatch, when: int, number: int) -> None:
    """From the call `when` on, every open for writing, flush and rename fails."""
    count = itertools.count(1)

    def wrapped(real: Callable[..., Any], writes: Callable[..., bool]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if writes(*args) and next(count) >= when:
                raise OSError(number, os.strerror(number))
            return real(*args, **kwargs)

        return call

    patch.setattr(os, "fsync", wrapped(os.fsync, lambda *_: True))
    patch.setattr(Path, "open", wrapped(Path.open, lambda _, mode="r", *__: mode != "r"))
    patch.setattr(Path, "replace", wrapped(Path.replace, lambda *_: True))
    patch.setattr(Path, "mkdir", wrapped(Path.mkdir, lambda *_: True))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_fills_up_at_any_write(
    tmp_path: Path, recipe: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, whole = load_config(recipe, SHORT), tmp_path / "whole"
    train_in(whole, config, resume=False)
    for when in itertools.count(1, 1 if number == errno.ENOSPC else 7):
        folder, ended = tmp_path / f"{when}", None
        with monkeypatch.context() as patch:
            failing(patch, when, number)
            try:
                train_in(folder, config, resume=False)
            except BurninError as error:
                ended = error
        if ended is None:
            break  # no write is left that could fail
        assert isinstance(ended, StorageError)
        assert ended.exit_code == 2
        assert "\n" not in str(ended)
        assert str(folder) in str(ended)
        assert ("make room" if number == errno.ENOSPC else "allow writing") in str(ended)
        if folder.exists():
            for step in checkpoint_steps(folder):
                load_checkpoint(folder, step)
            assert not list(folder.glob(".*.tmp"))
        resume = (folder / "config.toml").exists()
        assert train_in(folder, None if resume else config, resume=resume) is Outcome.OK
        assert end_of(folder) == end_of(whole)
    assert when > 30


SMALL_DISK = """
import subprocess, sys
from burnin.cli import main

def mount(*how):
    if subprocess.run(["mount", "-o", *how]).returncode:
        sys.exit(99)

def train(*more):
    sys.argv = ["burnin", "train", "recipe.toml", "--out", "disk/run", *more]
    try:
        main()
        print("ended")
    except SystemExit as end:
        print("ended", end.code)

mount("size=100k", "-t", "tmpfs", "tmpfs", "disk")
train("--set", "run.tensorboard=true")
mount("remount,ro", "disk")
train("--resume")
mount("remount,rw,size=10m", "disk")
train("--resume")
subprocess.run(["cp", "-r", "disk/run", "end"])
"""


def test_a_real_full_disk_and_a_real_read_only_one(tmp_path: Path, recipe: str) -> None:
    """In a namespace of its own, where a user may mount a disk."""
    if shutil.which("unshare") is None:
        pytest.skip("needs to mount a small disk")
    (tmp_path / "disk").mkdir()
    done = subprocess.run(
        ["unshare", "-rm", sys.executable, "-c", SMALL_DISK], cwd=tmp_path, capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"cannot mount a small disk: {done.stderr}")
    assert done.stdout.split("\n")[:3] == ["ended 2", "ended 2", "ended 0"], done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("burnin: ")]
    assert "No space left on device); make room and start it again" in errors[0], done.stderr
    assert "Read-only file system); allow writing there" in errors[1], done.stderr
    assert len(errors) == 2
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert "training: goes on from update " in done.stderr
    whole = tmp_path / "whole"
    train_in(whole, load_config(recipe), resume=False)
    assert load_checkpoint(tmp_path / "end").state == load_checkpoint(whole).state


def test_two_runs_do_not_share_a_folder_and_a_dead_one_does_not_block(tmp_path: Path, recipe: str) -> None:
    config, folder = load_config(recipe, SHORT), tmp_path / "run"
    folder.mkdir()
    read, write = os.pipe()
    other = os.fork()
    if other == 0:
        held = hold(folder)
        os.write(write, b"1")
        time.sleep(60)
        os._exit(held.is_locked)
    try:
        os.read(read, 1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("burnin.training.locking.PATIENCE", 0.05)
            with pytest.raises(InputError, match="in use by another process"):
                train_in(folder, config, resume=False)
        assert [path.name for path in folder.iterdir()] == [".lock"]
    finally:
        os.kill(other, signal.SIGKILL)
        os.waitpid(other, 0)
    assert train_in(folder, config, resume=False) is Outcome.OK
    RunFolder(folder, resume=True).close()


def test_a_data_file_that_is_gone(tmp_path: Path, recipe: str) -> None:
    file, folder = tmp_path / "rows.npy", tmp_path / "run"
    np.save(file, np.random.default_rng(0).normal(size=(100, 2)))
    settings = [*SHORT, f"data.file={file}"]
    text = Path(recipe).read_text(encoding="utf-8").replace('name = "rings10"\n', "")
    Path(recipe).write_text(text, encoding="utf-8")
    train_in(folder, load_config(recipe, [*settings, "run.updates=2"]), resume=False)
    config = (folder / "config.toml").read_text(encoding="utf-8").replace("updates = 2", "updates = 4")
    (folder / "config.toml").write_text(config, encoding="utf-8")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    file.rename(tmp_path / "elsewhere.npy")
    with pytest.raises(InputError, match=r"rows\.npy"):
        train_in(folder, None, resume=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    (tmp_path / "elsewhere.npy").rename(file)
    assert train_in(folder, None, resume=True) is Outcome.OK
    assert checkpoint_steps(folder)[-1] == 4


def test_a_clock_that_jumps(tmp_path: Path, recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config, whole, jumped = load_config(recipe, SHORT), tmp_path / "whole", tmp_path / "jumped"
    train_in(whole, config, resume=False)
    jumps, real = itertools.cycle([0.0, -1e8, 1e8, -3600.0]), time.time
    monkeypatch.setattr(time, "time", lambda: real() + next(jumps))
    train_in(jumped, config, resume=False)
    assert end_of(jumped) == end_of(whole)
