"""Fitting a density to a table's rows: pilot, training with an early end, normaliser, reference."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from burnin.assemble import build_trainer
from burnin.choosing import BASE_FILE, ROWS_FILE, Choice, Wishes, choose, in_training, settle
from burnin.config import dump_config, read_run_config
from burnin.core import DivergedError, InputError, Outcome, Report
from burnin.data import EncodedRows
from burnin.evaluation import MixtureBase, chains
from burnin.evaluation.model import Model
from burnin.evaluation.normaliser import normalise
from burnin.evaluation.walk import NotReachedError
from burnin.fitted import FITTED_FILE, FittedTable, Mass, quantiles, unbounded
from burnin.following import followed
from burnin.provenance import write_origin
from burnin.rng import Streams
from burnin.samplers import Engine
from burnin.settings import Config
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

CONTAMINATION = 0.05
CHOICE_FILE = "choice.json"
LAST_FOLDER = "last"
"""Holds the checkpoint at which an interrupted fit stopped; the run's own is the best until then."""
WATCH = "fit"
"""What the watch has seen, beside the trainer's own state in a checkpoint."""
TRAINING_SHARE = 0.8
"""Of the time that is given; the rest is for the normaliser."""
BASE_DRAWS = 5000
MASS_DRAWS = 2000
REFERENCE_ROWS = 10_000
"""Rows whose log-densities are found at the end, at most."""


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


def fit_rows(
    rows: EncodedRows,
    wishes: Wishes,
    effort: Effort,
    *,
    seed: int,
    contamination: float,
    folder: RunFolder | None = None,
    listener: Listener | None = None,
    engine: Engine | None = None,
) -> tuple[FittedTable, Trainer, Outcome]:
    """Chooses settings, trains until the held-out likelihood stops rising, and normalises the best.

    Ctrl-C ends the training early; what is best so far is then normalised and returned all the same.

    Arguments:
        rows: the data, some of it held out.
        wishes: settings that are told.
        effort: how long.
        seed: of everything drawn.
        contamination: share of the rows that count as outliers.
        folder: where everything is kept; None for nowhere.
        listener: who is told.
        engine: how chains are computed.
    """
    began, told = time.monotonic(), listener or Listener()
    config, choice, base, rows = choose(rows, wishes, seed, engine, told.report)
    for line in choice.describe():
        told.say(line)
    if folder is not None:
        rows.save(folder.path / ROWS_FILE)
        base.save(folder.path / BASE_FILE)
        _write_choices(folder, config, choice)
        write_origin(folder.path)
    trainer = build_trainer(config, engine, rows, base)
    return _train(trainer, config, choice, rows, base, effort, contamination, folder, told, began)


