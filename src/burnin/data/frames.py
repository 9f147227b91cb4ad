"""Frames: columns of numbers and of words as a file holds them, gaps included."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from burnin.core import InputError
from burnin.data.files import (
    DELIMITERS,
    find_delimiter,
    number_in,
    plain_name,
    read_array,
    read_lines,
    read_parquet,
    require_file,
)
from burnin.extras import require_extra

if TYPE_CHECKING:
    import pyarrow

GAPS = frozenset({"", "na", "n/a", "nan", "null"})
"""Cells that say that a value is missing, in lower case."""
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
NAMED_ROWS = 5
MOST_SHOWN = 100
"""Characters of names in an error."""


@dataclass(frozen=True, eq=False)
class Frame:
    """Columns by name, all of one length.

    Arguments:
        columns: of numbers (float64, a gap is NaN) or of words (objects: str, a gap is None).
        notes: what was put right when the file was read, a sentence each.

    Example:
        >>> colour = np.array(["red", "blue"], dtype=object)
        >>> frame = Frame({"size": np.array([1.0, np.nan]), "colour": colour})
        >>> len(frame), frame.names, frame.rows_with_gaps().tolist()
        (2, ('size', 'colour'), [1])
    """

    columns: Mapping[str, NDArray[Any]]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.columns:
            raise InputError("the table has no columns")
        lengths = {len(values) for values in self.columns.values()}
        if len(lengths) != 1:
            raise InputError(f"the columns have different lengths: {sorted(lengths)}")
        if lengths == {0}:
            raise InputError("the table is empty: it has no rows")

    @classmethod
    def of_numbers(cls, values: NDArray[Any], names: Sequence[str] = ()) -> Frame:
        """From a 2-D array; columns without names are called x1, x2, …"""
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            raise InputError(f"the array holds {array.dtype}; wanted real numbers")
        if array.ndim != 2:
            raise InputError(f"a table must be 2-D, rows by columns; got shape {array.shape}")
        named = list(names) or [f"x{index + 1}" for index in range(array.shape[1])]
        _require_distinct(named)
        return cls(dict(zip(named, array.astype(np.float64).T, strict=True)))

    def __len__(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values())))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(self.columns)

    def without(self, names: Sequence[str]) -> Frame:
        """The frame less some columns.

        Raises:
            InputError: when there is no such column, naming those there are.
        """
        for name in names:
            if name not in self.columns:
                raise InputError(f"there is no column {name!r}; there are: {', '.join(self.names)}")
        kept = {name: values for name, values in self.columns.items() if name not in set(names)}
        return Frame(kept, self.notes)

    def rows_with_gaps(self) -> NDArray[np.int64]:
        """The rows, counted from 0, in which a value is missing."""
        return np.flatnonzero(np.any([gaps_in(values) for values in self.columns.values()], axis=0))

    def require_finite(self) -> None:
        """Raises InputError when a number is infinite, naming row and column."""
        for name, values in self.columns.items():
            if is_numeric(values) and np.isinf(values).any():
                row = int(np.isinf(values).argmax()) + 1
                raise InputError(f"row {row}, column {name}: the value is infinite")

    def require_values(self) -> None:
        """Raises InputError when a column has no values at all."""
        for name, values in self.columns.items():
            if gaps_in(values).all():
                raise InputError(f"column {name} has no values at all; leave it out (--target-col)")

    def require_no_gaps(self) -> None:
        """Raises InputError when a value is missing, naming rows and columns."""
        rows = self.rows_with_gaps()
        if not len(rows):
            return
        names = [name for name, values in self.columns.items() if gaps_in(values).any()]
        first = ", ".join(str(row + 1) for row in rows[:NAMED_ROWS])
        more = ", …" if len(rows) > NAMED_ROWS else ""
        raise InputError(
            f"{len(rows)} of {len(self)} rows have missing values (row {first}{more}; "
            f"column {', '.join(names)}); remove them, or say that gaps may be filled (--impute)"
        )

    def imputed(self, generator: np.random.Generator) -> Frame:
        """Every gap filled with a value drawn from those that its column has: its spread stays what it is."""
        self.require_values()
        columns, notes = dict(self.columns), list(self.notes)
        for name, values in self.columns.items():
            gaps = gaps_in(values)
            if gaps.any():
                filled = values.copy()
                filled[gaps] = generator.choice(values[~gaps], int(gaps.sum()))
                columns[name] = filled
                notes.append(f"{name}: {int(gaps.sum())} gaps filled with values drawn from the column")
        return Frame(columns, tuple(notes))


def is_numeric(values: NDArray[Any]) -> bool:
    """Whether a column is one of numbers."""
    return values.dtype.kind == "f"


def load_frame(path: str | Path) -> Frame:
    """Reads a table of numbers and words from .csv, .parquet, .npy or .npz.

    A .csv column is one of numbers if more than half of its cells are, and then all have to be; empty
    cells and NA, N/A, NaN and null are gaps. Where the first line has no comma but a semicolon, a tab or a
    bar, that is taken for the delimiter, and noted. Rows are counted from 1, header excluded.

    Raises:
        InputError: one line that names the file, and the row and column where there is one.
    """
    path = Path(path)
    require_file(path, tuple(_READERS))
    try:
        frame = _READERS[path.suffix.lower()](path)
        frame.require_finite()
        return frame
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error


def _from_csv(path: Path) -> Frame:
    delimiter = find_delimiter(path)
    header, lines = read_lines(path, delimiter)
    names = header or tuple(f"x{index + 1}" for index in range(len(lines[0])))
    _require_distinct(names)
    parts = re.split(r"[\s:/]+", lines[0][0].strip())
    if len(names) == 1 and len(parts) > 1 and all(number_in(part) is not None for part in parts):
        raise InputError(
            f"one column, with several numbers in a cell ({lines[0][0].strip()[:30]!r}); delimiters are "
            f"{', '.join(DELIMITERS.values())}"
        )
    cells = zip(*([cell.strip() for cell in line] for line in lines), strict=True)
    notes = () if delimiter == "," else (f"read with {DELIMITERS[delimiter]} between cells",)
    return Frame({name: _column(name, column) for name, column in zip(names, cells, strict=True)}, notes)


def _column(name: str, cells: Sequence[str]) -> NDArray[Any]:
    """Numbers or words, whichever most cells are."""
    present = [(row, cell) for row, cell in enumerate(cells) if cell.lower() not in GAPS]
    if not present:  # whether of numbers or of words, nobody can tell
        return np.full(len(cells), np.nan)
    numbers = {row: number_in(cell) for row, cell in present}
    words = [(row, cell) for row, cell in present if numbers[row] is None]
    if 2 * len(words) < len(present):
        if words:
            row, cell = words[0]
            raise InputError(
                f"row {row + 1}, column {name}: {cell[:30]!r} is not a number, "
                f"and {len(present) - len(words)} of its {len(present)} cells are"
            )
        values = np.full(len(cells), np.nan)
        for row, number in numbers.items():
            values[row] = math.nan if number is None else number
        return values
    if sum(DECIMAL_COMMA.fullmatch(cell) is not None for _, cell in present) > len(present) / 2:
        raise InputError(f"column {name} has decimal commas ({present[0][1]!r}); write them as points")
    texts = np.full(len(cells), None, dtype=object)
    for row, cell in present:
        texts[row] = cell
    return texts


def _from_parquet(path: Path) -> Frame:
    require_extra("pyarrow")
    import pyarrow.types as kinds

    table = read_parquet(path)
    names = [plain_name(name) for name in table.column_names]
    _require_distinct(names)
    columns: dict[str, NDArray[Any]] = {}
    for name, column in zip(names, table.columns, strict=True):
        kind = column.type.value_type if kinds.is_dictionary(column.type) else column.type
        given = _values(column)
        if kinds.is_null(kind) or kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind):
            columns[name] = np.array([math.nan if v is None else float(v) for v in given])
        elif kinds.is_boolean(kind) or kinds.is_string(kind) or kinds.is_large_string(kind):
            columns[name] = np.full(len(given), None, dtype=object)
            columns[name][:] = [None if v is None else str(v) for v in given]
        else:
            raise InputError(f"column {name} holds {kind}; turn it into numbers or words, or leave it out")
    return Frame(columns)


def _values(column: pyarrow.ChunkedArray) -> list[Any]:
    """A column's values; those of a dictionary are shared by the rows that have them."""
    import pyarrow

    found: list[Any] = []
    for chunk in column.chunks:
        if isinstance(chunk, pyarrow.DictionaryArray):
            values = chunk.dictionary.to_pylist()
            found += [None if place is None else values[place] for place in chunk.indices.to_pylist()]
        else:
            found += chunk.to_pylist()
    return found


def _from_array(path: Path) -> Frame:
    return Frame.of_numbers(read_array(path))


_READERS: dict[str, Callable[[Path], Frame]] = {
    ".csv": _from_csv,
    ".parquet": _from_parquet,
    ".npy": _from_array,
    ".npz": _from_array,
}


def gaps_in(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a column has no value, (n,)."""
    if is_numeric(values):
        return np.asarray(np.isnan(values))
    return np.array([value is None for value in values.tolist()], dtype=bool)


def _require_distinct(names: Sequence[str]) -> None:
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        listed = ", ".join(repeated[:NAMED_ROWS])[:MOST_SHOWN]
        raise InputError(f"the column name {listed!r} is there more than once; rename one")
