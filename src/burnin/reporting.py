"""From a run's folder to its report: judges the model, scores its rows, tests its fit, writes the page."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from burnin.assemble_data import build_data
from burnin.config import dump_config, in_folder, read_run_config
from burnin.core import Density, KnownDensity, Report, evaluate
from burnin.data import EncodedRows, Pictures, Table, clean
from burnin.evaluation.assess import Assessment
from burnin.evaluation.classes import classify_held_out, is_classifier
from burnin.evaluation.goodness import fit_test
from burnin.evaluation.model import Model
from burnin.evaluation.row_density import row_log_density
from burnin.fitted import FittedTable, MeanDensity, holds_table, shuffled_from_noise
from burnin.provenance import provenance, read_origin
from burnin.report.columns import Shown
from burnin.report.cost import Cost, training_seconds
from burnin.report.likelihood import MeanLikelihood
from burnin.report.outliers import Scored
from burnin.report.summary import Material, build_page, numbers, write_report
from burnin.rng import Streams
from burnin.runs import assess_run, diagnose_run
from burnin.samplers import Engine
from burnin.studies.table import json_safe
from burnin.training import read_metrics

MOST_SCORED = 5000
"""Rows or pictures whose log-densities are found, at most."""
DRAWS = 4000
"""Of data that comes from no table."""
SAMPLES = 1000
"""That are shown beside the rows of a table, at least."""
BLOCK = 4096


@dataclass
class Clock:
    """Seconds of each part."""

    parts: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Counts the time of what is done within to `name`."""
        began = time.perf_counter()
        yield
        self.parts[name] = self.parts.get(name, 0.0) + time.perf_counter() - began


def report_run(folder: Path, status: Report, engine: Engine | None = None) -> dict[str, Any]:
    """Judges a run and writes its report; returns the verdict's lines and the numbers, for JSON.

    Arguments:
        folder: the run's.
        status: told what goes on.
        engine: how chains are computed.
    """
    clock = Clock()
    material = gather(folder, status, engine, clock)
    with clock.measure("page and figures"):
        status("page and figures", 0, 1)
        write_report(build_page(material), folder)
        status("page and figures", 1, 1)
    tested = material.fit_test.result
    answer = {
        "verdict": list(material.result.verdict.lines),
        "numbers": {name: value for name, value, _ in numbers(material.model, material.result)},
        "goodness": None if tested is None else tested.as_dict() | {"rows": material.fit_test.rows},
        "likelihood": [
            {"of": one.what, "nats": one.nats, "nats_interval": one.interval, "bits": one.bits}
            for one in material.likelihoods
        ],
        "seconds": clock.parts,
    }
    return cast("dict[str, Any]", json_safe(answer))


def gather(folder: Path, status: Report, engine: Engine | None, clock: Clock) -> Material:
    """All that the report of a run is made from."""
    config = read_run_config(folder)
    streams = Streams(config.run.seed)
    with clock.measure("judging"):
        model, result = assess_run(folder, status, engine)
    data = build_data(in_folder(config, folder))
    with clock.measure("log-densities of rows"):
        status("log-densities of rows", 0, 1)
        fitted = FittedTable.load(folder, engine) if holds_table(folder) else None
        points, shown, scored = score_data(model, result, data, fitted, streams["pictures"])
        status("log-densities of rows", 1, 1)
    with clock.measure("goodness-of-fit test"):
        status("goodness-of-fit test", 0, 1)
        tested = fit_test(model, data, streams["goodness"])
        status("goodness-of-fit test", 1, 1)
    classes = classify_held_out(model, streams["classes"]) if is_classifier(model) else None
    metrics, diagnosis = list(read_metrics(folder / "metrics.jsonl")), diagnose_run(folder)
    about = {} if fitted is None else fitted.about
    return Material(
        title=folder.resolve().name if config.data.rows or config.data.pictures else config.title,
        config=dump_config(config),
        model=model,
        result=result,
        points=points,
        shown=shown,
        scored=scored,
        fit_test=tested,
        likelihoods=likelihoods(model, result, fitted, points),
        metrics=metrics,
        diagnosis=diagnosis,
        cost=Cost(
            updates=model.num_updates,
            trained_for=int(about.get("trained_for", model.num_updates)),
            training_seconds=training_seconds(metrics),
            parts=clock.parts,
            origin=read_origin(folder),
            here=provenance(),
            seed=config.run.seed,
        ),
        classes=classes,
    )


