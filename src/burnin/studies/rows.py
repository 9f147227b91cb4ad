"""Studies whose rows train and judge a model by a recipe, with one thread.

A row that is done is not made again, and one that was cut off goes on from its last checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from burnin.assemble import build_engine
from burnin.config import load_config
from burnin.core import DivergedError, Outcome, Report
from burnin.diagnostics import diagnose
from burnin.evaluation.assess import Assessment
from burnin.evaluation.model import Model
from burnin.runs import assess_run, train_in
from burnin.settings import Config
from burnin.studies.experiment import Experiment
from burnin.studies.table import json_safe
from burnin.studies.workers import Maker
from burnin.training import read_metrics

Measure = Callable[[Model, Assessment], dict[str, Any]]
"""A row's numbers from its model and assessment."""


@dataclass(frozen=True, kw_only=True)
class TrainedRows(Experiment[Config]):
    """An experiment whose rows are runs, by a recipe of training."""

    def load(self, recipe: str, changes: Sequence[str]) -> Config:
        """The configuration of a row's run."""
        return load_config(recipe, changes)

    def parse(self, settings: Mapping[str, Any]) -> Config:
        """The configuration that a row was made with."""
        return Config.model_validate(settings)


@dataclass(frozen=True, kw_only=True)
class Study(TrainedRows):
    """An experiment whose rows are trained models, judged as any model is.

    Attributes:
        measure: a row's numbers from its model and assessment.
    """

    measure: Measure

    def maker(self) -> Maker[Config]:
        """Trains and judges."""
        return partial(train_and_judge, self.measure)

    def goes_first(self, settings: Config) -> bool:
        """The hybrid has two arms and takes longest."""
        return settings.scheme.name == "hybrid"


def train_and_judge(
    measure: Measure, out: Path, name: str, config: Config, report: Report, threads: int
) -> dict[str, Any]:
    """Makes a row: trains in its folder, judges, measures, and keeps what figures need."""
    torch.set_num_threads(max(1, config.run.threads))
    folder = out / name
    engine = build_engine(config, threads=threads)
    report("training", 0, config.run.updates)
    ended = "finished"
    try:
        outcome = train_in(
            folder,
            config,
            resume=(folder / "config.toml").exists(),
            on_update=lambda step, _: (
                report("training", step, config.run.updates) if step % 10 == 0 else None
            ),
            engine=engine,
        )
        if outcome is not Outcome.OK:
            raise KeyboardInterrupt
    except DivergedError as error:
        # A scheme that diverges is a result: its last good checkpoint is judged, and the row says so.
        ended = str(error)
    judging = time.perf_counter()
    model, result = assess_run(folder, report, engine)
    metrics = json_safe(measure(model, result))
    logged = list(read_metrics(folder / "metrics.jsonl"))
    arms, trained = diagnose(logged).arms, seconds_spent(logged)
    metrics |= {
        "oscillation": ", ".join(f"{arm.series.name}: {arm.oscillation.kind}" for arm in arms),
        "ended": ended,
        "chains": engine.path,
        "seconds_training": trained,
        "seconds": trained + time.perf_counter() - judging,
    }
    tensors = {
        "samples": result.samples.position.contiguous(),
        "long": result.long_sampled.position.contiguous(),
    }
    if result.log_model is not None:
        tensors["log_density"] = result.log_model.float()
    if model.pictures is not None:
        trace = result.long_sampled.result.trace
        tensors |= {
            "from_data": result.data_sampled.position.contiguous(),
            "energy_of_data": result.energies["data"].contiguous(),
            "energy_of_long": result.energies["long chains"].contiguous(),
            "trace": torch.tensor([trace.iteration, trace.energy], dtype=torch.float64),
        }
    safetensors.torch.save_file(tensors, out / f"{name}.safetensors")
    return {"seed": config.run.seed, "metrics": metrics, "verdict": list(result.verdict.lines)}


def seconds_spent(metrics: Sequence[Mapping[str, Any]]) -> float:
    """How long a run trained in all; its clock starts anew whenever it goes on.

    Example:
        >>> seconds_spent([{"seconds": 5.0}, {"event": "resumed"}, {"seconds": 2.0}, {"seconds": 4.0}])
        9.0
    """
    clock = [float(row["seconds"]) for row in metrics if "seconds" in row]
    ends = [now for now, then in pairwise(clock) if then < now]
    return sum(ends) + (clock[-1] if clock else 0.0)
