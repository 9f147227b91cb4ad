"""A model of a folder of pictures: trained by the recipe `pictures`, with scores of further pictures."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from burnin.assemble import build_trainer, load_model, model_of
from burnin.config import dump_config, load_config, read_run_config
from burnin.core import InputError, Outcome, evaluate
from burnin.correcting import Effort, Listener
from burnin.data import Pictures
from burnin.evaluation.model import Model
from burnin.fitted import FITTED_FILE, quantiles, require_contamination
from burnin.samplers import Engine
from burnin.settings import Config, DataSettings
from burnin.training import RunFolder, Trainer, load_checkpoint

PICTURES_FILE = "pictures.npz"
FORMAT = "burnin-fitted-pictures-1"
BATCH = 512
HELD_OUT = 0.15


@dataclass(frozen=True, eq=False)
class FittedPictures:
    """A trained model of pictures.

    Attributes:
        model: the energy of flat rows in [0, 1], and its chains.
        reference: quantiles of the scores of the pictures that it was fitted to, rising.
        contamination: share of those pictures that count as outliers.
    """

    model: Model
    reference: NDArray[np.float64]
    contamination: float

    @property
    def pictures(self) -> Pictures:
        """What it was fitted to."""
        pictures = self.model.pictures
        assert pictures is not None
        return pictures

    def score(self, pixels: torch.Tensor) -> NDArray[np.float64]:
        """-E/T of pictures of bytes, (n,): their log-density but for a constant that nobody knows."""
        return scores(self.model, self.pictures.rows(pixels))

    def percentile(self, score: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of the fitted pictures with a lower score, in percent."""
        return np.interp(score, self.reference, np.linspace(0, 100, len(self.reference)))

    def threshold(self, contamination: float | None = None) -> float:
        """The score below which a picture is an outlier."""
        share = self.contamination if contamination is None else contamination
        require_contamination(share)
        return float(np.interp(share, np.linspace(0, 1, len(self.reference)), self.reference))

    @classmethod
    def load(cls, folder: Path, engine: Engine | None = None) -> FittedPictures:
        """The model that `burnin fit` made of a folder of pictures.

        Raises:
            InputError: when the folder holds no such run, or a damaged one.
        """
        path = folder / FITTED_FILE
        if not path.is_file():
            raise InputError(f"{folder} holds no finished fit (no {FITTED_FILE}); go on with fit --resume")
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["format"] != FORMAT:
                raise InputError(f"{path} was not written by this version of burnin (wanted {FORMAT!r})")
            reference = np.array(content["reference"], dtype=np.float64)
            contamination = float(content["contamination"])
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path} is damaged ({error})") from error
        return cls(load_model(folder, engine), reference, contamination)


def of_pictures(folder: Path) -> bool:
    """Whether a run's folder holds a model of a folder of pictures."""
    return read_run_config(folder).data.pictures is not None


def fit_pictures(
    pixels: torch.Tensor,
    path: Path,
    *,
    minutes: float | None,
    max_updates: int,
    contamination: float,
    seed: int,
    listener: Listener,
    engine: Engine,
) -> Outcome:
    """Trains on pictures of bytes, (n, channels, height, width), some of them held out, in a new folder."""
    require_contamination(contamination)
    effort = Effort(minutes)
    pictures = Pictures.split(pixels, share=HELD_OUT, seed=seed)
    if bool((pictures.pixels == pictures.pixels[0]).all()):
        raise InputError("all pictures are the same: there is no density to learn")
    config = load_config("pictures", [f"run.seed={seed}", f"run.updates={max_updates}"])
    noise = config.data.noise
    config = config.model_copy(update={"data": DataSettings(pictures=PICTURES_FILE, noise=noise)})
    folder = RunFolder(path)
    pictures.save(folder.path / PICTURES_FILE)
    folder.config_path.write_text(dump_config(config), encoding="utf-8")
    _write(folder.path, {"format": FORMAT, "contamination": contamination})
    return _train(build_trainer(config, engine, pictures), config, pictures, effort, folder, listener)


def resume_pictures(
    folder: RunFolder, *, minutes: float | None, listener: Listener, engine: Engine
) -> Outcome:
    """Goes on with the training in a folder, as if it had never been interrupted."""
    config, pictures = read_run_config(folder.path), Pictures.load(folder.path / PICTURES_FILE)
    trainer = build_trainer(config, engine, pictures)
    trainer.restore(load_checkpoint(folder.path))
    return _train(trainer, config, pictures, Effort(minutes), folder, listener)


def _train(
    trainer: Trainer,
    config: Config,
    pictures: Pictures,
    effort: Effort,
    folder: RunFolder,
    listener: Listener,
) -> Outcome:
    """Trains until the updates are made or the time is up, and writes down the scores of the pictures."""
    deadline = math.inf if effort.minutes is None else time.monotonic() + 60 * effort.minutes
    outcome = trainer.train(
        config.run.updates,
        folder=folder,
        checkpoint_every=config.run.checkpoint_every,
        on_update=listener.on_update,
        on_event=listener.say,
        enough=lambda _: time.monotonic() > deadline,
    )
    try:
        content = json.loads((folder.path / FITTED_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{folder.path / FITTED_FILE} is missing or damaged ({error})") from error
    parts = [pictures.pixels] + ([] if pictures.held_out is None else [pictures.held_out.pixels])
    every = scores(model_of(trainer, config), pictures.rows(torch.cat(parts)))
    _write(folder.path, content | {"reference": quantiles(every).tolist()})
    return outcome


def scores(model: Model, rows: torch.Tensor) -> NDArray[np.float64]:
    """-E/T of flat rows, (n,)."""
    with torch.no_grad():
        energies = [evaluate(model.energy, part).double() for part in torch.split(rows, BATCH)]
    return (-torch.cat(energies) / model.temperature).numpy()


def _write(folder: Path, content: dict[str, object]) -> None:
    temporary = folder / f".{FITTED_FILE}.tmp"
    temporary.write_text(json.dumps(content, indent=1, allow_nan=False), encoding="utf-8")
    temporary.replace(folder / FITTED_FILE)
