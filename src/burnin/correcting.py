"""Training the network that corrects a base, with an early end: what fits of tables and of pictures share."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from burnin.checked import validated_data
from burnin.choosing import Choice, settle
from burnin.config import dump_config
from burnin.core import Density, DivergedError, InputError, Outcome, Report
from burnin.evaluation import MixtureBase
from burnin.evaluation.model import Model
from burnin.following import followed
from burnin.limits import read_json
from burnin.settings import Config
from burnin.storage import write_text_atomically
from burnin.training import RunFolder, Trainer
from burnin.training.checkpoint import (
    Snapshot,
    checkpoint_steps,
    forget_after,
    load_checkpoint,
    save_checkpoint,
)
from burnin.training.parts import Metrics
from burnin.watching import Watch

CHOICE_FILE = "choice.json"
LAST_FOLDER = "last"
"""Holds the checkpoint at which an interrupted fit stopped; the run's own is the best until then."""
WATCH = "fit"
"""What the watch has seen, beside the trainer's own state in a checkpoint."""
TRAINING_SHARE = 0.8
"""Of the time that is given; the rest is for the normaliser."""


@dataclass(frozen=True)
class Effort:
    """How long is trained.

    Attributes:
        minutes: time that is given, None for as long as it takes.
        patience: looks at the held-out likelihood, one every 25 updates, without a new best.
        particles: chains that estimate the normaliser.
    """

    minutes: float | None = None
    patience: int = 16
    particles: int = 256

    def __post_init__(self) -> None:
        if self.minutes is not None and not self.minutes > 0:
            raise InputError(f"minutes is {self.minutes}; it must be above 0")
        if self.patience < 1 or self.particles < 2:
            raise InputError(f"patience is {self.patience}, particles {self.particles}; at least 1 and 2")


@dataclass
class Listener:
    """Who is told what goes on."""

    on_update: Callable[[int, Metrics], None] | None = None
    say: Callable[[str], None] = field(default=lambda _: None)
    report: Report = field(default=lambda *_: None)


@dataclass(frozen=True)
class Task:
    """What is to be trained.

    Attributes:
        data: what is learned from.
        points: by whose likelihood the end is found, (n, dim).
        apart: whether they are none of the data's own.
        base: what the network corrects.
        config: of the training.
        choice: of the pilot.
        contamination: share of outliers, which a checkpoint keeps for the end.
    """

    data: Density
    points: Tensor
    apart: bool
    base: MixtureBase
    config: Config
    choice: Choice
    contamination: float


@dataclass(frozen=True)
class Settled:
    """What was trained: the model, its configuration, what was chosen and how it went."""

    model: Model
    config: Config
    choice: Choice
    about: dict[str, Any]
    outcome: Outcome


def correct(
    trainer: Trainer,
    task: Task,
    effort: Effort,
    *,
    folder: RunFolder | None,
    told: Listener,
    began: float,
    seen: Snapshot | None = None,
) -> Settled:
    """Trains until the held-out likelihood no longer rises, and settles T and the chains of the best.

    Ctrl-C ends it early; the best so far is then taken all the same. The trainer is left with the best.

    Arguments:
        trainer: has the network, the objective and the data.
        task: what is trained.
        effort: how long.
        folder: where checkpoints go; None for nowhere.
        told: who is told.
        began: when the time that is given began, by the monotonic clock.
        seen: what a watch had seen when a fit was stopped that now goes on.
    """
    config, base = task.config, task.base
    deadline = None if effort.minutes is None else began + 60 * TRAINING_SHARE * effort.minutes
    watch = Watch(trainer, task.points, task.apart, base, config, effort.patience, deadline, seen)

    def beside(snapshot: Snapshot) -> Snapshot:
        return snapshot.beside(WATCH, watch.state(task.contamination))

    outcome, stopped = Outcome.OK, None
    try:
        outcome = trainer.train(
            config.run.updates,
            folder=folder,
            checkpoint_every=config.run.checkpoint_every,
            on_update=followed(trainer, base, config, told.on_update),
            on_event=told.say,
            enough=watch.enough,
            beside=beside,
        )
        if folder is not None and (outcome is Outcome.INTERRUPTED or watch.late):
            stopped = load_checkpoint(folder.path)
        watch.look(trainer.step)
    except DivergedError as error:
        if not watch.gained:
            raise
        watch.why = str(error)
    trained_for = trainer.step
    trainer.restore(watch.best)
    if folder is not None:
        _keep_last(folder.path, trained_for, stopped)
        forget_after(folder.path, trainer.step)
        save_checkpoint(folder.path, trainer.step, watch.best)
    told.say(f"{watch.why}; the best was at update {trainer.step} of {trained_for}")
    config, choice, model = settle(trainer, config, task.choice, task.data, base, watch.best_temperature())
    told.say(f"after the training: {choice.describe_settled()}")
    if folder is not None:
        write_choices(folder, config, choice)
    about = {"choice": choice.as_dict(), "updates": trainer.step, "trained_for": trained_for}
    return Settled(model, config, choice, about, outcome)


def write_choices(folder: RunFolder, config: Config, choice: Choice) -> None:
    """Keeps what was chosen in the run's folder."""
    write_text_atomically(folder.config_path, dump_config(config))
    write_text_atomically(folder.path / CHOICE_FILE, json.dumps(choice.as_dict(), indent=1))


def read_choice(folder: Path) -> Choice:
    """What `write_choices` wrote.

    Raises:
        InputError: when it is missing or damaged.
    """
    try:
        return validated_data(Choice, read_json(folder / CHOICE_FILE), str(folder / CHOICE_FILE))
    except OSError as error:
        raise InputError(f"{folder / CHOICE_FILE} cannot be read ({error.strerror or error})") from error


def newest(folder: Path) -> Snapshot:
    """The state in which training stopped: where it was interrupted, or else the newest checkpoint."""
    last = folder / LAST_FOLDER
    stopped, saved = checkpoint_steps(last), checkpoint_steps(folder)
    return load_checkpoint(last if stopped and (not saved or stopped[-1] >= saved[-1]) else folder)


def now() -> float:
    """By the clock that `began` is told."""
    return time.monotonic()


def _keep_last(folder: Path, step: int, stopped: Snapshot | None) -> None:
    """Keeps the state in which training stopped apart, as the folder's own is to become the best."""
    last = folder / LAST_FOLDER
    if last.exists():
        shutil.rmtree(last)
    if stopped is not None:
        save_checkpoint(last, step, stopped)
