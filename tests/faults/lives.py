"""A small training in a process of its own that is killed: at a moment, before a file call, in mid-file.

Processes are forked from this one, which has imported everything and computed nothing: a life then takes
a fraction of a second, most of it training.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn

import sklearn.datasets  # noqa: F401  (loaded once, here, not in every life)
import torch
import torch._dynamo  # (so is this, which optimisers load)

from burnin.config import load_config
from burnin.core import Outcome
from burnin.runs import train_in
from burnin.training import load_checkpoint, read_metrics
from burnin.training.checkpoint import checkpoint_steps

Kind = Literal["moment", "call", "torn"]
KINDS: tuple[Kind, ...] = ("moment", "call", "torn")
"""At any moment; before a call that opens, flushes, renames or removes a file; with a file half written."""
UPDATES, EVERY = 48, 4
"""Of the run, and between two checkpoints: no more of them may be lost."""
# Everything that has a state: an average, a fitted scale, a guard, Adam, a schedule, noise on the data.
RECIPE = f"""
title = "to be killed"
[run]
updates = {UPDATES}
checkpoint_every = {EVERY}
batch_size = 16
tensorboard = false
compile = "never"
[data]
name = "rings10"
noise = 0.01
[model]
temperature = 0.5
width = 8
depth = 1
average = 0.9
[scheme]
name = "persistent"
bank_size = 200
[sampler]
num_steps = 4
step_size = 0.1
scale = "fisher"
[optimizer]
warmup = 10
decay = "cosine"
[guard]
warmup = 10
patience = 1
"""
RUNS: dict[str, Sequence[str]] = {
    "bank": [],
    "refreshed bank": ["scheme.name=refresh", "scheme.beta=0.1"],
    "hybrid": ["scheme.name=hybrid", "sampler_from_noise.num_chains=8"],
    "without chains": ["objective.name=lsd", "objective.critic_width=8", "sampler.scale=none"],
    "rolled back": ["guard.threshold=3", "guard.window=10", "guard.factor=0.9", "guard.tries=99"],
}
"""Changes of the recipe; the guard of the last one is so strict that it rolls back five times."""


@dataclass(frozen=True)
class Death:
    """How a life is to end.

    Attributes:
        kind: how it is killed.
        after: seconds of the life, or how many calls.
        cut: which share of what is not flushed yet reaches the file that is being written.
    """

    kind: Kind
    after: float
    cut: float = 0.0


@dataclass
class Told:
    """What a life leaves in memory that its parent reads after its death: update and calls."""

    memory: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, 16))

    def read(self) -> tuple[int, int]:
        """The last update, and the calls so far."""
        update, calls = struct.unpack("qq", self.memory[:16])
        return update, calls

    def write(self, place: int, value: int) -> None:
        """Update (0) or calls (1)."""
        self.memory[8 * place : 8 * place + 8] = struct.pack("q", value)


class Killer:
    """Counts a process's calls on the files of a folder, and kills it before one of them."""

    def __init__(self, folder: Path, death: Death | None, told: Told) -> None:
        self.folder, self.death, self.told = str(folder), death, told
        self.calls, self.flushed = 0, dict[int, int]()
        self._fsync = os.fsync

    def install(self) -> None:
        """For good: there is no way back, so only a process that will end does this."""
        self.flushed = {path.stat().st_ino: path.stat().st_size for path in Path(self.folder).glob("*")}
        sys.addaudithook(self._hook)
        os.fsync = self._on_fsync  # type: ignore[assignment]

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & writes):
            return
        known = event in ("open", "os.rename", "os.remove", "os.mkdir")
        if known and str(arguments[0]).startswith(self.folder):
            self._count("call")

    def _on_fsync(self, number: int) -> None:
        self._count("call")
        status = os.fstat(number)
        if os.path.isfile(f"/proc/self/fd/{number}"):  # noqa: PTH113
            safe = min(self.flushed.get(status.st_ino, 0), status.st_size)  # it may have been cut shorter
            if self._dies("torn"):
                assert self.death is not None
                os.ftruncate(number, safe + int(self.death.cut * (status.st_size - safe)))
                _die()
            self._count("torn")
        self._fsync(number)
        self.flushed[status.st_ino] = status.st_size
        self._count("call")

    def _count(self, kind: Kind) -> None:
        if kind == "call" and self._dies("call"):
            _die()
        wanted: Kind = "call" if self.death is None else self.death.kind
        if kind == wanted:
            self.calls += 1
            self.told.write(1, self.calls)

    def _dies(self, kind: Kind) -> bool:
        return self.death is not None and self.death.kind == kind and self.calls >= self.death.after


