"""What files of pictures hold, before anything is made of it: arrays of pictures and their labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from burnin.core import InputError


class Part(NamedTuple):
    """Pictures for training, or those held out.

    Attributes:
        pixels: (n, channels, height, width), bytes.
        labels: the class of each, (n,), from 0; None where no file says.
    """

    pixels: NDArray[np.uint8]
    labels: NDArray[np.int64] | None


def labelled_part(path: Path, pixels: NDArray[np.uint8], labels: NDArray[Any], num_classes: int) -> Part:
    """The pictures and labels of a file.

    Raises:
        InputError: when they are not equally many, or a label is beyond the classes.

    Example:
        >>> part = labelled_part(Path("a"), np.zeros((2, 1, 4, 4), np.uint8), np.array([0, 9]), 10)
        >>> part.labels
        array([0, 9])
    """
    if labels.shape != (len(pixels),):
        raise InputError(f"{path}: damaged: {len(pixels)} pictures, and labels of shape {labels.shape}")
    if len(labels) and not 0 <= labels.min() <= labels.max() < num_classes:
        raise InputError(
            f"{path}: damaged: labels from {labels.min()} to {labels.max()}; wanted 0 to {num_classes - 1}"
        )
    return Part(pixels, labels.astype(np.int64))
