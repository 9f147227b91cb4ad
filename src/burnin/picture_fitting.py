"""A density of a folder of pictures: a mixture that a ConvNet corrects, with scores of further pictures."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from burnin.assemble import build_trainer, load_model, model_of
from burnin.base_choice import choose_base
from burnin.checked import validated_data
from burnin.choosing import BASE_FILE, LENGTHS, Choice, Probe, in_training, pilot
from burnin.config import load_config, read_run_config
from burnin.core import InputError, Outcome, evaluate
from burnin.correcting import (
    WATCH,
    Effort,
    Listener,
    Settled,
    Task,
    correct,
    newest,
    now,
    read_choice,
    write_choices,
)
from burnin.data import Pictures
from burnin.energies import MixtureFactor
from burnin.evaluation import MixtureBase
from burnin.evaluation.model import Model
from burnin.evaluation.normaliser import Normaliser, by_draws
from burnin.fitted import FITTED_FILE, quantiles, require_contamination, rising, share_of
from burnin.limits import brief, read_json
from burnin.provenance import write_origin
from burnin.ranks import ALONE, Ranks
from burnin.rng import Streams
from burnin.samplers import Engine
from burnin.settings import Config, DataSettings
from burnin.storage import write_text_atomically
from burnin.training import RunFolder, Trainer
from burnin.training.checkpoint import Snapshot

PICTURES_FILE = "pictures.npz"
FORMAT = "burnin-fitted-pictures-2"
BATCH = 512
HELD_OUT = 0.15
DRAWS = 8192
"""Of the base, by which the density is normalised."""


@dataclass(frozen=True, eq=False)
class FittedPictures:
    """A trained density of pictures.

    Attributes:
        model: the energy of flat rows in [0, 1], and its chains.
        normaliser: log Z of those rows.
        reference: quantiles of the log-densities of the pictures that it was fitted to, rising.
        contamination: share of those pictures that count as outliers.
    """

    model: Model
    normaliser: Normaliser
    reference: NDArray[np.float64]
    contamination: float

    @property
    def pictures(self) -> Pictures:
        """What it was fitted to."""
        pictures = self.model.pictures
        assert pictures is not None
        return pictures

    def log_density(self, pixels: Tensor, ranks: Ranks = ALONE) -> NDArray[np.float64]:
        """Of pictures of bytes, (n,), in nats: that of their numbers from 0 to 1 under the law with noise."""
        own = log_densities(self.model, self.normaliser, self.pictures.rows(ranks.own(pixels)))
        return ranks.gather(torch.from_numpy(own), len(pixels)).numpy()

    def percentile(self, log_density: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of the fitted pictures with a lower log-density, in percent."""
        return np.interp(log_density, self.reference, np.linspace(0, 100, len(self.reference)))

    def threshold(self, contamination: float | None = None) -> float:
        """The log-density below which a picture is an outlier."""
        share = self.contamination if contamination is None else contamination
        require_contamination(share)
        return float(np.interp(share, np.linspace(0, 1, len(self.reference)), self.reference))

    @classmethod
    def load(cls, folder: Path, engine: Engine | None = None) -> FittedPictures:
        """The density that `burnin fit` made of a folder of pictures.

        Raises:
            InputError: when the folder holds no such run, or a damaged one.
        """
        path = folder / FITTED_FILE
        if not path.is_file():
            raise InputError(f"{folder} holds no finished fit (no {FITTED_FILE}); go on with fit --resume")
        try:
            content = read_json(path)
            if content["format"] != FORMAT:
                raise InputError(f"{path} was not written by this version of burnin (wanted {FORMAT!r})")
            normaliser = validated_data(Normaliser, content["normaliser"], str(path))
            reference = rising(content["reference"])
            contamination = share_of(content["contamination"])
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            told = str(path) in str(error)
            raise InputError(str(error) if told else f"{path} is damaged ({brief(error)})") from error
        return cls(load_model(folder, engine), normaliser, reference, contamination)


def of_pictures(folder: Path) -> bool:
    """Whether a run's folder holds a model of a folder of pictures."""
    return read_run_config(folder).data.pictures is not None


def fit_pictures(
    pixels: Tensor,
    path: Path,
    *,
    minutes: float | None,
    max_updates: int,
    contamination: float,
    seed: int,
    listener: Listener,
    engine: Engine,
) -> Outcome:
    """Fits a density to pictures of bytes, (n, channels, height, width), some held out, in a new folder."""
    require_contamination(contamination)
    effort, began = Effort(minutes), now()
    pictures = Pictures(pixels, low=0.0, high=1.0).apart(HELD_OUT, seed)
    if bool((pictures.pixels == pictures.pixels[0]).all()):
        raise InputError("all pictures are the same: there is no density to learn")
    config = load_config("pictures", [f"run.seed={seed}", f"run.updates={max_updates}"])
    config = config.model_copy(
        update={
            "data": DataSettings(pictures=PICTURES_FILE, noise=config.data.noise),
            "model": config.model.model_copy(update={"gaussian_factor": "none", "base": BASE_FILE}),
        }
    )
    config, choice, base = _choose(pictures, config, engine, listener)
    for line in choice.describe():
        listener.say(line)
    folder = RunFolder(path)
    pictures.save(folder.path / PICTURES_FILE)
    base.save(folder.path / BASE_FILE)
    write_choices(folder, config, choice)
    write_origin(folder.path)
    trainer = build_trainer(config, engine, pictures, base)
    task = _task(pictures, base, config, choice, contamination)
    return _train(trainer, task, pictures, effort, folder, listener, began)


