"""Arrays that a run keeps for itself in an .npz file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from burnin.core import InputError
from burnin.data.arrays import NoArrayError, read_npz

KINDS = ("|u1", "<i8", "<f4", "<f8")
"""Bytes, whole numbers and floats: what a run writes."""


def read_kept(path: Path, *names: str) -> list[NDArray[Any]]:
    """The arrays of these names.

    Raises:
        InputError: when the file is missing or damaged.
    """
    try:
        found = read_npz(path, *names)
        if any(array.dtype.str not in KINDS for array in found):
            raise NoArrayError("of another kind of numbers than a run keeps")
        return found
    except (InputError, OSError) as error:
        reason = f" ({error})" if str(error) and not isinstance(error, NoArrayError) else ""
        raise InputError(
            f"{path} is missing or damaged{reason}; the run cannot be used without it"
        ) from error
