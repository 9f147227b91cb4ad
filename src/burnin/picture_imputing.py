"""Missing pixels filled in by chains of a model's conditional law given the pixels that are known."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from burnin.core import InputError
from burnin.data.folders import read_folder, read_mask, read_missing, write_grid, write_pictures
from burnin.evaluation.conditional import Completed, Effort, complete
from burnin.evaluation.gaps import Gaps, Guide
from burnin.evaluation.model import Model
from burnin.picture_fitting import FittedPictures, of_pictures
from burnin.rng import Streams
from burnin.terminal import make_console, stages_bar

GUIDED_BY = 1000
"""Pictures whose moments guide the chains."""
LEAST_VARIANCE = 1e-3
"""Of a pixel in [0, 1]: some are the same in all pictures."""


def fill_pixels(
    model: Model,
    pixels: Tensor,
    missing: Tensor,
    *,
    generator: torch.Generator,
    effort: Effort | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Completed:
    """Flat rows of pictures whose missing pixels are drawn from p(missing | known) ∝ exp(-E/T).

    Arguments:
        model: of pictures.
        pixels: bytes, (n, channels, height, width).
        missing: (n, height, width), of all channels.
        generator: of the chains.
        effort: how long they are.
        progress: told how much is done, and of how much.
    """
    pictures = model.pictures
    if pictures is None or pictures.logit:
        raise InputError("only a model of pictures in a range of brightness can fill in pixels")
    data = model.data.sample(GUIDED_BY, generator)
    least = LEAST_VARIANCE * (pictures.high - pictures.low) ** 2
    guide = Guide(data.mean(0), 1 / (data.var(0) + least))
    free = missing.unsqueeze(1).expand_as(pixels).flatten(1)
    rows = pictures.rows(pixels).masked_fill(free, math.nan)
    gaps = Gaps.of(rows, pictures.low, pictures.high)
    return complete(
        model.energy, model.temperature, gaps, guide, generator=generator, effort=effort, progress=progress
    )


def fill_folder(
    run: Path,
    data: Path,
    output: Path,
    mask: Path | None,
    *,
    mean: bool,
    rounds: int,
    seed: int,
    force: bool,
    as_json: bool,
) -> None:
    """Fills the transparent pixels of a folder's pictures, or those that are white in the mask.

    Arguments:
        run: a model of pictures.
        data: the folder.
        output: a folder for a .png of each, or a .png with all.
        mask: a picture, for all of them the same.
        mean: whether the mean of the chain's second half is wanted instead of its end.
        rounds: length of the chains.
        seed: of the chains.
        force: whether files may be written over.
        as_json: whether to print as JSON.
    """
    if not of_pictures(run):
        raise InputError(f"{data} is a folder, and {run} is no model of pictures; give a table")
    if output.suffix not in ("", ".png"):
        raise InputError(f"the output {output} must be a folder's name, or end in .png for all in one")
    used = any(output.iterdir()) if output.is_dir() else output.exists()
    if used and not force:
        raise InputError(f"{output} exists; choose another name, or add --force to write over it")
    if not output.parent.is_dir():
        raise InputError(f"there is no folder {output.parent} for the output {output.name}; make it first")
    fitted, console = FittedPictures.load(run), make_console()
    channels, height, width = fitted.pictures.shape
    read = read_folder(data, channels=channels)
    size = (height, width)
    if tuple(read.pixels.shape[2:]) != size:
        raise InputError(f"{data}: the pictures must be {height}×{width}, as those that {run} was fitted to")
    if mask is None:
        missing = read_missing(data, read.files, size)
    else:
        missing = read_mask(mask, size).expand(len(read.files), height, width)
    if not bool(missing.any()):
        raise InputError(
            f"{data}: no pixel is missing; make those transparent that are to be filled, or give a --mask"
        )
    holed = missing.flatten(1).any(1)
    filled = fitted.pictures.brightness(fitted.pictures.rows(read.pixels))
    with stages_bar(console) as report:
        done = fill_pixels(
            fitted.model,
            read.pixels[holed],
            missing[holed],
            generator=Streams(seed)["impute"],
            effort=Effort(rounds=rounds),
            progress=lambda step, total: report("chains", step, total),
        )
    filled[holed] = fitted.pictures.brightness(done.kept.mean(0) if mean else done.last)
    if output.suffix:
        write_grid(output, filled)
    else:
        write_pictures(output, filled, names=read.files)
    count = int(missing.sum())
    if as_json:
        answer = {"pictures": len(filled), "pictures_filled": int(holed.sum()), "pixels": count}
        print(json.dumps({**answer, "acceptance": done.acceptance, "file": str(output)}))
    else:
        print(f"filled {count} pixels in {int(holed.sum())} of {len(filled)} pictures")
        print(f"chains: acceptance {done.acceptance:.2f}")
    console.print(f"filled: {output}", markup=False)
