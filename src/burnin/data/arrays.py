"""Arrays in .npy and .npz files: what their heads announce is held against their size before it is read."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from burnin.core import InputError
from burnin.limits import require_room

ENDING = ".npy"
HEADS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
"""Version 3.0 has other names of fields only, which numbers do not have."""


class NoArrayError(InputError):
    """The file is damaged, or holds pickled objects, which are never read."""


def read_npy(path: Path) -> NDArray[Any]:
    """The array of a .npy file.

    Raises:
        InputError: when it is damaged, announces more than it holds, or holds objects.
    """
    try:
        with path.open("rb") as file:
            return _read(file, path.stat().st_size)
    except (InputError, OSError):
        raise
    except Exception as error:  # numpy has no common error for a damaged file
        raise NoArrayError("damaged") from error


def read_npz(path: Path, *names: str) -> list[NDArray[Any]]:
    """The arrays of these names in a .npz file; without names its only one.

    Raises:
        InputError: when it is damaged, lacks one, is packed far beyond what memory allows, or holds objects.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            held = {info.filename.removesuffix(ENDING): info for info in archive.infolist()}
            if not names and len(held) != 1:
                listed = ", ".join(held)[:60] or "none"
                raise InputError(f"holds {len(held)} arrays ({listed}); wanted exactly one")
            wanted = [held[name] for name in names or held]
            require_room(sum(info.file_size for info in wanted), "what it unpacks to")
            found = []
            for info in wanted:
                with archive.open(info) as file:
                    found.append(_read(file, info.file_size))
            return found
    except (InputError, OSError):
        raise
    except Exception as error:  # numpy, zipfile and zlib have no common error for a damaged file
        raise NoArrayError("damaged") from error


def _read(file: IO[bytes], size: int) -> NDArray[Any]:
    """An array of numbers from a stream that has so many bytes."""
    shape, _, kind = HEADS[np.lib.format.read_magic(file)](file)
    if kind.hasobject or kind.names is not None or kind.subdtype is not None or kind.itemsize == 0:
        raise NoArrayError(f"holds {kind}")
    wanted, left = math.prod(shape) * kind.itemsize, size - file.tell()
    if min(shape, default=0) < 0 or wanted != left:
        raise NoArrayError(f"announces {wanted} bytes, {left} follow")
    require_room(wanted, "its array")
    file.seek(0)
    array = np.lib.format.read_array(file, allow_pickle=False)
    return np.asarray(array)
