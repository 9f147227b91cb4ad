"""The Oxford Flowers: a folder of photographs, and lists of which are for training and what they show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from burnin.core import InputError, Report
from burnin.data.folders import read_square
from burnin.data.matlab import read_mat
from burnin.data.parts import Part, labelled_part

NUM_CLASSES = 102
SIDE = 32
"""Where nobody says how large."""
LEAST_SIDE, LARGEST_SIDE = 4, 512
"""The photographs have 500 pixels along the shorter side."""


def read_flowers(folder: Path, side: int | None = None, report: Report | None = None) -> tuple[Part, Part]:
    """The middle square of every photograph: those for training and validation, and those held out.

    One photograph at a time is in memory at its own size.

    Arguments:
        folder: holds jpg/, setid.mat and perhaps imagelabels.mat.
        side: pixels along a side; 32 by default.
        report: told how many are read.

    Raises:
        InputError: when a file is missing or damaged, or the side is none that can be made.
    """
    side = SIDE if side is None else side
    if not LEAST_SIDE <= side <= LARGEST_SIDE:
        raise InputError(
            f"the side is {side}; flowers can have from {LEAST_SIDE} to {LARGEST_SIDE} pixels a side"
        )
    trained, validated, tested = (
        numbers.astype(np.int64).ravel()
        for numbers in read_mat(folder / "setid.mat", "trnid", "valid", "tstid")
    )
    training = np.concatenate([trained, validated])
    every = np.concatenate([training, tested])
    if len(training) == 0 or len(tested) == 0 or every.min() < 1:
        raise InputError(f"{folder / 'setid.mat'}: damaged: wanted numbers of photographs, from 1")
    pixels = np.empty((len(every), 3, side, side), dtype=np.uint8)
    for place, number in enumerate(every):
        picture = read_square(folder / "jpg" / f"image_{number:05d}.jpg", side)
        pixels[place] = picture.transpose(2, 0, 1)
        if report is not None:
            report("reading the flowers", place + 1, len(every))
    labels = _labels(folder / "imagelabels.mat", every)
    if labels is None:
        return Part(pixels[: len(training)], None), Part(pixels[len(training) :], None)
    whole = labelled_part(folder / "imagelabels.mat", pixels, labels, NUM_CLASSES)
    assert whole.labels is not None
    cut = len(training)
    return Part(pixels[:cut], whole.labels[:cut]), Part(pixels[cut:], whole.labels[cut:])


def _labels(path: Path, numbers: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The classes of photographs, from 0 (the file counts from 1)."""
    if not path.is_file():
        return None
    every = read_mat(path, "labels")[0].astype(np.int64).ravel()
    if numbers.max() > len(every):
        raise InputError(f"{path}: damaged: {len(every)} labels, and photographs up to {numbers.max()}")
    return every[numbers - 1] - 1