def resume_pictures(
    folder: RunFolder, *, minutes: float | None, listener: Listener, engine: Engine
) -> Outcome:
    """Goes on with the fit in a folder, as if it had never been interrupted."""
    choice, pictures = read_choice(folder.path), Pictures.load(folder.path / PICTURES_FILE)
    config = in_training(read_run_config(folder.path), choice)
    base = MixtureBase.load(folder.path / BASE_FILE)
    trainer, snapshot = build_trainer(config, engine, pictures, base), newest(folder.path)
    trainer.restore(snapshot)
    listener.say(folder.recover(trainer.step))
    seen = snapshot.held(WATCH)
    share = seen.state["contamination"] if seen is not None else _read(folder.path)["contamination"]
    task = _task(pictures, base, config, choice, float(share))
    return _train(trainer, task, pictures, Effort(minutes), folder, listener, now(), seen)


def _choose(
    pictures: Pictures, config: Config, engine: Engine, told: Listener
) -> tuple[Config, Choice, MixtureBase]:
    """The base by cross-validation, of pixels in units of their own spread, and the chains by a pilot."""
    streams = Streams(config.run.seed)
    rows = _noised(pictures, config, streams["base"])
    mean, std = rows.mean(0), rows.std(0)
    found, chosen = choose_base((rows - mean) / std, config.run.seed, told.report)
    base = found.moved(std.diag().double(), mean.double(), along_axes=found.factors.dim() == 2)
    trainer = build_trainer(config, engine, pictures, base)
    seconds = pilot(trainer, config)
    channels = config.model.width
    first = Choice(
        chosen.describe(),
        f"a ConvNet of {channels} channels at first",
        config.model.temperature,
        config.data.noise,
        float(config.sampler.step_size),  # type: ignore[arg-type]
        LENGTHS[0],
        acceptance=0.0,
        displacement=0.0,
        seconds=seconds,
        trained_at=config.model.temperature,
    )
    probe = Probe(model_of(trainer, config, base), trainer.parts.data, streams["pilot"])
    return *probe.settle(config, first), base


def _noised(pictures: Pictures, config: Config, generator: torch.Generator) -> Tensor:
    """Every picture as a flat row, with its noise."""
    rows = pictures.rows(pictures.pixels)
    return rows + config.data.noise * torch.randn(rows.shape, generator=generator)


def _task(
    pictures: Pictures, base: MixtureBase, config: Config, choice: Choice, contamination: float
) -> Task:
    apart = pictures.held_out
    points = _noised(apart or pictures, config, Streams(config.run.seed)["held-out"])
    return Task(pictures, points, apart is not None, base, config, choice, contamination)


def _train(
    trainer: Trainer,
    task: Task,
    pictures: Pictures,
    effort: Effort,
    folder: RunFolder,
    told: Listener,
    began: float,
    seen: Snapshot | None = None,
) -> Outcome:
    """Trains until the held-out likelihood no longer rises, normalises, and writes the pictures' scores."""
    done = correct(trainer, task, effort, folder=folder, told=told, began=began, seen=seen)
    _write(folder.path, _finished(done, task, pictures))
    return done.outcome


def _finished(done: Settled, task: Task, pictures: Pictures) -> dict[str, Any]:
    model, streams = done.model, Streams(done.config.run.seed)
    assert isinstance(model.energy, MixtureFactor)
    normaliser = by_draws(model.energy, model.temperature, task.base, streams["normaliser"], DRAWS)
    held = log_densities(model, normaliser, task.points)
    parts = [pictures.pixels] + ([] if pictures.held_out is None else [pictures.held_out.pixels])
    every = log_densities(model, normaliser, pictures.rows(torch.cat(parts)))
    mean = {"nats": float(held.mean()), "error": float(held.std() / math.sqrt(len(held)))}
    return {
        "format": FORMAT,
        "contamination": task.contamination,
        "normaliser": asdict(normaliser),
        "reference": quantiles(every).tolist(),
        "about": done.about | {"held_out": mean},
    }


def log_densities(model: Model, normaliser: Normaliser, rows: Tensor) -> NDArray[np.float64]:
    """-E/T - log Z of flat rows, (n,)."""
    with torch.no_grad():
        energies = [evaluate(model.energy, part).double() for part in torch.split(rows, BATCH)]
    return (-torch.cat(energies) / model.temperature - normaliser.value).numpy()


def _read(folder: Path) -> dict[str, Any]:
    try:
        content = read_json(folder / FITTED_FILE)
        share_of(content["contamination"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder / FITTED_FILE} is missing or damaged ({brief(error)})") from error
    return dict(content)


def _write(folder: Path, content: dict[str, Any]) -> None:
    write_text_atomically(folder / FITTED_FILE, json.dumps(content, indent=1, allow_nan=False))
