"""Fitting a density to a table's rows: pilot, training with an early end, normaliser, reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from burnin.assemble import build_trainer
from burnin.choosing import BASE_FILE, ROWS_FILE, Choice, Wishes, choose, in_training
from burnin.config import read_run_config
from burnin.core import DivergedError, InputError, Outcome
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
from burnin.data import EncodedRows
from burnin.evaluation import MixtureBase, chains
from burnin.evaluation.model import Model
from burnin.evaluation.normaliser import normalise
from burnin.evaluation.walk import NotReachedError
from burnin.fitted import FITTED_FILE, FittedTable, Mass, quantiles, require_contamination, unbounded
from burnin.limits import brief, read_json
from burnin.provenance import write_origin
from burnin.rng import Streams
from burnin.samplers import Engine
from burnin.settings import Config
from burnin.training import RunFolder, Trainer
from burnin.training.checkpoint import Snapshot

CONTAMINATION = 0.05
BASE_DRAWS = 5000
MASS_DRAWS = 2000
REFERENCE_ROWS = 10_000
"""Rows whose log-densities are found at the end, at most."""


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
    began, told = now(), listener or Listener()
    config, choice, base, rows = choose(rows, wishes, seed, engine, told.report)
    for line in choice.describe():
        told.say(line)
    if folder is not None:
        rows.save(folder.path / ROWS_FILE)
        base.save(folder.path / BASE_FILE)
        write_choices(folder, config, choice)
        write_origin(folder.path)
    trainer = build_trainer(config, engine, rows, base)
    task = _task(rows, base, config, choice, contamination)
    return _train(trainer, task, rows, effort, folder, told, began)


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
    rows = EncodedRows.load(folder.path / Path(config.data.rows).name)
    base = MixtureBase.load(folder.path / BASE_FILE)
    choice, held, contamination = read_choice(folder.path), folder.path / FITTED_FILE, CONTAMINATION
    if held.exists():
        try:
            contamination = float(read_json(held)["contamination"])
            require_contamination(contamination)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise InputError(f"{held} is damaged ({brief(error)})") from error
    config = in_training(config, choice)
    trainer = build_trainer(config, engine, rows, base)
    snapshot = newest(folder.path)
    trainer.restore(snapshot)
    told, seen = listener or Listener(), snapshot.held(WATCH)
    told.say(folder.recover(trainer.step))
    if seen is not None:
        contamination = float(seen.state["contamination"])
    task = _task(rows, base, config, choice, contamination)
    fitted, _, outcome = _train(trainer, task, rows, effort, folder, told, now(), seen)
    return fitted, outcome


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
    task = _task(rows, base, longer, choice, contamination)
    return _train(trainer, task, rows, effort, None, told, now())


def _train(
    trainer: Trainer,
    task: Task,
    rows: EncodedRows,
    effort: Effort,
    folder: RunFolder | None,
    told: Listener,
    began: float,
    seen: Snapshot | None = None,
) -> tuple[FittedTable, Trainer, Outcome]:
    done = correct(trainer, task, effort, folder=folder, told=told, began=began, seen=seen)
    fitted = _finish(done, rows, task.base, effort, task.contamination, told)
    if folder is not None:
        fitted.save(folder.path)
    return fitted, trainer, done.outcome


def _task(rows: EncodedRows, base: MixtureBase, config: Config, choice: Choice, contamination: float) -> Task:
    points = (rows.held_out or rows).each(Streams(config.run.seed)["held-out"])
    return Task(rows, points, rows.held_out is not None, base, config, choice, contamination)


def _finish(
    done: Settled,
    rows: EncodedRows,
    base: MixtureBase,
    effort: Effort,
    contamination: float,
    told: Listener,
) -> FittedTable:
    model, config, about = done.model, done.config, done.about
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
