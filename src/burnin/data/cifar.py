"""The files of CIFAR-10: batches in records of bytes, or as Python pickles, of which no code is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnin.core import InputError
from burnin.data.parts import Part, labelled_part
from burnin.data.pickles import read_pickle
from burnin.limits import read_within

BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST_BATCH = "test_batch"
SHAPE = (3, 32, 32)
"""Red, green, blue; rows; columns."""
PIXELS = 3 * 32 * 32
NUM_CLASSES = 10


def read_cifar_binary(folder: Path) -> tuple[Part, Part]:
    """The pictures for training and those held out, from the .bin files of cifar-10-batches-bin.

    Raises:
        InputError: when a file is missing, damaged or cut short.
    """
    return _joined(folder, [_read_records(folder / f"{name}.bin") for name in (*BATCHES, TEST_BATCH)])


def read_cifar_pickles(folder: Path) -> tuple[Part, Part]:
    """The pictures for training and those held out, from the pickles of cifar-10-batches-py.

    Raises:
        InputError: when a file is missing or damaged, or holds more than arrays and lists.
    """
    return _joined(folder, [_read_pickle(folder / name) for name in (*BATCHES, TEST_BATCH)])


def _joined(folder: Path, batches: list[Part]) -> tuple[Part, Part]:
    training = batches[:-1]
    pixels = np.concatenate([batch.pixels for batch in training])
    labels = np.concatenate([batch.labels for batch in training if batch.labels is not None])
    return labelled_part(folder, pixels, labels, NUM_CLASSES), batches[-1]


def _read_records(path: Path) -> Part:
    """A file of records: a byte for the label, then the pixels, colour by colour."""
    content = np.frombuffer(_content(path), dtype=np.uint8)
    if len(content) == 0 or len(content) % (1 + PIXELS):
        raise InputError(
            f"{path}: damaged or cut short: {len(content)} bytes; wanted a multiple of {1 + PIXELS}"
        )
    records = content.reshape(-1, 1 + PIXELS)
    return labelled_part(path, _pictures(records[:, 1:]), records[:, 0], NUM_CLASSES)


def _read_pickle(path: Path) -> Part:
    """A pickle of a dictionary with `data`, (n, 3072) bytes, and `labels`, a list."""
    content = _content(path)
    try:
        batch: Any = read_pickle(content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except Exception as error:  # a damaged pickle raises anything
        raise InputError(f"{path}: damaged or cut short: not a pickle that can be read") from error
    if not isinstance(batch, dict) or not {"data", "labels"} <= batch.keys():
        raise InputError(f"{path}: wanted a batch of CIFAR-10, a dictionary with data and labels")
    data, labels = batch["data"], batch["labels"]
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (PIXELS,):
        raise InputError(f"{path}: damaged: its data is no array of bytes, {PIXELS} for each picture")
    if not isinstance(labels, list) or not all(
        type(label) is int and 0 <= label < NUM_CLASSES for label in labels
    ):
        raise InputError(
            f"{path}: damaged: its labels are no list of whole numbers from 0 to {NUM_CLASSES - 1}"
        )
    return labelled_part(path, _pictures(data), np.array(labels, dtype=np.int64), NUM_CLASSES)


def _content(path: Path) -> bytes:
    try:
        return read_within(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _pictures(rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(rows).reshape(-1, *SHAPE)