@dataclass(frozen=True)
class Life:
    """How a process ended.

    Attributes:
        killed: by its own or its parent's SIGKILL; otherwise it came to its end.
        update: the last update it made.
        calls: how many calls it made.
        seconds: how long it lived.
        fault: what it said when it ended in an error.
    """

    killed: bool
    update: int
    calls: int
    seconds: float
    fault: str | None
    said: tuple[str, ...]


def live(folder: Path, run: str, death: Death | None = None) -> Life:
    """Trains in a folder, or goes on there, in a forked process that dies as told."""
    told, notes = Told(), folder.with_name(f"{folder.name}.said")
    notes.unlink(missing_ok=True)
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        _train(folder, run, death, told, notes)
    if death is not None and death.kind == "moment":
        time.sleep(death.after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    seconds = time.perf_counter() - began
    said = tuple(notes.read_text(encoding="utf-8").splitlines()) if notes.exists() else ()
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    fault = None if killed or os.waitstatus_to_exitcode(status) == 0 else "\n".join(said[-3:]) or "no word"
    return Life(killed, *told.read(), seconds, fault, said)


def _train(folder: Path, run: str, death: Death | None, told: Told, notes: Path) -> NoReturn:
    code = 1
    try:
        torch.set_num_threads(1)
        Killer(folder, death, told).install()
        resume = (folder / "config.toml").exists()
        recipe = str(folder.parent / "recipe.toml")
        outcome = train_in(
            folder,
            None if resume else load_config(recipe, RUNS[run]),
            resume=resume,
            on_update=lambda step, _: told.write(0, step),
            on_event=_writer(notes),
        )
        code = 0 if outcome is Outcome.OK else 1
    except BaseException:
        notes.write_text(traceback.format_exc(), encoding="utf-8")
    finally:
        os._exit(code)


def _writer(notes: Path) -> Callable[[str], None]:
    def say(text: str) -> None:
        with notes.open("a", encoding="utf-8") as file:
            file.write(text + "\n")

    return say


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def draw_death(kind: Kind, whole: Life, chance: random.Random, idle: int) -> Death:
    """A death within the first third of what a whole life takes, so that a run dies several times.

    After `idle` lives that did not get on, it comes later: the machine may have become slower.
    """
    share = chance.random() * (1 + idle / 3) / 3
    after = share * whole.seconds if kind == "moment" else int(share * whole.calls)
    return Death(kind, after, chance.random())


def damage(folder: Path, life: Life, newest_before: int) -> str | None:
    """What is wrong with a folder after a life ended: nothing, as long as the next can go on from it."""
    steps = checkpoint_steps(folder)
    try:
        for step in steps:
            load_checkpoint(folder, step)
        list(read_metrics(folder / "metrics.jsonl"))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    newest = steps[-1] if steps else 0
    if newest < newest_before:
        return f"the checkpoint of update {newest_before} is gone; the newest is of {newest}"
    if life.update - newest > EVERY:
        return f"{life.update - newest} updates are lost"
    return life.fault


def end_of(folder: Path) -> dict[str, Any]:
    """All that a finished run leaves, but times: its files by name, bit for bit."""
    files: dict[str, Any] = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    del files["origin.json"]
    rows = [json.loads(line) for line in files["metrics.jsonl"].splitlines()]
    files["metrics.jsonl"] = [{key: row[key] for key in row if key != "seconds"} for row in rows]
    return files
