"""IDX files, the format of MNIST: a magic number with the type and rank, the sizes, the numbers."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from burnin.core import InputError
from burnin.data.parts import Part, labelled_part
from burnin.limits import require_room

UNSIGNED_BYTES = 8
"""The type code of uint8, the only one that pictures and labels come in."""
MOST_AXES = 8


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array of unsigned bytes in an IDX file, packed with gzip or not.

    Raises:
        InputError: one line, for a file that is missing, damaged, cut short or of another type.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "two-idx1-ubyte"
        ...     _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]))
        ...     read_idx(path)
        array([7, 9], dtype=uint8)
    """
    try:
        # Unpacked as far as its head says, so that a packed file cannot fill the memory.
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return _read(path, file)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


def _read(path: Path, file: IO[bytes] | gzip.GzipFile) -> NDArray[np.uint8]:
    head = file.read(4)
    if len(head) < 4 or head[:2] != b"\0\0":
        raise InputError(f"{path}: not an IDX file: it does not begin with two zero bytes, a type and a rank")
    kind, rank = head[2], head[3]
    if kind != UNSIGNED_BYTES:
        raise InputError(f"{path}: holds type {kind}; wanted unsigned bytes, type {UNSIGNED_BYTES}")
    sizes = file.read(4 * rank)
    if len(sizes) < 4 * rank:
        raise InputError(f"{path}: damaged: it ends before its {rank} sizes")
    shape = tuple(int(size) for size in np.frombuffer(sizes, dtype=">u4"))
    if rank > MOST_AXES:
        raise InputError(f"{path}: damaged: it has {rank} dimensions; wanted at most {MOST_AXES}")
    wanted = math.prod(shape)
    require_room(wanted, f"{path}: the array")
    content = file.read(wanted + 1)
    if wanted != len(content):
        many = "more" if len(content) > wanted else str(len(content))
        raise InputError(f"{path}: damaged: its head announces {wanted} numbers, {many} follow")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape).copy()


def find_idx(folder: Path, name: str) -> Path | None:
    """The file of this name, packed (`name`.gz) or not."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def read_idx_part(folder: Path, pictures: str, labels: str, num_classes: int) -> Part:
    """Pictures from one file, and their labels from another where it is there.

    Raises:
        InputError: when a file is damaged, or they do not fit each other.
    """
    path = find_idx(folder, pictures) or folder / pictures
    pixels = read_idx(path)
    if pixels.ndim != 3:
        raise InputError(f"{path}: holds an array of {pixels.ndim} dimensions; wanted 3, those of pictures")
    label_path = find_idx(folder, labels)
    if label_path is None:
        return Part(pixels[:, None], None)
    return labelled_part(label_path, pixels[:, None], read_idx(label_path), num_classes)
