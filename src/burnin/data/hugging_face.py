"""Pictures of Hugging Face: any data set of the hub by its name, through the package `datasets`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from burnin.core import InputError, Report
from burnin.data.folders import plain, squared
from burnin.data.parts import Part
from burnin.data.pictures import Pictures

PREFIX = "hf:"
TRAINING = ("train", "training")
HELD_OUT = ("test", "validation", "valid", "val")
"""The names of splits, in the order in which they are taken."""
SHARE = 0.1
"""What is held out where there is one split only."""
LARGEST = 512


def load_hugging_face(
    name: str, *, side: int | None = None, labelled: bool = False, report: Report | None = None
) -> Pictures:
    """A data set of the hub, numbers in [-1, 1]: the first column of pictures, and the first of classes.

    Training is the split `train`, held out is `test` or else `validation`; where there is neither, a tenth of
    the only split is held out.

    Arguments:
        name: "owner/name", or "owner/name:subset" where a data set has several.
        side: the middle square of each picture, made so large; None takes them as they are, all of one size.
        labelled: a column of classes must be there.
        report: told how many are read.

    Raises:
        InputError: without the package, for a name that cannot be loaded, without a column of pictures, or
            when sizes differ.
    """
    datasets = _package(name)
    splits = _load(datasets, name)
    first = _chosen(splits, TRAINING) or next(iter(splits))
    second = _chosen({key: value for key, value in splits.items() if key != first}, HELD_OUT)
    column, label = _columns(datasets, name, splits[first])
    classes = () if label is None else tuple(splits[first].features[label].names)
    parts = [
        _read(name, splits[split], column, label, side, report, f"reading {split}")
        for split in (first, second)
        if split is not None
    ]
    if labelled and any(part.labels is None for part in parts):
        raise InputError(f"hf:{name}: a split has no column of classes (ClassLabel), or hides them")
    channels = max(part.pixels.shape[1] for part in parts)
    pixels = [torch.from_numpy(np.repeat(p.pixels, channels // p.pixels.shape[1], axis=1)) for p in parts]
    labels = [None if part.labels is None else torch.from_numpy(part.labels) for part in parts]
    if second is None:
        return Pictures(pixels[0], labels=labels[0], classes=classes).apart(SHARE, seed=0)
    if pixels[0].shape[1:] != pixels[1].shape[1:]:
        raise InputError(f"hf:{name}: pictures of {first} and {second} differ in size; set data.side")
    held_out = Pictures(pixels[1], labels=labels[1], classes=classes)
    return Pictures(pixels[0], labels=labels[0], classes=classes, held_out=held_out)


def _package(name: str) -> Any:
    try:
        import datasets
    except ImportError:
        raise InputError(
            f"hf:{name} needs the package datasets: install it with pip install 'burnin[hf]'"
        ) from None
    return datasets


def _load(datasets: Any, name: str) -> dict[str, Any]:
    """The splits of a data set by their names."""
    path, _, subset = name.partition(":")
    if not path:
        raise InputError("hf: needs the name of a data set, such as hf:owner/name")
    try:
        splits = dict(datasets.load_dataset(path, subset or None))
    except Exception as error:  # the hub's errors have no common class
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"hf:{name} cannot be loaded ({said})") from error
    if not splits:
        raise InputError(f"hf:{name} has no splits")
    return splits


def _chosen(splits: dict[str, Any], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in splits), None)


def _columns(datasets: Any, name: str, rows: Any) -> tuple[str, str | None]:
    """The first column of pictures, and the first of classes where there is one."""
    columns = rows.features.items()
    pictures = next((column for column, kind in columns if isinstance(kind, datasets.Image)), None)
    if pictures is None:
        listed = ", ".join(f"{column} ({type(kind).__name__})" for column, kind in columns)[:120]
        raise InputError(f"hf:{name}: no column of pictures (Image) among {listed}")
    return pictures, next((column for column, kind in columns if isinstance(kind, datasets.ClassLabel)), None)


def _read(
    name: str, rows: Any, column: str, label: str | None, side: int | None, report: Report | None, what: str
) -> Part:
    """One picture at a time is in memory at its own size."""
    n = len(rows)
    if n == 0:
        raise InputError(f"hf:{name}: a split is empty")
    pixels: NDArray[np.uint8] | None = None
    labels = np.empty(n, dtype=np.int64)
    grey = True
    for place in range(n):
        row = rows[place]
        picture = plain(row[column])
        picture = picture if side is None else squared(picture, side)
        if max(picture.size) > LARGEST:
            raise InputError(
                f"hf:{name}: pictures of {picture.width}×{picture.height}; set data.side, {LARGEST} at most"
            )
        grey = grey and picture.mode == "L"
        array = np.asarray(picture.convert("RGB")).transpose(2, 0, 1)
        if pixels is None:
            pixels = np.empty((n, *array.shape), dtype=np.uint8)
        if array.shape != pixels.shape[1:]:
            raise InputError(f"hf:{name}: sizes of pictures differ; make them one size with data.side")
        pixels[place] = array
        labels[place] = -1 if label is None else row[label]
        if report is not None:
            report(what, place + 1, n)
    assert pixels is not None
    known = None if label is None or labels.min() < 0 else labels  # a hidden test label is -1
    return Part(np.ascontiguousarray(pixels[:, :1]) if grey else pixels, known)
