"""A run's folder: config.toml, metrics.jsonl, TensorBoard events, checkpoints, report."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from burnin.core import InputError
from burnin.extras import require_extra
from burnin.limits import parse_json
from burnin.storage import telling, unfinished
from burnin.training.checkpoint import outdated
from burnin.training.locking import LOCK_FILE, hold

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


MOST_OF_A_LINE = 1 << 20
"""Bytes; what is longer counts as cut short."""


class RunFolder:
    """The files of one run, which no other process may write to until `close`, or until this is forgotten.

    Arguments:
        path: the folder; made if it is not there.
        resume: go on in a folder that holds a run; otherwise such a folder is refused, so nothing is
            ever written over.
    """

    def __init__(self, path: Path, *, resume: bool = False) -> None:
        self.require_usable(path, resume=resume)
        with telling(path):
            path.mkdir(parents=True, exist_ok=True)
        self._lock = hold(path)
        try:
            self.require_usable(path, resume=resume)  # it may have changed while it was another's
        except InputError:
            self.close()
            raise
        self.path = path

    def close(self) -> None:
        """Lets others write to the folder."""
        self._lock.release()

    def recover(self, step: int) -> str:
        """Removes what a killed run left unfinished.

        Says that the next one goes on from `step`, that of the checkpoint it took, and what it repeats.
        """
        lost = sum("event" not in row and row["step"] > step for row in read_metrics(self.metrics_path))
        said = [f"goes on from update {step}"]
        if lost:
            said.append(f"{lost} logged after it {'is' if lost == 1 else 'are'} made again")
        left = [*unfinished(self.path), *outdated(self.path)]
        with telling(self.path):
            for file in left:
                file.unlink()
        if left:
            said.append(f"{len(left)} file{'s' if len(left) > 1 else ''} that a killed run left removed")
        return "; ".join(said)

    @staticmethod
    def require_usable(path: Path, *, resume: bool = False) -> None:
        """Raises InputError when a run cannot be in this folder; makes nothing."""
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is a file, not a folder; choose another --out")
        own = {LOCK_FILE, *(file.name for file in unfinished(path))}  # of a run that was killed at its start
        if not resume and path.exists() and any(file.name not in own for file in path.iterdir()):
            raise InputError(
                f"{path} already holds something; choose another --out, or add --resume to go on with its run"
            )
        if resume and not (path / "config.toml").exists():
            raise InputError(f"{path} holds no run to resume (no config.toml); leave out --resume")

    @property
    def config_path(self) -> Path:
        """config.toml: the complete, resolved configuration."""
        return self.path / "config.toml"

    @property
    def metrics_path(self) -> Path:
        """metrics.jsonl: one line for each logged update."""
        return self.path / "metrics.jsonl"


class MetricsLog:
    """Writes metrics.jsonl and TensorBoard events; after a resume it goes on where the checkpoint is.

    Lines that a killed run had written beyond its last checkpoint are cut off, so that a resumed log equals
    that of a run that was never stopped.

    Arguments:
        folder: the run's.
        step: the checkpoint's update; lines of later ones are cut off.
        lines: how many lines there were at the checkpoint, where it says so; all that follow are cut off: of
            its own update too, as a rollback to it leaves one.
        tensorboard: whether to write events too.
    """

    def __init__(self, folder: RunFolder, step: int, *, lines: int | None = None, tensorboard: bool) -> None:
        if tensorboard:
            require_extra("tensorboard")
        self._path = folder.metrics_path
        self.lines = 0
        """Written so far."""
        if self._path.exists():
            self.lines = _cut_after(self._path, step, lines)
        with telling(self._path):
            self._file: IO[str] = self._path.open("a", encoding="utf-8")
        self._board: SummaryWriter | None = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            with telling(folder.path), ExitStack() as undone:
                undone.callback(self._file.close)
                self._board = SummaryWriter(str(folder.path), purge_step=step + 1)
                undone.pop_all()

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """One line: the step and its numbers."""
        self._append({"step": step, **values})
        if self._board is not None:
            with telling(self._path.parent):
                for name, value in values.items():
                    self._board.add_scalar(name, value, step)

    def note(self, step: int, event: str) -> None:
        """Writes a line of words at this step."""
        self._append({"step": step, "event": event})

    def _append(self, row: Mapping[str, Any]) -> None:
        with telling(self._path):
            self._file.write(json.dumps(row) + "\n")
        self.lines += 1

    def rewind(self, step: int, event: str) -> None:
        """After a rollback to `step`: cuts the later lines off and writes down what happened."""
        with telling(self._path):
            self._file.close()
            self.lines = _cut_after(self._path, step)
            self._file = self._path.open("a", encoding="utf-8")
        self.note(step, event)
        self.flush()

    def flush(self) -> None:
        """Everything written so far reaches the disk; called before each checkpoint."""
        with telling(self._path):
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes both files, even where one of them cannot be written any more."""
        with telling(self._path), ExitStack() as closing:
            if self._board is not None:
                closing.callback(self._board.close)
            closing.callback(self._file.close)
            self.flush()


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a metrics.jsonl; a last line cut short by a crash is left out.

    Raises:
        InputError: when another line is damaged.
    """
    return (row for row, _ in _rows(path))


def _rows(path: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """Each line, and where it ends in the file."""
    if not path.exists():
        return
    end = 0
    with path.open("rb") as file:
        for number in count(1):
            line = file.readline(MOST_OF_A_LINE)
            if not line.endswith(b"\n"):
                return
            end += len(line)
            try:
                # What is no UTF-8 is no JSON either, and is then told by the line.
                row = parse_json(line.decode(errors="replace"))
            except ValueError as error:
                raise InputError(f"{path} is damaged in line {number}: {error}") from error
            if not isinstance(row, dict) or type(row.get("step")) is not int or not 0 <= row["step"] < 2**63:
                raise InputError(f"{path} is damaged in line {number}: it names no step")
            for name, value in row.items():
                if not isinstance(value, str if name == "event" else int | float):
                    raise InputError(f"{path} is damaged in line {number}: {name[:40]!r} is no number")
            yield row, end


def _cut_after(path: Path, step: int, lines: int | None = None) -> int:
    """Cuts off what follows the lines up to `step`, and `lines` of them at most; says how many these are.

    The file gets shorter at once or not at all, and is never in memory: it may hold millions of lines.
    """
    kept = end = 0
    for row, position in _rows(path):
        if row["step"] > step or kept == lines:
            break
        kept, end = kept + 1, position
    with telling(path), path.open("r+b") as file:
        file.truncate(end)
        os.fsync(file.fileno())
    return kept
