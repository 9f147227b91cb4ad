"""Labels of the data sets of pictures that have them: what a classifier learns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from burnin.core import InputError
from burnin.data.digits import digits8
from burnin.data.idx import read_idx
from burnin.data.matching import full_bytes
from burnin.data.pictures import SOURCES, data_folder, find_file, load_pictures

LABELLED = ("digits8", *SOURCES)
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


def load_labelled(name: str, side: int | None = None, folder: Path | None = None) -> LabelledPictures:
    """A data set with its labels, at its own size or smaller.

    Arguments:
        name: one of `LABELLED`.
        side: pixels along a side; None for the set's own.
        folder: see `load_pictures`.

    Raises:
        InputError: for a name without labels, a missing or damaged file.

    Example:
        >>> digits = load_labelled("digits8")
        >>> digits.name, digits.pixels.shape, digits.classes
        ('digits8-8', torch.Size([1438, 1, 8, 8]), 10)
    """
    if name not in LABELLED:
        raise InputError(f"there are no labels of {name!r}; a classifier can learn {', '.join(LABELLED)}")
    if name == "digits8":
        return _digits(side)
    pictures = load_pictures(name, folder)
    if side is not None:
        pictures = pictures.resized(side)
    assert pictures.held_out is not None
    labels, test_labels = read_labels(name, folder)
    named = f"{name}-{pictures.shape[1]}"
    return LabelledPictures(named, pictures.pixels, labels, pictures.held_out.pixels, test_labels)


def read_labels(name: str, folder: Path | None = None) -> tuple[Tensor, Tensor]:
    """The labels of a data set's training and test pictures, from the files beside them."""
    source = SOURCES[name]
    place = (folder or data_folder()) / source.folder
    training, test = (
        torch.from_numpy(read_idx(find_file(name, place, _label_file(file), source.origin))).long()
        for file in (source.training, source.held_out)
    )
    return training, test


def _label_file(pictures: str) -> str:
    return pictures.replace("images-idx3", "labels-idx1")


def _digits(side: int | None) -> LabelledPictures:
    from sklearn.datasets import load_digits

    pictures = digits8() if side is None else digits8().resized(side)
    pixels, labels = full_bytes(pictures), torch.as_tensor(load_digits().target).long()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    held = round(HELD_OUT * len(labels))
    test, kept = order[:held], order[held:]
    name = f"digits8-{pictures.shape[1]}"
    return LabelledPictures(name, pixels[kept], labels[kept], pixels[test], labels[test])