def resume_rows(
    folder: RunFolder, effort: Effort, *, listener: Listener | None = None, engine: Engine | None = None
) -> tuple[FittedTable, Outcome]:
    """Goes on with the fit that a folder holds: to the bit as if it had never been interrupted.

    A fit that came to its own end goes on from its best, with new patience; one with a limit of time ends
    where the time does.
    """
    config = read_run_config(folder.path)
    if config.data.rows is None:
        raise InputError(f"{folder.path} holds a run that burnin fit did not make; use burnin train --resume")
    rows = EncodedRows.load(folder.path / config.data.rows)
    base = MixtureBase.load(folder.path / BASE_FILE)
    try:
        choice = Choice(**json.loads((folder.path / CHOICE_FILE).read_text(encoding="utf-8")))
        held, contamination = folder.path / FITTED_FILE, CONTAMINATION
        if held.exists():
            contamination = float(json.loads(held.read_text(encoding="utf-8"))["contamination"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{folder.path}: {CHOICE_FILE} or {FITTED_FILE} is damaged ({error})") from error
    config = in_training(config, choice)
    trainer = build_trainer(config, engine, rows, base)
    snapshot = _newest(folder.path)
    trainer.restore(snapshot)
    told, seen = listener or Listener(), snapshot.held(WATCH)
    if seen is not None:
        contamination = float(seen.state["contamination"])
    fitted, _, outcome = _train(
        trainer, config, choice, rows, base, effort, contamination, folder, told, time.monotonic(), seen
    )
    return fitted, outcome


def _newest(folder: Path) -> Snapshot:
    """The state in which training stopped: where it was interrupted, or else the newest checkpoint."""
    last = folder / LAST_FOLDER
    stopped, saved = checkpoint_steps(last), checkpoint_steps(folder)
    return load_checkpoint(last if stopped and (not saved or stopped[-1] >= saved[-1]) else folder)


def go_on(
    snapshot: Snapshot,
    config: Config,
    choice: Choice,
    rows: EncodedRows,
    base: MixtureBase,
    effort: Effort,
    *,
    updates: int,
    contamination: float,
    listener: Listener | None = None,
    engine: Engine | None = None,
) -> tuple[FittedTable, Trainer, Outcome]:
    """Trains further on rows of the same encoding, for at most `updates` updates."""
    config = in_training(config, choice)
    trainer = build_trainer(config, engine, rows, base)
    trainer.restore(snapshot)
    run = config.run.model_copy(update={"updates": trainer.step + updates})
    longer = config.model_copy(update={"run": run})
    told = listener or Listener()
    return _train(trainer, longer, choice, rows, base, effort, contamination, None, told, time.monotonic())


def _train(
    trainer: Trainer,
    config: Config,
    choice: Choice,
    rows: EncodedRows,
    base: MixtureBase,
    effort: Effort,
    contamination: float,
    folder: RunFolder | None,
    told: Listener,
    began: float,
    seen: Snapshot | None = None,
) -> tuple[FittedTable, Trainer, Outcome]:
    deadline = None if effort.minutes is None else began + 60 * TRAINING_SHARE * effort.minutes
    watch = Watch(trainer, rows, base, config, effort.patience, deadline, seen)

    def beside(snapshot: Snapshot) -> Snapshot:
        return snapshot.beside(WATCH, watch.state(contamination))

    outcome, stopped = Outcome.OK, None
    try:
        outcome = trainer.train(
            config.run.updates,
            folder=folder,
            checkpoint_every=config.run.checkpoint_every,
            on_update=followed(trainer, rows, base, config, told.on_update),
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
    config, choice, model = settle(trainer, config, choice, rows, base, watch.best_temperature())
    told.say(f"after the training: {choice.describe_settled()}")
    about = {"choice": choice.as_dict(), "updates": trainer.step, "trained_for": trained_for}
    fitted = _finish(model, config, rows, base, effort, contamination, told, about)
    if folder is not None:
        _write_choices(folder, config, choice)
        fitted.save(folder.path)
    return fitted, trainer, outcome


def _write_choices(folder: RunFolder, config: Config, choice: Choice) -> None:
    folder.config_path.write_text(dump_config(config), encoding="utf-8")
    (folder.path / CHOICE_FILE).write_text(json.dumps(choice.as_dict(), indent=1), encoding="utf-8")


def _keep_last(folder: Path, step: int, stopped: Snapshot | None) -> None:
    """Keeps the state in which training stopped apart, as the folder's own is to become the best."""
    last = folder / LAST_FOLDER
    if last.exists():
        shutil.rmtree(last)
    if stopped is not None:
        save_checkpoint(last, step, stopped)


def _finish(
    model: Model,
    config: Config,
    rows: EncodedRows,
    base: MixtureBase,
    effort: Effort,
    contamination: float,
    told: Listener,
    about: dict[str, Any],
) -> FittedTable:
    streams = Streams(config.run.seed)
    try:
        normaliser = normalise(
            model.energy,
            model.temperature,
            rows.sample(BASE_DRAWS, streams["normaliser-base"]),
            generator=streams["normaliser"],
            particles=effort.particles,
            base=base,
            report=told.report,
        )
    except NotReachedError as error:
        raise DivergedError(f"what was trained is no density around the data: {error}") from error
    mass = _mass(model, rows, streams)
    codes = rows.all_codes()
    if len(codes) > REFERENCE_ROWS:
        codes = codes[np.random.default_rng(config.run.seed).permutation(len(codes))[:REFERENCE_ROWS]]
    every = unbounded(model, rows.encoding, normaliser, codes) - np.log(mass.share)
    fitted = FittedTable(
        model, rows.encoding, normaliser, mass, quantiles(every), contamination, about, config
    )
    held = rows.held_out or rows
    for name, part in (("held_out", held), ("training", rows)):
        density = fitted.log_density(part.codes[:REFERENCE_ROWS])
        about[name] = fitted.mean_density(density).as_dict()
    return fitted


def _mass(model: Model, rows: EncodedRows, streams: Streams) -> Mass:
    """The share of samples within the columns' bounds."""
    if not rows.encoding.bounded:
        return Mass()
    drawn = chains.from_noise(model, MASS_DRAWS, streams["mass"])
    inside = int(rows.encoding.decode(drawn.position)[1].sum())
    return Mass((inside + 0.5) / (MASS_DRAWS + 1), MASS_DRAWS)
