"""What the commands `fit` and `score` do with folders of pictures."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import typer
from rich.console import Console

from burnin.config import load_config, read_run_config
from burnin.core import InputError, Outcome
from burnin.correcting import Listener
from burnin.data import Frame, save_frame
from burnin.data.folders import ENDINGS, PictureFolder, read_folder
from burnin.evaluation.normaliser import Normaliser
from burnin.picture_fitting import FittedPictures, fit_pictures, of_pictures, resume_pictures
from burnin.ranks import Ranks
from burnin.terminal import fitting_bar, make_console, stages_bar, training_bar
from burnin.training import RunFolder

if TYPE_CHECKING:
    from burnin.samplers import Engine

INTERRUPTED = 130


def fit_folder(
    data: Path,
    out: Path | None,
    side: int | None,
    grey: bool,
    minutes: float | None,
    max_updates: int | None,
    contamination: float,
    seed: int,
    as_json: bool,
    engine: Engine,
) -> None:
    """Fits a model to a folder of pictures."""
    console, folder = make_console(), out or Path("runs") / data.resolve().name
    RunFolder.require_usable(folder)
    read = _read(console, data, side, 1 if grey else None)
    channels, height, width = read.pixels.shape[1:]
    colours = "grey" if channels == 1 else "in colour"
    console.print(f"{len(read.files)} pictures of {height}×{width}, {colours}")
    recipe = load_config("pictures").run
    most = max_updates or recipe.updates
    with fitting_bar(console, most, recipe.batch_size) as (update, report):
        try:
            outcome = fit_pictures(
                read.pixels,
                folder,
                minutes=minutes,
                max_updates=most,
                contamination=contamination,
                seed=seed,
                listener=Listener(update, lambda text: console.print(text, markup=False), report),
                engine=engine,
            )
        except InputError as error:
            raise InputError(f"{data}: {error}") from None
    _finish(console, folder, as_json, outcome)


def resume_folder(out: Path, minutes: float | None, as_json: bool, engine: Engine) -> bool:
    """Goes on with the fit in a folder, if it is one of pictures; whether it is."""
    folder = RunFolder(out, resume=True)
    if not of_pictures(out):
        return False
    console, settings = make_console(), read_run_config(out).run
    with training_bar(console, "training", settings.updates, settings.batch_size) as update:
        listener = Listener(update, lambda text: console.print(text, markup=False))
        outcome = resume_pictures(folder, minutes=minutes, listener=listener, engine=engine)
    _finish(console, out, as_json, outcome)
    return True


def score_folder(
    run: Path, data: Path, output: Path, contamination: float | None, as_json: bool, ranks: Ranks
) -> bool:
    """Scores a folder of pictures, a line for each file, if the run is one of pictures; whether it is."""
    if not of_pictures(run):
        return False
    if not data.is_dir():
        raise InputError(f"{data} is no folder; {run} scores folders of pictures ({', '.join(ENDINGS)})")
    console, fitted = make_console(quiet=ranks.rank > 0), FittedPictures.load(run)
    channels, height, width = fitted.pictures.shape
    read = _read(console, data, height if height == width else None, channels)
    if tuple(read.pixels.shape[1:]) != fitted.pictures.shape:
        raise InputError(f"{data}: the pictures must be {height}×{width}, as those that {run} was fitted to")
    density, threshold = fitted.log_density(read.pixels, ranks), fitted.threshold(contamination)
    if ranks.rank > 0:
        ranks.any(False)  # nobody leaves before the first has written
        return True
    outlier = density < threshold
    columns = {
        "file": np.array(read.files, dtype=object),
        "log_density": density,
        "percentile": fitted.percentile(density),
        "outlier": outlier.astype(float),
    }
    save_frame(Frame(columns), output)
    if as_json:
        answer: dict[str, object] = {"pictures": len(density), "outliers": int(outlier.sum())}
        answer |= {"threshold": threshold, "mean_log_density": float(density.mean())}
        answer |= {"log_z": asdict(fitted.normaliser)}
        print(json.dumps(answer | {"file": str(output)}))
    else:
        print(
            f"outliers: {int(outlier.sum())} of {len(density)} pictures (log-density below {threshold:.4g})"
        )
        print(f"mean log-density: {density.mean():.4g} nats ({_known(fitted.normaliser)})")
    console.print(f"scores: {output}", markup=False)
    ranks.any(False)
    return True


def _known(z: Normaliser) -> str:
    doubt = "" if z.trusted else "; too few of them count, so it is not to be trusted"
    return f"log Z by {z.by}, within ± {z.high - z.value:.2g}{doubt}"


def _read(console: Console, data: Path, side: int | None, channels: int | None) -> PictureFolder:
    with stages_bar(console) as report:
        read = read_folder(
            data, side=side, channels=channels, progress=lambda done, total: report("reading", done, total)
        )
    for note in read.notes:
        console.print(f"{data}: {note}", markup=False)
    return read


def _finish(console: Console, folder: Path, as_json: bool, outcome: Outcome) -> None:
    fitted = FittedPictures.load(folder)
    held = fitted.pictures  # the model's data is the part that was held out
    inside = float((fitted.log_density(held.pixels) >= fitted.threshold()).mean())
    if as_json:
        answer = {"run": str(folder), "updates": fitted.model.num_updates, "shape": list(held.shape)}
        answer |= {"held_out": len(held), "held_out_usual": inside, "log_z": asdict(fitted.normaliser)}
        print(json.dumps(answer | {"outcome": outcome.name}))
    else:
        print(f"normalised by {_known(fitted.normaliser)}")
        print(f"held-out pictures: {inside:.0%} of {len(held)} are above the outliers' threshold")
    if outcome is Outcome.INTERRUPTED:
        console.print(f"{outcome.message} ({folder})", markup=False)
        raise typer.Exit(INTERRUPTED)
    console.print(
        f"fitted: {folder}. Next: burnin sample {folder} -n 64 -o new.png, burnin score {folder} others/, "
        f"burnin report {folder}",
        markup=False,
    )
