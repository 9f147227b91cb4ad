"""Pictures with the labels that a classifier learns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from burnin.core import InputError, Report
from burnin.data.digits import digits8
from burnin.data.matching import full_bytes
from burnin.data.named_pictures import is_picture_name, load_pictures
from burnin.data.picture_sets import SETS
from burnin.data.pictures import Pictures

LABELLED = ("digits8", *SETS)
HELD_OUT = 0.2
"""Of the digits, which come in one part."""


@dataclass(frozen=True, eq=False)
class LabelledPictures:
    """Pictures with the number of each one's class.

    Attributes:
        name: of the data set, with its side.
        pixels, labels: for training; bytes with 255 the brightest, (n, channels, height, width), and (n,).
        test_pixels, test_labels: held out.
    """

    name: str
    pixels: Tensor
    labels: Tensor
    test_pixels: Tensor
    test_labels: Tensor

    def __post_init__(self) -> None:
        for what, pixels, labels in (
            ("training", self.pixels, self.labels),
            ("test", self.test_pixels, self.test_labels),
        ):
            if len(pixels) != len(labels) or len(labels) == 0:
                raise InputError(
                    f"{self.name}: there are {len(pixels)} {what} pictures and {len(labels)} labels; each "
                    "picture needs one: put the files of one data set together"
                )

    @property
    def classes(self) -> int:
        """How many there are."""
        return int(self.labels.max()) + 1


def load_labelled(
    name: str, side: int | None = None, folder: Path | None = None, report: Report | None = None
) -> LabelledPictures:
    """A data set with its labels, at its own size or smaller.

    Arguments:
        name: one of `LABELLED`, or "hf:owner/name" of a set of Hugging Face with labels.
        side: pixels along a side; None for the set's own.
        folder: see `load_pictures`.
        report: told how a download goes.

    Raises:
        InputError: for a name without labels, a missing or damaged file.

    Example:
        >>> digits = load_labelled("digits8")
        >>> digits.name, digits.pixels.shape, digits.classes
        ('digits8-8', torch.Size([1438, 1, 8, 8]), 10)
    """
    if name != "digits8" and not is_picture_name(name):
        raise InputError(f"there are no labels of {name!r}; a classifier can learn {', '.join(LABELLED)}")
    if name == "digits8":
        pictures = digits8() if side is None else digits8().resized(side)
    else:
        pictures = load_pictures(name, folder, side=side, labelled=True, report=report)
    named, held_out = f"{name}-{pictures.shape[1]}", pictures.held_out
    labels, pixels = _labels(pictures), full_bytes(pictures)
    if held_out is not None:
        return LabelledPictures(named, pixels, labels, full_bytes(held_out), _labels(held_out))
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    held = round(HELD_OUT * len(labels))
    test, kept = order[:held], order[held:]
    return LabelledPictures(named, pixels[kept], labels[kept], pixels[test], labels[test])


def _labels(pictures: Pictures) -> Tensor:
    labels = pictures.labels
    return torch.empty(0, dtype=torch.long) if labels is None else labels.long()
