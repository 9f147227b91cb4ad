"""Experiments made of rows: rows that resume, each in a process of its own, then a table, checks, a figure.

What a row is made of is said by the two kinds of experiment: `rows.Study` trains and judges a model,
`measured.MeasuredStudy` measures something from the row's settings alone.
"""

from __future__ import annotations

import multiprocessing
import os
import shlex
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.managers import DictProxy
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

from burnin.checked import nearest
from burnin.core import InputError, Report
from burnin.limits import read_json
from burnin.provenance import provenance
from burnin.runs import available_cores
from burnin.settings import Recipe
from burnin.studies.table import Check, Rows, check_expectations, markdown_table, write_json

Settings = TypeVar("Settings", bound=Recipe)
Status = Callable[[str, str, int, int], None]
"""Called with a row's name, what it does, how much is done and how much there is."""
Board: TypeAlias = "DictProxy[str, tuple[str, int, int]]"
Maker = Callable[[Path, str, Settings, Report, int], dict[str, Any]]
"""Makes a row in the experiment's folder, given its name, settings, whom to tell and how many threads there
are for native chains: `seed`, `metrics` and whatever else the row's file is to hold."""


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC, Generic[Settings]):
    """A reproduction: which rows, what is drawn.

    Attributes:
        name: its name in the shell.
        about: what it shows.
        recipe: the recipe of its rows, and of those of its small variant, where it has one.
        rows: each row as key=value changes of the recipe.
        quick_rows: those of the small variant.
        metrics: the numbers of the table, in its order.
        draw: the figures, from the rows' files; None for none.
        tabulate: the table in words; one column for each row by default.
    """

    name: str
    about: str
    recipe: str
    quick_recipe: str | None
    rows: Mapping[str, Sequence[str]]
    quick_rows: Sequence[str]
    metrics: Sequence[str]
    draw: Callable[[Path, Settings, Sequence[str]], None] | None
    tabulate: Callable[[Rows], str] | None = None

    @abstractmethod
    def load(self, recipe: str, changes: Sequence[str]) -> Settings:
        """A row's settings: a recipe with changes."""

    @abstractmethod
    def parse(self, settings: Mapping[str, Any]) -> Settings:
        """A row's settings as its file holds them; those that are newer than the file have their defaults."""

    @abstractmethod
    def maker(self) -> Maker[Settings]:
        """What makes a row; sent to another process, so it must be picklable."""

    def goes_first(self, settings: Settings) -> bool:
        """Whether a row takes longest, and so should start before the others."""
        return False

    def judged(self, rows: Rows) -> Rows:
        """The numbers that the recipe's expectations are about: the rows' own."""
        return rows


def run_study(
    study: Experiment[Settings],
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
        out: where the rows and the results go.
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
    settings = {name: study.load(recipe, [*changes, *study.rows[name]]) for name in rows}
    for name, wanted in settings.items():
        _refuse_other_settings(study, out / f"{name}.json", wanted)
    out.mkdir(parents=True, exist_ok=True)
    missing = {name: wanted for name, wanted in settings.items() if not (out / f"{name}.json").exists()}
    if missing:
        flags = [*(["--quick"] if quick else []), *(f"--set {shlex.quote(change)}" for change in changes)]
        command = " ".join(["burnin reproduce", study.name, *flags])
        _make_rows(study, out, missing, command, jobs, status)
    return _collect(study, out, settings)


def _make_rows(
    study: Experiment[Settings],
    out: Path,
    settings: Mapping[str, Settings],
    command: str,
    jobs: int,
    status: Status,
) -> None:
    made_by = provenance()
    # Each row says the command that makes it alone, whatever else was asked for with it.
    origins = {name: made_by | {"command": f"{command} --rows {name}"} for name in settings}
    queue = sorted(settings.items(), key=lambda item: not study.goes_first(item[1]))
    threads = max(1, available_cores() // jobs)
    context = multiprocessing.get_context("spawn")
    workers = ProcessPoolExecutor(
        jobs, mp_context=context, initializer=_end_with_parent, initargs=(os.getpid(),)
    )
    with context.Manager() as manager, workers as pool:
        board: Board = manager.dict()
        others = {child.pid for child in multiprocessing.active_children()}
        pending: set[Future[None]] = {
            pool.submit(_make_row, study.maker(), out, name, wanted, origins[name], board, threads)
            for name, wanted in queue
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
    make: Maker[Settings],
    out: Path,
    name: str,
    settings: Settings,
    origin: dict[str, Any],
    board: Board,
    threads: int,
) -> None:
    def report(what: str, done: int, total: int) -> None:
        board[name] = (what, done, total)

    content = make(out, name, settings, report, threads)
    write_json(
        out / f"{name}.json", {"row": name, **content, "made_by": origin, "config": _essence(settings)}
    )


def _refuse_other_settings(study: Experiment[Settings], path: Path, wanted: Settings) -> None:
    if not path.exists():
        return
    try:
        settings = read_json(path)["config"]
        made_with = study.parse({"title": path.stem, **settings})
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged or no row of a study; remove it to make it again") from error
    # Read as settings, so that one that is newer than the row has its default.
    if _essence(made_with) != _essence(wanted):
        raise InputError(f"{path} was made with other settings; choose another --out")


def _essence(settings: Recipe) -> dict[str, Any]:
    """What decides a row's numbers: not its words, nor what is expected of it."""
    return settings.model_dump(mode="json", exclude=set(Recipe.model_fields))


def _collect(
    study: Experiment[Settings], out: Path, settings: Mapping[str, Settings]
) -> tuple[dict[str, Any], list[Check]]:
    rows = {name: read_json(out / f"{name}.json") for name in settings}
    metrics = {name: row["metrics"] for name, row in rows.items()}
    first = next(iter(settings.values()))
    checks = check_expectations(first.expected, study.judged(metrics))
    table = {
        "study": study.name,
        "rows": rows,
        "checks": [{"text": c.text, "holds": c.holds, "claim": c.claim} for c in checks],
    }
    write_json(out / "table.json", table)
    text = study.tabulate(metrics) if study.tabulate is not None else markdown_table(metrics, study.metrics)
    (out / "table.md").write_text(text, encoding="utf-8")
    if study.draw is not None:
        study.draw(out, first, list(settings))
    return table, checks
