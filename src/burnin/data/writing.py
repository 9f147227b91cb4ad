"""Frames to files, whole or growing by parts."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnin.core import InputError
from burnin.data.files import find_delimiter, read_lines
from burnin.data.frames import Frame, gaps_in, is_numeric
from burnin.extras import require_extra

DRAW = "draw"
"""The column that says which of several completed tables a row is of."""


def save_frame(frame: Frame, path: Path) -> None:
    """Writes a frame, by the ending: .csv or .parquet with its names; .npy, where all is numbers."""
    with FrameFile(path, frame.names) as file:
        file.append(frame)


def save_filled(source: Path, given: Frame, filled: Sequence[Frame], output: Path) -> None:
    """Writes tables whose gaps were filled, one below the other, with a column `draw` if there are several.

    From .csv to .csv every cell that was there stays as it was written, and so does the delimiter.

    Arguments:
        source: the file that `given` was read from.
        given: the table with its gaps.
        filled: tables of the same rows, with perhaps further columns.
        output: .csv, .parquet or .npy.
    """
    names, several = list(filled[0].names), len(filled) > 1
    if several and DRAW in names:
        raise InputError(f"{source}: there is a column {DRAW!r} already; rename it")
    if source.suffix.lower() != ".csv" or output.suffix.lower() != ".csv":
        with FrameFile(output, [*names, DRAW] if several else names) as file:
            for number, frame in enumerate(filled, 1):
                mark = {DRAW: np.full(len(frame), float(number))} if several else {}
                file.append(Frame({**frame.columns, **mark}))
        return
    delimiter = find_delimiter(source)
    header, lines = read_lines(source, delimiter)
    gaps = {name: gaps_in(values) for name, values in given.columns.items()}
    with output.open("w", encoding="utf-8", newline="") as text:
        writer = csv.writer(text, delimiter=delimiter)
        added = [name for name in names if name not in gaps]
        if header or added or several:
            writer.writerow([*given.names, *added, *([DRAW] if several else [])])
        for number, frame in enumerate(filled, 1):
            cells = {name: _cells(values) for name, values in frame.columns.items()}
            for row, line in enumerate(lines):
                old = [
                    cells[name][row] if gaps[name][row] else cell
                    for name, cell in zip(given.names, line, strict=True)
                ]
                new = [cells[name][row] for name in added]
                writer.writerow([*old, *new, *([str(number)] if several else [])])


class FrameFile:
    """A .csv, .parquet or .npy file that grows by frames of the same columns.

    A .csv grows on disk; the others are written when the file is closed without an error.
    """

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        if path.suffix.lower() not in (".csv", ".parquet", ".npy"):
            raise InputError(f"the output {path} must end in .csv, .parquet or .npy")
        self._path, self._names = path, list(names)
        self._parts: list[Frame] = []
        self._file = None
        if path.suffix.lower() == ".csv":
            self._file = path.open("w", encoding="utf-8", newline="")
            csv.writer(self._file).writerow(self._names)

    def append(self, frame: Frame) -> None:
        """Adds rows."""
        if self._file is None:
            self._parts.append(frame)
            return
        columns = [_cells(frame.columns[name]) for name in self._names]
        csv.writer(self._file).writerows(zip(*columns, strict=True))

    def __enter__(self) -> FrameFile:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._file is not None:
            self._file.close()
        elif kind is None:
            self._write()

    def _write(self) -> None:
        joined = {name: np.concatenate([p.columns[name] for p in self._parts]) for name in self._names}
        if self._path.suffix.lower() == ".npy":
            words = [name for name, values in joined.items() if not is_numeric(values)]
            if words:
                raise InputError(f"{self._path}: {', '.join(words)} holds words; write .csv or .parquet")
            np.save(self._path, np.stack(list(joined.values()), axis=1))
            return
        require_extra("pyarrow")
        import pyarrow
        import pyarrow.parquet

        made = {name: _as_arrow(values) for name, values in joined.items()}
        pyarrow.parquet.write_table(pyarrow.table(made), self._path)


def _as_arrow(values: NDArray[Any]) -> Any:
    """Whole numbers as integers, other numbers as they are, words as words."""
    if is_numeric(values) and np.isfinite(values).all() and (values == np.round(values)).all():
        return values.astype(np.int64) if np.abs(values).max(initial=0) < 2**53 else values
    return values if is_numeric(values) else values.tolist()


def _cells(values: NDArray[Any]) -> list[str]:
    if is_numeric(values):
        return ["" if math.isnan(v) else f"{v:.10g}" for v in values.tolist()]
    return ["" if v is None else str(v) for v in values.tolist()]
