"""A run's folder: config.toml, metrics.jsonl, TensorBoard events, checkpoints, report."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from burnin.core import InputError
from burnin.extras import require_extra
from burnin.limits import parse_json

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


MOST_OF_A_LINE = 1 << 20
"""Characters; what is longer counts as cut short."""


class RunFolder:
    """The files of one run.

    Arguments:
        path: the folder; made if it is not there.
        resume: go on in a folder that holds a run; otherwise such a folder is refused, so nothing is
            ever written over.
    """

    def __init__(self, path: Path, *, resume: bool = False) -> None:
        self.require_usable(path, resume=resume)
        path.mkdir(parents=True, exist_ok=True)
        self.path = path

    @staticmethod
    def require_usable(path: Path, *, resume: bool = False) -> None:
        """Raises InputError when a run cannot be in this folder; makes nothing."""
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is a file, not a folder; choose another --out")
        if not resume and path.exists() and any(path.iterdir()):
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

    Lines of updates after `step`, which a killed run had written beyond its last checkpoint, are cut
    off, so that a resumed log equals that of a run that was never stopped.
    """

    def __init__(self, folder: RunFolder, step: int, *, tensorboard: bool) -> None:
        self._path = folder.metrics_path
        if self._path.exists():
            _cut_after(self._path, step)
        self._file: IO[str] = self._path.open("a", encoding="utf-8")
        self._board: SummaryWriter | None = None
        if tensorboard:
            require_extra("tensorboard")
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(folder.path), purge_step=step + 1)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """One line: the step and its numbers."""
        self._file.write(json.dumps({"step": step, **values}) + "\n")
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(name, value, step)

    def note(self, step: int, event: str) -> None:
        """Writes a line of words at this step."""
        self._file.write(json.dumps({"step": step, "event": event}) + "\n")

    def rewind(self, step: int, event: str) -> None:
        """After a rollback to `step`: cuts the later lines off and writes down what happened."""
        self._file.close()
        _cut_after(self._path, step)
        self._file = self._path.open("a", encoding="utf-8")
        self.note(step, event)
        self.flush()

    def flush(self) -> None:
        """Everything written so far reaches the disk; called before each checkpoint."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes both files."""
        self.flush()
        self._file.close()
        if self._board is not None:
            self._board.close()


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a metrics.jsonl; a last line cut short by a crash is left out.

    Raises:
        InputError: when another line is damaged.
    """
    if not path.exists():
        return
    # What is no UTF-8 is no JSON either, and is then told by the line.
    with path.open(encoding="utf-8", errors="replace") as file:
        for number in count(1):
            line = file.readline(MOST_OF_A_LINE)
            if not line.endswith("\n"):
                return
            try:
                row = parse_json(line)
            except ValueError as error:
                raise InputError(f"{path} is damaged in line {number}: {error}") from error
            if not isinstance(row, dict) or type(row.get("step")) is not int or not 0 <= row["step"] < 2**63:
                raise InputError(f"{path} is damaged in line {number}: it names no step")
            for name, value in row.items():
                if not isinstance(value, str if name == "event" else int | float):
                    raise InputError(f"{path} is damaged in line {number}: {name[:40]!r} is no number")
            yield row


def _cut_after(path: Path, step: int) -> None:
    kept = [row for row in read_metrics(path) if row["step"] <= step]
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
    temporary.replace(path)
