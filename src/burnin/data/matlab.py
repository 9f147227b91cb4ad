"""Pictures and labels in .mat files: SVHN, and the lists of the Oxford Flowers."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnin.core import InputError
from burnin.data.parts import Part, labelled_part
from burnin.limits import read_within, require_room

HEADER, PACKED = 128, 15
"""Bytes before the first part of a .mat file (of version 5), and the kind of parts that are packed."""
BLOCK = 1 << 20
NUM_DIGITS = 10


def read_mat(path: Path, *names: str) -> list[NDArray[Any]]:
    """The arrays of these names.

    Raises:
        InputError: when the file is missing, damaged or cut short, or lacks one of them.
    """
    # Much of scipy, which only these files need.
    from scipy.io import loadmat

    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        content = read_within(path)
        _require_unpacked(content)
        found: dict[str, Any] = loadmat(io.BytesIO(content), variable_names=names)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except Exception as error:  # scipy and zlib have no common error for a damaged file
        raise InputError(f"{path}: not a readable .mat file: it is damaged or cut short") from error
    for name in names:
        if not isinstance(found.get(name), np.ndarray) or found[name].dtype.kind not in "ui":
            raise InputError(f"{path}: holds no array of whole numbers {name}")
    return [found[name] for name in names]


def _require_unpacked(content: bytes) -> None:
    """Raises InputError when the packed parts of a .mat file unpack to more than memory allows."""
    place, total = HEADER, len(content)
    while place + 8 <= len(content):
        kind, size = struct.unpack_from("<II", content, place)
        place += 8
        if kind == PACKED:
            unpacking = zlib.decompressobj()
            packed: bytes = content[place : place + size]
            while packed:
                total += len(unpacking.decompress(packed, BLOCK))
                require_room(total, "what it unpacks to")
                packed = unpacking.unconsumed_tail
        place += size


def read_svhn(folder: Path) -> tuple[Part, Part]:
    """Street View House Numbers, cut out at 32×32: pictures for training, and those held out.

    In the files the label 10 stands for a 0.

    Raises:
        InputError: when a file is missing, damaged or cut short.
    """
    return _read_digits(folder / "train_32x32.mat"), _read_digits(folder / "test_32x32.mat")


def _read_digits(path: Path) -> Part:
    pixels, labels = read_mat(path, "X", "y")
    if pixels.ndim != 4 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
        raise InputError(
            f"{path}: damaged: X is {pixels.dtype} of shape {pixels.shape}; wanted bytes, (32, 32, 3, n)"
        )
    pictures = np.ascontiguousarray(pixels.transpose(3, 2, 0, 1))
    digits = labels.astype(np.int64).ravel()
    return labelled_part(path, pictures, np.where(digits == NUM_DIGITS, 0, digits), NUM_DIGITS)
