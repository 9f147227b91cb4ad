"""Tables: rows of numbers from memory or from .npy, .npz and .csv files, checked before use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from burnin.core import InputError
from burnin.data.checks import require_at_least
from burnin.data.files import number_in, read_array, read_lines, require_file


@dataclass(frozen=True, eq=False)
class Table:
    """A data set of rows. As a density it is the empirical law: each row has probability 1/len.

    Arguments:
        values: the rows, (n, dim), floating-point and finite.
        columns: a name for each column.

    Example:
        >>> import torch
        >>> table = Table(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), columns=("height", "weight"))
        >>> len(table), table.dim
        (2, 2)
        >>> table.sample(3, torch.Generator().manual_seed(0)).shape
        torch.Size([3, 2])
    """

    values: Tensor
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        shape = tuple(self.values.shape)
        if len(shape) != 2:
            raise InputError(f"a table must be 2-D, rows by columns; got shape {shape}")
        if 0 in shape:
            raise InputError(f"the table is empty: {shape[0]} rows and {shape[1]} columns")
        if not self.values.is_floating_point():
            raise InputError(f"a table must hold floating-point numbers; got {self.values.dtype}")
        object.__setattr__(self, "columns", tuple(self.columns))
        if len(self.columns) != shape[1]:
            raise InputError(f"{len(self.columns)} column names for {shape[1]} columns")
        bad = (~self.values.isfinite().all(1)).nonzero().flatten().tolist()
        if bad:
            first = ", ".join(str(index + 1) for index in bad[:5])
            more = ", ..." if len(bad) > 5 else ""
            raise InputError(
                f"{len(bad)} of {shape[0]} rows hold NaN or infinity (row {first}{more}); "
                "remove those rows or fill the gaps"
            )

    @property
    def dim(self) -> int:
        """Number of columns."""
        return self.values.shape[1]

    def __len__(self) -> int:
        """Number of rows."""
        return self.values.shape[0]

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n rows drawn with replacement, (n, dim), on the generator's device."""
        require_at_least("Table", 0, n=n)
        row = torch.randint(len(self), (n,), generator=generator, device=generator.device)
        return self.values[row.to(self.values.device)].to(generator.device)


def load_table(path: str | Path) -> Table:
    """Reads rows of numbers from a file into a table of torch's default precision.

    By the ending: `.npy` and `.npz` hold one 2-D array of numbers (pickled objects are refused);
    `.csv` is comma-separated UTF-8. The first line of a .csv is a header if none of its cells is a
    number. Columns without names are called x1, x2, ... Rows are counted from 1, header excluded.

    Arguments:
        path: the file.

    Raises:
        InputError: one line, for a file that is missing, empty, damaged or of unknown ending; an
            array that is not 2-D; a cell that is not a number; rows with NaN or infinity.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "people.csv"
        ...     _ = path.write_text("height,weight\\n1.8,80\\n1.6,55\\n")
        ...     load_table(path)
        Table(values=tensor([[ 1.8000, 80.0000],
                [ 1.6000, 55.0000]]), columns=('height', 'weight'))
    """
    path = Path(path)
    require_file(path, tuple(_READERS))
    try:
        array, columns = _READERS[path.suffix.lower()](path)
        return _to_table(array, columns)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error


def _to_table(array: NDArray[Any], columns: tuple[str, ...]) -> Table:
    """The table of an array of any numeric type."""
    if array.dtype.kind not in "biuf":
        raise InputError(f"the array holds {array.dtype}; wanted real numbers")
    if array.ndim != 2:
        raise InputError(f"a table must be 2-D, rows by columns; got shape {array.shape}")
    table = Table(
        torch.from_numpy(array.astype(np.float64)),
        columns or tuple(f"x{index + 1}" for index in range(array.shape[1])),
    )
    values = table.values.to(torch.get_default_dtype())
    if not bool(values.isfinite().all()):
        raise InputError(f"some values are too large for {values.dtype}; rescale the columns")
    return Table(values, table.columns)


def _read_numpy(path: Path) -> tuple[NDArray[Any], tuple[str, ...]]:
    """The array of a .npy or .npz file; it has no column names."""
    return read_array(path), ()


def _read_csv(path: Path) -> tuple[NDArray[Any], tuple[str, ...]]:
    """The cells of a .csv file as float64, and the names of its header if it has one."""
    columns, lines = read_lines(path)
    values = np.empty((len(lines), len(lines[0])), dtype=np.float64)
    for row, line in enumerate(lines):
        for column, cell in enumerate(line):
            value = number_in(cell)
            if value is None:
                what = f"{cell.strip()[:30]!r} is not a number" if cell.strip() else "the cell is empty"
                name = f" ({columns[column]})" if columns else ""
                raise InputError(f"row {row + 1}, column {column + 1}{name}: {what}")
            values[row, column] = value
    return values, columns


_READERS: dict[str, Callable[[Path], tuple[NDArray[Any], tuple[str, ...]]]] = {
    ".npy": _read_numpy,
    ".npz": _read_numpy,
    ".csv": _read_csv,
}
