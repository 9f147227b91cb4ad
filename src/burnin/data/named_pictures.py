"""Named sets of pictures: their files found, unpacked or downloaded, then read."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import torch
from filelock import FileLock

from burnin.core import InputError, Report
from burnin.data.fetching import OFFLINE_VARIABLE, fetch_file, file_md5, offline, unpack
from burnin.data.hugging_face import PREFIX, load_hugging_face
from burnin.data.idx import find_idx
from burnin.data.parts import Part
from burnin.data.picture_sets import SETS, Download, Layout, PictureSet
from burnin.data.pictures import Pictures

FOLDER_VARIABLE = "BURNIN_DATA"


def data_folder() -> Path:
    """Where data sets are looked for: what BURNIN_DATA says, or data/ in the cache."""
    given = os.environ.get(FOLDER_VARIABLE)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else cache / "burnin" / "data"


def is_picture_name(name: str) -> bool:
    """Whether `load_pictures` takes this name for a set of pictures.

    Example:
        >>> is_picture_name("mnist"), is_picture_name("hf:owner/name"), is_picture_name("moons")
        (True, True, False)
    """
    return name in SETS or name.startswith(PREFIX)


def load_pictures(
    name: str,
    folder: Path | None = None,
    *,
    side: int | None = None,
    labelled: bool = False,
    report: Report | None = None,
) -> Pictures:
    """A named set from its usual files, numbers in [-1, 1], with its test pictures held out.

    What is missing is downloaded from the set's own address, unless BURNIN_OFFLINE is set.

    Arguments:
        name: "mnist", "fashion-mnist", "cifar10", "svhn", "flowers", or "hf:owner/name" of Hugging Face.
        folder: holds a folder for each data set; by default what BURNIN_DATA says, or data/ in the cache.
        side: pixels along a side, where it is to be another than the set's; flowers have 32 by default.
        labelled: labels must be there too; else they are read where their files are.
        report: told how a download and a long reading go.

    Raises:
        InputError: when a file is missing and cannot be downloaded, saying which to put where; when one is
            damaged.
    """
    if name.startswith(PREFIX):
        return load_hugging_face(name.removeprefix(PREFIX), side=side, labelled=labelled, report=report)
    known = picture_set(name)
    layout, place = require_files(name, folder, labelled=labelled, report=report)
    training, held_out = (_pictures(known, part) for part in layout.read(place, side, report))
    whole = Pictures(training.pixels, held_out=held_out, labels=training.labels, classes=known.classes)
    return whole if side is None else whole.resized(side)


def picture_set(name: str) -> PictureSet:
    """The set of this name.

    Raises:
        InputError: when there is none.
    """
    if name not in SETS:
        near = difflib.get_close_matches(name.lower(), SETS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise InputError(f"unknown set of pictures {name!r}{hint} Known: {', '.join(SETS)}")
    return SETS[name]


def find_files(
    name: str, folder: Path | None = None, *, labelled: bool = False
) -> tuple[Layout, Path] | None:
    """Where a set's files are, in which layout; None when some are missing."""
    root = folder or data_folder()
    for layout in picture_set(name).layouts:
        for place in (root / below for below in layout.folders):
            if not _missing(layout, place, labelled):
                return layout, place
    return None


def require_files(
    name: str, folder: Path | None = None, *, labelled: bool = False, report: Report | None = None
) -> tuple[Layout, Path]:
    """Where a set's files are; those that are missing are unpacked where their archive is, or downloaded.

    Arguments: as of `load_pictures`.

    Raises:
        InputError: when files are missing that cannot be downloaded, saying which to put where.
    """
    root = folder or data_folder()
    found = find_files(name, root, labelled=labelled)
    if found is not None:
        return found
    known = picture_set(name)
    layout = next(
        (one for one in known.layouts if any(_archive(one, root, file) for file in one.downloads)),
        known.layouts[0],
    )
    place = _place(layout, root)
    wanted = _wanted(layout, place, labelled)
    if offline() and any(_archive(layout, root, file) is None for file in wanted):
        raise _absent(name, layout, root, wanted, f"is incomplete, and {OFFLINE_VARIABLE} is set")
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / f".{name}.lock"):  # studies read their data in several processes
            for file in _wanted(layout, place, labelled):
                _get(file, layout, root, place, report)
    except (InputError, OSError) as error:
        raise _absent(name, layout, root, wanted, str(error)) from error
    found = find_files(name, root, labelled=labelled)
    if found is None:
        raise _absent(name, layout, root, wanted, f"{place} lacks files that its archive should hold")
    return found


def _missing(layout: Layout, place: Path, labelled: bool) -> list[str]:
    """What a folder lacks of a layout."""
    needed = layout.pictures + (layout.labels if labelled else ())
    return [item for item in needed if find_idx(place, item) is None and not (place / item).is_dir()]


def _place(layout: Layout, root: Path) -> Path:
    """The folder that holds some of the layout already, or the one for what is downloaded."""
    every = len(layout.pictures + layout.labels)
    places = [root / below for below in layout.folders]
    return next((place for place in places if len(_missing(layout, place, True)) < every), places[0])


def _wanted(layout: Layout, place: Path, labelled: bool) -> list[Download]:
    """What must be fetched; labels come with pictures, as they are small."""
    bare = _missing(layout, place, False)
    missing = set(_missing(layout, place, labelled or bool(bare)))
    return [file for file in layout.downloads if missing & set(file.gives)]


def _archive(layout: Layout, root: Path, file: Download) -> Path | None:
    """An archive that somebody has put there and not unpacked."""
    if not file.archive:
        return None
    places = (root, *(root / below for below in layout.folders))
    return next((place / file.name for place in places if (place / file.name).is_file()), None)


def _get(file: Download, layout: Layout, root: Path, place: Path, report: Report | None) -> None:
    """Brings a file into its folder, and unpacks it."""
    if not file.archive:
        fetch_file(file.address, place / file.name, file.md5, report=report)
        return
    into = place.parent if file.beside else place
    own = _archive(layout, root, file)
    if own is None:
        fetch_file(file.address, into / file.name, file.md5, report=report)
    elif file_md5(own) != file.md5:
        raise InputError(f"{own} is damaged (md5 {file_md5(own)}, wanted {file.md5}): remove it")
    unpack(own or into / file.name, into)
    if own is None:
        (into / file.name).unlink()


def _absent(name: str, layout: Layout, root: Path, wanted: list[Download], reason: str) -> InputError:
    """The error that says which file to put where."""
    place = _place(layout, root)
    listed = ", ".join(
        f"{file.name} into {place.parent if file.beside else place} (from {file.address})" for file in wanted
    )
    return InputError(
        f"{name}: {reason}; put {listed}; or set {FOLDER_VARIABLE} to the folder that holds "
        f"{layout.folders[0]}/"
    )


def _pictures(known: PictureSet, part: Part) -> Pictures:
    labels = None if part.labels is None else torch.from_numpy(part.labels)
    return Pictures(torch.from_numpy(part.pixels), labels=labels, classes=known.classes)
