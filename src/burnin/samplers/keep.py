"""Where the positions go that a run keeps on its way: to memory, or to a file of any length."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor

from burnin.core import InputError


class Keeper(Protocol):
    """Takes positions, one after another."""

    def add(self, position: Tensor) -> None:
        """Keeps the positions of all chains at one time."""
        ...

    def stacked(self) -> Tensor | None:
        """All that was kept, (k, n, ...), where it is in memory."""
        ...


class InMemory:
    """Keeps positions as tensors: memory grows with every one."""

    def __init__(self) -> None:
        self._positions: list[Tensor] = []

    def add(self, position: Tensor) -> None:
        """Keeps it; no copy, as a step never writes into an earlier position."""
        self._positions.append(position)

    def stacked(self) -> Tensor | None:
        """(k, n, ...), or None when nothing was kept."""
        return torch.stack(self._positions) if self._positions else None


class RowFile:
    """A .npy file that grows along its first axis, in constant memory.

    The header is rewritten on closing with the number of rows that were written, so a run that was
    interrupted leaves a file that loads. Read a large one with ``numpy.load(path, mmap_mode="r")``.
    """

    def __init__(self, path: Path, *, force: bool = False) -> None:
        if path.suffix != ".npy":
            raise InputError(f"{path} must end in .npy")
        if path.exists() and not force:
            raise InputError(f"{path} exists; choose another file, or say that it may be written over")
        self._file = path.open("wb")
        self._shape: tuple[int, ...] = ()
        self._dtype = np.dtype(np.float32)
        self.rows = 0

    def append(self, rows: Tensor) -> int:
        """Adds rows of shape (k, ...), and says how many."""
        values = rows.cpu().contiguous().numpy()
        if self.rows == 0:
            self._shape, self._dtype = values.shape[1:], values.dtype
            self._file.seek(0)
            self._write_header()
        self._file.write(values.tobytes())
        self.rows += len(values)
        return len(values)

    def close(self) -> None:
        """Completes the file."""
        self._file.seek(0)
        self._write_header()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write_header(self) -> None:
        # numpy pads the header so that the first axis can grow to 21 digits without moving the data.
        header = {
            "descr": np.lib.format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": (self.rows, *self._shape),
        }
        np.lib.format.write_array_header_1_0(self._file, header)


class ToDisk(RowFile):
    """Keeps positions in a .npy file of shape (k, n, ...), in constant memory.

    Example:
        >>> import tempfile, numpy, torch
        >>> path = Path(tempfile.mkdtemp()) / "chains.npy"
        >>> with ToDisk(path) as keep:
        ...     keep.add(torch.zeros(3, 2))
        ...     keep.add(torch.ones(3, 2))
        >>> numpy.load(path).shape
        (2, 3, 2)
    """

    def add(self, position: Tensor) -> None:
        """Appends it to the file."""
        self.append(position.unsqueeze(0))

    def stacked(self) -> None:
        """Nothing: it is in the file."""
