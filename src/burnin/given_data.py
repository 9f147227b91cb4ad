"""Data that a run is held against: a data set by name, a folder of pictures, or a file of rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from burnin.assemble_data import build_data
from burnin.config import in_folder, read_run_config
from burnin.core import InputError, Report
from burnin.data import Pictures, clean, density_names, load_table, make_density
from burnin.data.folders import read_folder
from burnin.data.matching import BRIGHTEST, like, rescaled
from burnin.evaluation.model import Model
from burnin.measuring import Real, choose
from burnin.rng import Streams
from burnin.runs import table_for
from burnin.settings import Config

DRAWN = 10_000
"""Rows that are drawn of a density that is known by its name."""


@dataclass(frozen=True, eq=False)
class Given:
    """Data as a model takes it.

    Attributes:
        name: what it is, in words.
        rows: (n, dim).
        pixels: the bytes, at the model's size; None where they are no pictures.
        rest: more pictures of the same kind, none of them among `pixels`; empty where there are none.
    """

    name: str
    rows: Tensor
    pixels: Tensor | None = None
    rest: Tensor | None = None


def open_set(given: str, model: Model, run: Path, *, seed: int = 0, report: Report | None = None) -> Given:
    """What a user names: a data set, a folder of pictures or a file of rows, as the run's model takes it.

    Of a data set with test pictures these are taken, and the others are the rest. Pictures are brought to the
    model's size, colours and range; rows of a file are taken as they are, or coded as the run's table is.

    Raises:
        InputError: when there is no such set, folder or file, or it does not fit the model.
    """
    stream, path = Streams(seed)["given"], Path(given)
    target = model.pictures
    if given in density_names():
        density = clean(make_density(given))
        if target is not None and isinstance(density, Pictures):
            return of_pictures(density, target, stream, given)
        if target is not None or isinstance(density, Pictures):
            kinds = ("pictures", "no pictures") if target is not None else ("no pictures", "pictures")
            raise InputError(
                f"{run} is a model of {kinds[0]}, and {given} holds {kinds[1]}; give another set"
            )
        return _fitting(Given(f"{DRAWN} rows of {given}", density.sample(DRAWN, stream)), model, run)
    if path.is_dir():
        if target is None:
            raise InputError(f"{given} is a folder, and {run} is a model of no pictures; give a file of rows")
        return _folder(path, target, stream, report)
    if not path.exists():
        known = ", ".join(density_names())
        raise InputError(f"{given!r} is no file, no folder and no data set; known sets are {known}")
    table = load_table(path) if target is not None else table_for(run, path)
    return _fitting(Given(f"{path.name}, {len(table.values)} rows", table.values), model, run)


def of_pictures(pictures: Pictures, target: Pictures, stream: torch.Generator, name: str) -> Given:
    """A data set of pictures for a model of others: its test pictures where it has some, else all."""
    if pictures.held_out is None:
        pixels, rest, what = like(pictures, target), target.pixels[:0], "pictures"
    else:
        pixels, rest, what = like(pictures.held_out, target), like(pictures, target), "test pictures"
    return Given(f"{name}, {len(pixels)} {what}", target.rows(pixels, stream), pixels, rest)


def own_pictures(run: Path) -> tuple[Pictures, Config]:
    """The pictures that a run was trained on, with those held out, and its configuration.

    Raises:
        InputError: when it was trained on something else.
    """
    config = read_run_config(run)
    data = clean(build_data(in_folder(config, run)))
    if not isinstance(data, Pictures):
        raise InputError(f"{run} is a model of no pictures; judge it with burnin check or burnin test")
    return data, config


def real_pictures(
    run: Path,
    data: str | None,
    model: Model,
    *,
    samples: int,
    searched: int | None,
    streams: Streams,
    report: Report | None = None,
) -> tuple[Real, str]:
    """The real pictures that samples of a run are measured against, and what they are called.

    The reference is drawn from test pictures where there are some; what is left of them, and the other
    pictures of the same set, are fresh real pictures, for the numbers that real data gets.

    Arguments:
        run: its folder.
        data: what samples are compared with, as `open_set` takes it; None for the run's own data.
        model: the run's.
        samples: how many pictures of each kind, at most.
        searched: how many training pictures are searched for copies; None for all.
        streams: random streams.
        report: told how far it is.
    """
    pictures, config = own_pictures(run)
    stream = streams["reference"]
    if data is None:
        given = of_pictures(pictures, pictures, streams["given"], "the run's own data")
    else:
        given = open_set(data, model, run, seed=streams.seed, report=report)
    if given.pixels is None or given.rest is None:
        raise InputError(f"{data} is a file of rows; give a data set of pictures or a folder")
    reference, left = choose(given.pixels, samples, stream)
    if len(left) + len(given.rest) < len(reference):  # one part only: two halves of it
        reference, left = choose(given.pixels, min(samples, len(given.pixels) // 2), stream)
    fresh, _ = choose(torch.cat([left, given.rest]), len(reference), stream)
    training = pictures.pixels if searched is None else choose(pictures.pixels, searched, stream)[0]
    held_out = None if pictures.held_out is None else pictures.held_out.pixels
    if held_out is None and data not in (None, config.data.name):
        held_out = given.pixels
    parts = [
        reference,
        fresh,
        training,
        *([] if held_out is None else [choose(held_out, samples, stream)[0]]),
    ]
    full = [rescaled(part, pictures.levels, BRIGHTEST) for part in parts]
    return Real(full[0], full[1], full[2], full[3] if held_out is not None else None), given.name


def sampled_bytes(model: Model, x: Tensor) -> Tensor:
    """Samples of a model of pictures as bytes, 255 the brightest."""
    pictures = model.pictures
    if pictures is None:
        raise InputError("the model is one of no pictures")
    return (pictures.brightness(x) * BRIGHTEST).round().to(torch.uint8)


def _folder(path: Path, target: Pictures, stream: torch.Generator, report: Report | None) -> Given:
    channels, height, width = target.shape

    def progress(done: int, total: int) -> None:
        if report is not None:
            report(f"reading {path}", done, total)

    side = height if height == width else None
    found = Pictures(read_folder(path, side=side, channels=channels, progress=progress).pixels)
    return of_pictures(found, target, stream, str(path))


def _fitting(given: Given, model: Model, run: Path) -> Given:
    if given.rows.shape[1] != model.data.dim:
        raise InputError(
            f"{given.name}: each has {given.rows.shape[1]} numbers; {run} was trained on {model.data.dim}"
        )
    return given
