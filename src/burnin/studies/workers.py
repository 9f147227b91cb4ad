"""Processes that make rows: of this machine by default, or of a cluster (cluster.py).

A row that is there is never made again, and one under way goes on from its checkpoints, so processes that
die are simply replaced.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.managers import DictProxy, SyncManager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

from burnin.core import BurninError, Report
from burnin.runs import available_cores
from burnin.settings import Recipe
from burnin.studies.table import write_json

Settings = TypeVar("Settings", bound=Recipe)
Status = Callable[[str, str, int, int], None]
"""Called with a row's name, what it does, how much is done and how much there is."""
Say = Callable[[str], None]
Board: TypeAlias = "DictProxy[str, tuple[str, int, int]]"
Maker = Callable[[Path, str, Settings, Report, int], dict[str, Any]]
"""Makes a row in the experiment's folder, given its name, settings, whom to tell and how many threads there
are for native chains: `seed`, `metrics` and whatever else the row's file is to hold."""
STOP = "\0stop"
"""On the board: no further row is to be begun."""
TERMINATED = 5.0
"""Seconds that a pool whose process died gets to end the others."""
DEATHS = 3
"""Times that processes may die in a row without any row being finished."""


class WorkerDiedError(Exception):
    """A process that made rows has ended without a word: killed, or out of memory."""


@dataclass(frozen=True)
class RowTask(Generic[Settings]):
    """A row to be made, wherever: all of it can be sent to another process.

    Attributes:
        make: what makes it.
        out: the experiment's folder.
        name: the row's.
        settings: the row's.
        origin: the command, commit, time and machine that its file is to hold.
        first: whether it takes longest, and so should start before the others.
    """

    make: Maker[Settings]
    out: Path
    name: str
    settings: Settings
    origin: dict[str, Any]
    first: bool

    @property
    def path(self) -> Path:
        """The row's file, written last."""
        return self.out / f"{self.name}.json"

    def run(self, report: Report, threads: int) -> None:
        """Makes the row and writes its file."""
        content = self.make(self.out, self.name, self.settings, report, threads)
        row = {"row": self.name, **content, "made_by": self.origin, "config": self.settings.essence()}
        write_json(self.path, row)


Round = Callable[[Sequence[RowTask[Any]]], None]
"""Makes rows, side by side; raises WorkerDiedError when a process has died."""


def make_rows(tasks: Sequence[RowTask[Any]], make: Round, say: Say) -> None:
    """Makes rows by rounds, as long as processes that die leave some to be made.

    Raises:
        BurninError: when processes die again and again and no row is finished.
    """
    deaths = 0
    while tasks:
        try:
            make(tasks)
            return
        except WorkerDiedError as error:
            left = [task for task in tasks if not task.path.exists()]
            deaths = 1 if len(left) < len(tasks) else deaths + 1
            names = ", ".join(task.name for task in left[:3]) + (", …" if len(left) > 3 else "")
            if deaths >= DEATHS:
                raise BurninError(
                    f"processes died {deaths} times and no row was finished ({error}); left: {names}. "
                    "Perhaps the memory is short: lower --jobs, and start it again to go on"
                ) from error
            say(f"a process died ({error}); {len(left)} rows go on from their checkpoints: {names}")
            tasks = left


def local_round(tasks: Sequence[RowTask[Any]], jobs: int, status: Status) -> None:
    """Makes rows in `jobs` processes of this machine, one thread each but for native chains.

    Ctrl-C lets rows under way save and ends; a second one ends at once.
    """
    threads = max(1, available_cores() // jobs)
    context = multiprocessing.get_context("spawn")
    workers = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(os.getpid(),))
    queue = sorted(tasks, key=lambda task: not task.first)
    boards = SyncManager(ctx=context)
    boards.start(_end_with, (os.getpid(),))
    with boards as manager, workers as pool:
        board: Board = manager.dict()
        others = {child.pid for child in multiprocessing.active_children()}

        seen: dict[int | None, BaseProcess] = {}

        def children() -> list[BaseProcess]:
            """This pool's, those that have ended too: their exit codes say how."""
            seen.update({child.pid: child for child in multiprocessing.active_children()})
            return [child for pid, child in seen.items() if pid not in others]

        pending = {pool.submit(_make_row, task, board, threads) for task in queue}
        children()
        with _interruptible(pool, board, children):
            while pending:
                done, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
                for name, (what, count, total) in dict(board).items():
                    status(name, what, count, total)
                for future in done:
                    _raise_what_ended(future, pool, children)


def _raise_what_ended(
    future: Future[None], pool: ProcessPoolExecutor, children: Callable[[], list[BaseProcess]]
) -> None:
    if future.exception() is None:
        return
    if isinstance(future.exception(), BrokenProcessPool):
        for child in children():
            child.join(TERMINATED)
    # The pool terminates the others when one dies; what that one died of is something else.
    codes = [child.exitcode for child in children() if child.exitcode not in (None, 0, -signal.SIGTERM)]
    # Rows under way are cut off, and go on from their checkpoints another time.
    pool.shutdown(wait=False, cancel_futures=True)
    _kill(children())
    try:
        future.result()
    except BrokenProcessPool as error:
        code = codes[0] if codes else None
        how = "it ended" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}"
        raise WorkerDiedError(how) from error


@contextmanager
def _interruptible(
    pool: ProcessPoolExecutor, board: Board, children: Callable[[], list[BaseProcess]]
) -> Iterator[None]:
    """Ctrl-C is for the rows first: they save and end, and no other begins."""
    try:
        yield
    except KeyboardInterrupt:
        try:
            board[STOP] = ("", 0, 0)
            pool.shutdown(wait=False, cancel_futures=True)
            for child in children():
                if child.pid is not None and child.is_alive():
                    os.kill(child.pid, signal.SIGINT)
            for child in children():
                child.join()
        except KeyboardInterrupt:
            _kill(children())
        raise


def _kill(children: Sequence[BaseProcess]) -> None:
    for child in children:
        child.kill()
        child.join()


def _begin(parent: int) -> None:
    """Of a process that makes rows: Ctrl-C reaches it through the parent only, with whom it ends.

    Between rows it has nothing to save, and must not be ended: the pool would then end the others.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    _end_with(parent)


def _end_with(parent: int) -> None:
    """Of a process that serves another one: it ends soon after that one, however that one ends."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _make_row(task: RowTask[Any], board: Board, threads: int) -> None:
    if STOP in board:
        return

    def report(what: str, done: int, total: int) -> None:
        board[task.name] = (what, done, total)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        task.run(report, threads)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
