"""Studies made of rows: each row trains and judges one model, in a process of its own with one thread.

A row that is done is not made again, and one that was cut off goes on from its last checkpoint.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.managers import DictProxy
from pathlib import Path
from typing import Any, TypeAlias

import safetensors.torch
import torch

from burnin.assemble import build_engine
from burnin.config import Config, load_config, nearest
from burnin.core import DivergedError, InputError, Outcome
from burnin.diagnostics import diagnose
from burnin.evaluation.assess import Assessment
from burnin.evaluation.model import Model
from burnin.provenance import provenance
from burnin.runs import assess_run, available_cores, train_in
from burnin.studies.table import Check, Rows, check_expectations, json_safe, markdown_table, write_json
from burnin.training import read_metrics

Status = Callable[[str, str, int, int], None]
"""Called with a row's name, what it does, how much is done and how much there is."""
Board: TypeAlias = "DictProxy[str, tuple[str, int, int]]"


@dataclass(frozen=True)
class Study:
    """A reproduction: which rows, what is measured, what is drawn.

    Attributes:
        name: its name in the shell.
        about: what it shows.
        recipe: the recipe of its rows, and of those of its small variant, where it has one.
        rows: each row as key=value changes of the recipe.
        metrics: the numbers of the table, in its order.
        measure: a row's numbers from its model and assessment.
        draw: the figures, from the rows' samples and densities; None for none.
        tabulate: the table in words; one column for each row by default.
    """

    name: str
    about: str
    recipe: str
    quick_recipe: str | None
    rows: Mapping[str, Sequence[str]]
    quick_rows: Sequence[str]
    metrics: Sequence[str]
    measure: Callable[[Model, Assessment], dict[str, Any]]
    draw: Callable[[Path, Config, Sequence[str]], None] | None
    tabulate: Callable[[Rows], str] | None = None


def run_study(
    study: Study,
    out: Path,
    *,
    quick: bool,
    changes: Sequence[str] = (),
    rows: Sequence[str] = (),
    jobs: int = 2,
    status: Status,
) -> tuple[dict[str, Any], list[Check]]:
    """Makes the rows that are missing, then the table and the figure.

    Arguments:
        study: what to make.
        out: where the runs and the results go.
        quick: the small variant, with its own expected values.
        changes: key=value changes of the recipe.
        rows: which rows; all of the (quick) study's by default.
        jobs: processes at a time, one thread each.
        status: told what goes on.
    """
    recipe = study.quick_recipe if quick else study.recipe
    if recipe is None:
        raise InputError(f"{study.name} has no small variant; leave out --quick")
    rows = rows or (study.quick_rows if quick else list(study.rows))
    for name in rows:
        if name not in study.rows:
            raise InputError(f"{study.name} has no row {name!r}{nearest(name, list(study.rows))}")
    configs = {name: load_config(recipe, [*changes, *study.rows[name]]) for name in rows}
    for name, config in configs.items():
        _refuse_other_settings(out / f"{name}.json", config)
    out.mkdir(parents=True, exist_ok=True)
    missing = {name: config for name, config in configs.items() if not (out / f"{name}.json").exists()}
    if missing:
        flags = [*(["--quick"] if quick else []), *(f"--set {shlex.quote(change)}" for change in changes)]
        command = " ".join(["burnin reproduce", study.name, *flags])
        _make_rows(study, out, missing, command, jobs, status)
    return _collect(study, out, configs)


def _make_rows(
    study: Study, out: Path, configs: Mapping[str, Config], command: str, jobs: int, status: Status
) -> None:
    made_by = provenance()
    # Each row says the command that makes it alone, whatever else was asked for with it.
    origins = {name: made_by | {"command": f"{command} --rows {name}"} for name in configs}
    # The hybrid has two arms and takes longest, so it starts first.
    queue = sorted(configs.items(), key=lambda item: item[1].scheme.name != "hybrid")
    threads = max(1, available_cores() // jobs)
    context = multiprocessing.get_context("spawn")
    workers = ProcessPoolExecutor(
        jobs, mp_context=context, initializer=_end_with_parent, initargs=(os.getpid(),)
    )
    with context.Manager() as manager, workers as pool:
        board: Board = manager.dict()
        others = {child.pid for child in multiprocessing.active_children()}
        pending: set[Future[None]] = {
            pool.submit(_make_row, study.measure, out, name, config, origins[name], board, threads)
            for name, config in queue
        }
        while pending:
            done, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
            for name, (what, count, total) in dict(board).items():
                status(name, what, count, total)
            for future in done:
                if future.exception() is not None:
                    # Rows under way are cut off, and go on from their checkpoints another time.
                    pool.shutdown(wait=False, cancel_futures=True)
                    for child in multiprocessing.active_children():
                        if child.pid not in others:
                            child.kill()
                            child.join()
                future.result()


def _end_with_parent(parent: int) -> None:
    """Ends this process soon after the study was killed: it must not go on, or wait, for nobody."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _make_row(
    measure: Callable[[Model, Assessment], dict[str, Any]],
    out: Path,
    name: str,
    config: Config,
    origin: dict[str, Any],
    board: Board,
    threads: int,
) -> None:
    torch.set_num_threads(max(1, config.run.threads))
    folder = out / name
    engine = build_engine(config, threads=threads)

    def report(what: str, done: int, total: int) -> None:
        board[name] = (what, done, total)

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
    safetensors.torch.save_file(tensors, out / f"{name}.safetensors")
    write_json(
        out / f"{name}.json",
        {
            "row": name,
            "seed": config.run.seed,
            "metrics": metrics,
            "verdict": list(result.verdict.lines),
            "made_by": origin,
            "config": _essence(config),
        },
    )


def seconds_spent(metrics: Sequence[Mapping[str, Any]]) -> float:
    """How long a run trained in all; its clock starts anew whenever it goes on.

    Example:
        >>> seconds_spent([{"seconds": 5.0}, {"event": "resumed"}, {"seconds": 2.0}, {"seconds": 4.0}])
        9.0
    """
    clock = [float(row["seconds"]) for row in metrics if "seconds" in row]
    ends = [now for now, then in pairwise(clock) if then < now]
    return sum(ends) + (clock[-1] if clock else 0.0)


def _refuse_other_settings(path: Path, config: Config) -> None:
    if not path.exists():
        return
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))["config"]
        made_with = Config.model_validate({"title": path.stem, **settings})
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged or no row of a study; remove it to make it again") from error
    # Read as a configuration, so that a setting that is newer than the row has its default.
    if _essence(made_with) != _essence(config):
        raise InputError(f"{path} was made with other settings; choose another --out")


def _essence(config: Config) -> dict[str, Any]:
    """What decides a row's numbers: not its words, nor what is expected of it."""
    return config.model_dump(mode="json", exclude={"title", "about", "cost", "expected"})


def _collect(study: Study, out: Path, configs: Mapping[str, Config]) -> tuple[dict[str, Any], list[Check]]:
    rows = {name: json.loads((out / f"{name}.json").read_text(encoding="utf-8")) for name in configs}
    metrics = {name: row["metrics"] for name, row in rows.items()}
    first = next(iter(configs.values()))
    checks = check_expectations(first.expected, metrics)
    table = {
        "study": study.name,
        "rows": rows,
        "checks": [{"text": c.text, "holds": c.holds, "claim": c.claim} for c in checks],
    }
    write_json(out / "table.json", table)
    text = study.tabulate(metrics) if study.tabulate is not None else markdown_table(metrics, study.metrics)
    (out / "table.md").write_text(text, encoding="utf-8")
    if study.draw is not None:
        study.draw(out, first, list(configs))
    return table, checks
