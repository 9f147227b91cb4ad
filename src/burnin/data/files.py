"""Files of rows, read as they are: lines of cells, arrays, columns. The caller says what they mean."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from burnin.core import InputError
from burnin.data.arrays import NoArrayError, read_npy, read_npz
from burnin.extras import require_extra
from burnin.limits import GROWTH, require_room

if TYPE_CHECKING:
    import pyarrow

CELL = 64
"""Bytes of memory that a cell takes as an object of Python."""
DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}


def require_file(path: Path, endings: tuple[str, ...]) -> None:
    """Raises InputError unless the file is there, is not empty and has one of these endings."""
    if path.suffix.lower() not in endings:
        raise InputError(f"{path}: unknown ending {path.suffix!r}; wanted one of {', '.join(endings)}")
    if not path.is_file():
        raise InputError(f"{path}: " + ("is not a file" if path.exists() else "no such file"))
    size = path.stat().st_size
    if size == 0:
        raise InputError(f"{path}: the file is empty")
    require_room(size * (GROWTH if path.suffix.lower() == ".csv" else 1), f"{path}")


def read_array(path: Path) -> NDArray[Any]:
    """The single array of a .npy or .npz file; pickled objects are refused."""
    try:
        return read_npy(path) if path.suffix.lower() == ".npy" else read_npz(path)[0]
    except NoArrayError as error:
        raise InputError(
            f"not a readable {path.suffix.lower()} file of numbers: it is damaged, or holds pickled objects"
        ) from error


def read_lines(path: Path, delimiter: str = ",") -> tuple[tuple[str, ...], list[list[str]]]:
    """The header of a .csv file, empty if it has none, and its lines of cells, all of one length.

    The first line is a header if none of its cells is a number. Blank lines are left out.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [
                line for line in csv.reader(file, delimiter=delimiter) if any(cell.strip() for cell in line)
            ]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError("not a readable .csv file: wanted comma-separated UTF-8 text") from error
    if not lines:
        raise InputError("the file is empty")
    header: tuple[str, ...] = ()
    if all(number_in(cell) is None for cell in lines[0]):
        header = tuple(map(plain_name, lines.pop(0)))
    if not lines:
        raise InputError(f"the file is empty: a header ({', '.join(header)[:60]}) and no rows")
    width = len(header or lines[0])
    for row, line in enumerate(lines):
        if len(line) != width:
            raise InputError(
                f"row {row + 1} has {len(line)} cells; the rows before or the header have {width}"
            )
    return header, lines


def plain_name(name: str) -> str:
    """A column's name without what cannot be printed, as commands to a terminal.

    Example:
        >>> plain_name(" size\\x1b[2J  of it")
        'size[2J of it'
    """
    return "".join(letter for letter in " ".join(name.split()) if letter.isprintable())


def find_delimiter(path: Path) -> str:
    """The delimiter of a .csv file's first line: a comma where there is one, or what else stands there."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        first = next((line for line in file if line.strip()), "")
    return next((mark for mark in DELIMITERS if mark in first), ",")


def read_parquet(path: Path) -> pyarrow.Table:
    """The columns of a .parquet file; those of words as dictionaries, in which a long word is there once."""
    # A hundredth of a second and much memory that only this ending needs.
    require_extra("pyarrow")
    import pyarrow
    import pyarrow.parquet
    from pyarrow.types import is_large_string, is_string

    try:
        schema = pyarrow.parquet.read_schema(path)
        words = [field.name for field in schema if is_string(field.type) or is_large_string(field.type)]
        with pyarrow.parquet.ParquetFile(path, read_dictionary=words) as file:
            head = file.metadata
            require_room(CELL * head.num_rows * head.num_columns, "its table")
            batches, size = [], 0
            for batch in file.iter_batches():
                size += batch.nbytes
                require_room(size, "what it unpacks to")
                batches.append(batch)
            table = pyarrow.Table.from_batches(batches, schema=batches[0].schema if batches else schema)
            table.validate(full=True)  # nothing else holds a dictionary's indices against its words
            return table
    except InputError:
        raise
    except Exception as error:  # pyarrow raises OSError, ValueError, KeyError, … beside its own
        raise InputError("not a readable .parquet file: it is damaged or cut short") from error


def number_in(cell: str) -> float | None:
    """The number in a cell, NaN and infinity included, or None. `1_000` is not taken for a number.

    Example:
        >>> number_in(" 1e3"), number_in("1_000"), number_in("red")
        (1000.0, None, None)
    """
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None
