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
from burnin.data.frames import Frame, is_numeric


def save_frame(frame: Frame, path: Path) -> None:
    """Writes a frame, by the ending: .csv or .parquet with its names; .npy, where all is numbers."""
    with FrameFile(path, frame.names) as file:
        file.append(frame)


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
