"""Pictures and labels in .mat files: SVHN, and the lists of the Oxford Flowers.

Of MATLAB's format, version 5, only arrays of numbers are read, and here: scipy's reader can be made to crash
the whole program by a file with a few bytes changed.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnin.core import InputError
from burnin.data.parts import Part, labelled_part
from burnin.limits import read_within, require_room

HEADER = 128
"""Bytes before the first part; the last four of them are the version and the order of bytes."""
MATRIX, PACKED = 14, 15
"""Kinds of parts: an array, and a part that is packed with zlib."""
STORED = {1: "i1", 2: "u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8", 12: "<i8", 13: "<u8"}
"""How numbers are stored, by the kind of part: MATLAB stores its doubles as bytes where they are such."""
NUMERIC = range(6, 16)
"""Classes of arrays of numbers; the others are texts, cells, structures."""
MOST_AXES = 8
NUM_DIGITS = 10


def read_mat(path: Path, *names: str) -> list[NDArray[Any]]:
    """The arrays of whole numbers of these names, in a .mat file of version 5.

    Raises:
        InputError: when the file is missing, damaged or cut short, or lacks one of them.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        content = read_within(path)
        if content[HEADER - 4 : HEADER] != b"\x00\x01IM":
            raise ValueError("no .mat file of version 5")
        found = dict(_arrays(content[HEADER:], names))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (ValueError, KeyError, struct.error, zlib.error) as error:
        raise InputError(f"{path}: not a readable .mat file: it is damaged or cut short") from error
    for name in names:
        if name not in found or found[name].dtype.kind not in "ui":
            raise InputError(f"{path}: holds no array of whole numbers {name}")
    return [found[name] for name in names]


def _arrays(content: bytes, names: tuple[str, ...]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Arrays by name, those alone that are wanted."""
    for kind, part in _parts(content, packed=True):
        if kind == PACKED:
            kind, part = _unpacked(part)
        if kind == MATRIX:
            inner = _parts(part)
            (_, flags), (_, sizes), (_, name), data = islice(inner, 4)
            if not flags:
                raise ValueError("an array has no class")
            if name.decode("ascii") in names and flags[0] in NUMERIC:
                yield name.decode("ascii"), _numbers(sizes, *data)


def _parts(content: bytes, *, packed: bool = False) -> Iterator[tuple[int, bytes]]:
    """Parts one after the other: what they are, and their bytes.

    A short one has its size and its bytes in the eight that others begin with; all but `packed` ones fill
    eight bytes or a multiple.
    """
    place = 0
    while place < len(content):
        first, size = struct.unpack_from("<II", content, place)
        kind, short = first & 0xFFFF, first >> 16
        start = place + (4 if short else 8)
        size = short or size
        if start + size > len(content) or short > 4:
            raise ValueError("a part is cut short")
        yield kind, content[start : start + size]
        place = place + 8 if short else start + (size if packed and kind == PACKED else -8 * (-size // 8))


def _unpacked(part: bytes) -> tuple[int, bytes]:
    """The one part in a packed one, no more of it than it says."""
    unpacking = zlib.decompressobj()
    kind, size = struct.unpack("<II", unpacking.decompress(part, 8))
    require_room(size, "what it unpacks to")
    inner = unpacking.decompress(unpacking.unconsumed_tail, size) if size else b""
    if len(inner) != size:
        raise ValueError("a packed part is cut short")
    return kind, inner


def _numbers(sizes: bytes, stored: int, content: bytes) -> NDArray[Any]:
    """An array, columns first, as MATLAB has it."""
    shape = tuple(np.frombuffer(sizes, dtype="<i4").tolist())
    flat = np.frombuffer(content, dtype=STORED[stored])
    if not 1 <= len(shape) <= MOST_AXES or min(shape) < 0 or math.prod(shape) != len(flat):
        raise ValueError("an array is of another size")
    return flat.reshape(shape, order="F").copy()


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