def score_data(
    model: Model,
    result: Assessment,
    data: Density,
    fitted: FittedTable | None,
    generator: torch.Generator,
) -> tuple[Tensor, Shown | None, Scored]:
    """Data as points and as rows to show, and the log-density of each: in the table's units where it is one.

    Rows of a table are those of the table, each once; what comes from no table is drawn.
    """
    known, samples = clean(data), result.samples.position

    def more() -> Tensor:
        """Samples enough to be seen: the judgement draws no more than a table has rows held out."""
        return samples if len(samples) >= SAMPLES else shuffled_from_noise(model, SAMPLES, generator)

    if isinstance(known, EncodedRows):
        every = _some_rows(known, generator)
        points, codes = every.each(generator), every.codes
        if fitted is not None:
            log_density, threshold = fitted.log_density(codes), fitted.threshold()
        else:
            log_density = row_log_density(model.energy, model.temperature, 0.0, every.encoding, codes)
            threshold = None
        what = _part(len(every), len(known.all_codes()), "rows of the table")
        scored = Scored(log_density, fitted is not None, what, every.all_numbers(), threshold)
        return points, Shown.of(model, every, more()), scored
    log_z = _log_normaliser(model, result)
    if isinstance(known, Pictures):
        picked = torch.randperm(len(known), generator=generator)[:MOST_SCORED]
        points = known.rows(known.pixels[picked], generator)
        what = _part(len(picked), len(known), "pictures of the training")
        return points, None, _scored(model, points, log_z, what, picked.numpy() + 1)
    if isinstance(known, Table):
        picked = torch.randperm(len(known), generator=generator)[:MOST_SCORED].sort().values
        points, places = known.values[picked], picked.numpy() + 1
        what = _part(len(picked), len(known), "rows of the table")
        return points, Shown.of(model, points, more(), places), _scored(model, points, log_z, what, places)
    points = model.data.sample(DRAWS, generator)
    scored = _scored(model, points, log_z, f"{DRAWS:,} fresh draws of the data")
    return points, Shown.of(model, points, samples), scored


def likelihoods(
    model: Model, result: Assessment, fitted: FittedTable | None, points: Tensor
) -> tuple[MeanLikelihood, ...]:
    """Mean log-densities: of a fitted table in its own units, else of fresh data; the truth's where known."""
    if fitted is not None:
        z = fitted.normaliser
        return tuple(
            MeanLikelihood(what, one.nats, one.low, one.high, one.error, one.columns, z.by, z.trusted)
            for what, name in (("held-out rows", "held_out"), ("rows of the training", "training"))
            for one in (MeanDensity.of(fitted.about[name]),)
        )
    found = result.evidence.log_likelihood
    if found is None:
        return ()
    of_data = result.energies["data"].double() / model.temperature
    error = of_data.std().item() / math.sqrt(len(of_data))
    dim = model.data.dim
    own = MeanLikelihood(
        "fresh data", found.value, found.low, found.high, error, dim, found.by, found.trusted
    )
    if not isinstance(model.truth, KnownDensity):
        return (own,)
    true = model.truth.log_prob(points.double())
    mean, error = true.mean().item(), true.std().item() / math.sqrt(len(true))
    return own, MeanLikelihood("fresh data, by the truth", mean, mean, mean, error, dim)


def _some_rows(rows: EncodedRows, generator: torch.Generator) -> EncodedRows:
    """All rows of the table, or so many as are scored, in the table's order."""
    codes, places = rows.all_codes(), rows.all_numbers()
    picked = torch.randperm(len(codes), generator=generator)[:MOST_SCORED].numpy()
    picked = picked[np.argsort(places[picked])]
    return EncodedRows(rows.encoding, codes[picked], numbers=places[picked])


def _part(number: int, total: int, what: str) -> str:
    return f"{total:,} {what}" if number == total else f"{number:,} of {total:,} {what}"


def _scored(
    model: Model, points: Tensor, log_z: float | None, what: str, places: Any | None = None
) -> Scored:
    with torch.no_grad():
        energies = torch.cat([evaluate(model.energy, part) for part in torch.split(points, BLOCK)])
    log_density = -energies.double() / model.temperature - (log_z or 0.0)
    return Scored(log_density.numpy(), log_z is not None, what, places)


def _log_normaliser(model: Model, result: Assessment) -> float | None:
    """log Z behind the likelihood that was measured: mean of -E/T of the data less its mean log-density."""
    found = result.evidence.log_likelihood
    if found is None:
        return None
    return -result.data_energy / model.temperature - found.value
