"""Training and judging a run in its folder: what the command line and the studies share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from burnin.assemble import build_trainer, load_model
from burnin.config import dump_config, in_folder, read_run_config
from burnin.core import Density, InputError, Outcome, Report
from burnin.data import EncodedRows, Table, load_frame, load_table
from burnin.diagnostics import ChainNoise, Diagnosis, diagnose
from burnin.evaluation.assess import Assessment, Effort, Units, assess
from burnin.evaluation.model import Model
from burnin.limits import naming
from burnin.provenance import write_origin
from burnin.ranks import ALONE, Ranks
from burnin.rng import Streams
from burnin.samplers import Engine
from burnin.settings import Config, StudySettings
from burnin.storage import write_text_atomically
from burnin.training import RunFolder, Trainer, load_checkpoint, read_metrics
from burnin.training.arms import shared_words
from burnin.training.checkpoint import checkpoint_steps
from burnin.training.parts import Metrics


@contextmanager
def opened_run(
    path: Path,
    config: Config | None,
    *,
    resume: bool,
    engine: Engine | None = None,
    on_event: Callable[[str], None] | None = None,
    ranks: Ranks = ALONE,
) -> Iterator[tuple[Trainer, RunFolder | None, Config]]:
    """A trainer by `config` in a new folder, or that of the run that the folder holds, where it ended.

    Everything that can be wrong with the input is found before the folder is made. No other process can use
    the folder meanwhile. What was recovered of a run that was there is told to `on_event`. Of several
    processes the first one alone gets the folder, as it writes; all of them read what they resume from.
    """
    if resume:
        with _held_folder(path, ranks, resume=True) as folder:
            held = read_run_config(path)
            if config is not None and config.essence() != held.essence():
                raise InputError(
                    f"{path} holds a run with other settings; resume it without --set, "
                    "or choose another --out"
                )
            trainer = build_trainer(in_folder(held, path), engine, ranks=ranks)
            begun = bool(checkpoint_steps(path)) or any(read_metrics(path / "metrics.jsonl"))
            if begun:
                trainer.restore(load_checkpoint(path))
            ranks.any(False)  # the first does not write before all have read
            if folder is not None:
                if not begun:  # it was killed before its first checkpoint, and begins at the start
                    write_origin(path)
                said = folder.recover(trainer.step)
                if on_event is not None and trainer.step < held.run.updates:
                    on_event(said)
            yield trainer, folder, held
        return
    if config is None:
        raise InputError("a new run needs a recipe")
    trainer = build_trainer(config, engine, ranks=ranks)
    with _held_folder(path, ranks, resume=False) as folder:
        if folder is not None:
            write_text_atomically(folder.config_path, dump_config(config))  # it makes the folder a run's
            write_origin(path)
        yield trainer, folder, config


@contextmanager
def _held_folder(path: Path, ranks: Ranks, *, resume: bool) -> Iterator[RunFolder | None]:
    """The run's folder for the process that writes, which no other run can use meanwhile; None for others."""
    if ranks.rank > 0:
        yield None
        return
    with closing(RunFolder(path, resume=resume)) as folder:
        yield folder


def train_in(
    path: Path,
    config: Config | None,
    *,
    resume: bool,
    on_update: Callable[[int, Metrics], None] | None = None,
    on_event: Callable[[str], None] | None = None,
    engine: Engine | None = None,
    ranks: Ranks = ALONE,
) -> Outcome:
    """Trains by `config` in a new folder, or goes on with the run that the folder holds.

    Several processes, `ranks`, share each batch; all of them call this.
    """
    opened = opened_run(path, config, resume=resume, engine=engine, on_event=on_event, ranks=ranks)
    with opened as (trainer, folder, held):
        if on_event is not None:
            for line in shared_words(trainer.arms, trainer.batch_size, ranks):
                on_event(line)
        return train_further(trainer, folder, held, on_update=on_update, on_event=on_event)


def train_further(
    trainer: Trainer,
    folder: RunFolder | None,
    config: Config,
    *,
    on_update: Callable[[int, Metrics], None] | None = None,
    on_event: Callable[[str], None] | None = None,
) -> Outcome:
    """Trains to the end that the configuration names."""
    return trainer.train(
        config.run.updates,
        folder=folder,
        checkpoint_every=config.run.checkpoint_every,
        log_every=config.run.log_every,
        tensorboard=config.run.tensorboard,
        on_update=on_update,
        on_event=on_event,
    )


def available_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def effort_of(settings: StudySettings) -> Effort:
    """How much a configuration wants spent on judging a model."""
    return Effort(**settings.model_dump(exclude={"adjusted_steps"}))


def assess_run(
    path: Path, report: Report, engine: Engine | None = None, data: Density | None = None
) -> tuple[Model, Assessment]:
    """Loads the model of a run's folder and judges it, with streams of the run's own seed.

    Long chains are saved there on the way; a judgement that was interrupted takes them on from there.

    Arguments:
        path: the run's folder.
        report: told what goes on.
        engine: how chains are computed.
        data: what to judge it on; what it was trained on by default.
    """
    config = read_run_config(path)
    model, effort, streams = load_model(path, engine), effort_of(config.study), Streams(config.run.seed)
    if data is not None:
        if data.dim != model.data.dim:
            raise InputError(f"the data has {data.dim} columns; the model was trained on {model.data.dim}")
        model = replace(model, data=data)
    return model, assess_model(model, effort, streams, report, path)


def assess_model(
    model: Model, effort: Effort, streams: Streams, report: Report, folder: Path | None = None
) -> Assessment:
    """Judges a model, with no more samples than its data has rows; long chains are saved in `folder`."""
    effort = effort.for_data(model.data)
    units = Units.fit(model, effort, streams, report)
    return assess(model, effort, units, streams, report, folder)


def table_for(path: Path, file: Path) -> Table:
    """The rows of a file as data of the run in the folder `path`: coded, where the run is a fitted table.

    Their noise, which words and whole numbers need, is drawn with the run's own seed.
    """
    config = read_run_config(path)
    if config.data.rows is None:
        return load_table(file)
    encoding = EncodedRows.load(path / Path(config.data.rows).name).encoding
    frame = load_frame(file)
    codes = encoding.codes(frame)
    good = encoding.supported(codes, frame)
    if not good.all():
        raise InputError(
            f"{file}: row {int((~good).argmax()) + 1} holds a word that was never seen, or is beyond a bound"
        )
    points = EncodedRows(encoding, codes).each(Streams(config.run.seed)["given"])
    return Table(points, encoding.coordinates)


def diagnose_run(path: Path) -> Diagnosis:
    """The diagnostics of a run's training, from its metrics and the noise of its chains."""
    config = in_folder(read_run_config(path), path)
    trainer = build_trainer(config)
    trainer.restore(load_checkpoint(path))
    return diagnose_metrics(path / "metrics.jsonl", trainer.chain_noise())


def diagnose_metrics(path: Path, noise: Mapping[str, ChainNoise]) -> Diagnosis:
    """The diagnostics of a metrics.jsonl.

    Raises:
        InputError: when it is damaged, or lacks what is told from it.
    """
    with naming(path):
        return diagnose(read_metrics(path), noise)


def fresh_data(model: Model, config: Config, n: int = 4000) -> torch.Tensor:
    """Fresh data to draw in pictures."""
    return model.data.sample(n, Streams(config.run.seed)["pictures"])
