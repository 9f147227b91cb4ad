"""Experiments made of rows: rows that resume, each in a process of its own, then a table, checks, a figure.

What a row is made of is said by the two kinds of experiment: `rows.Study` trains and judges a model,
`measured.MeasuredStudy` measures something from the row's settings alone.
"""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic

from burnin.checked import nearest
from burnin.core import InputError
from burnin.limits import read_json
from burnin.provenance import provenance
from burnin.storage import telling, write_text_atomically
from burnin.studies.table import Check, Rows, check_expectations, markdown_table, write_json
from burnin.studies.workers import (
    Maker,
    Round,
    RowTask,
    Say,
    Settings,
    Status,
    local_round,
    make_rows,
)
from burnin.training.locking import hold

TAKEN_FROM = "taken_from"
"""In a row's file: the table that it was taken from, without what figures need."""


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
        pooled: all names that `judged` may give, of the full study and its small variant; None for the
            rows' own.
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
    pooled: Sequence[str] | None = None

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

    def drawable(self, rows: Rows) -> list[str]:
        """The rows that a figure can show: those taken from a table have no models beside them."""
        return [name for name, row in rows.items() if TAKEN_FROM not in row]


def run_study(
    study: Experiment[Settings],
    out: Path,
    *,
    quick: bool,
    changes: Sequence[str] = (),
    rows: Sequence[str] = (),
    jobs: int = 2,
    known: Path | None = None,
    status: Status,
    say: Say = lambda text: None,
) -> tuple[dict[str, Any], list[Check]]:
    """Makes the rows that are missing, then the table and the figure.

    Arguments:
        study: what to make.
        out: where the rows and the results go.
        quick: the small variant, with its own expected values.
        changes: key=value changes of the recipe.
        rows: which rows; all of the (quick) study's by default.
        jobs: processes at a time, one thread each.
        known: a table of an earlier run; rows that are in it with the same settings are taken from there.
        status: told what goes on.
        say: told what was found, and what a figure lacks.
    """
    recipe = study.quick_recipe if quick else study.recipe
    if recipe is None:
        raise InputError(f"{study.name} has no small variant; leave out --quick")
    rows = rows or (study.quick_rows if quick else list(study.rows))
    for name in rows:
        if name not in study.rows:
            raise InputError(f"{study.name} has no row {name!r}{nearest(name, list(study.rows))}")
    settings = {name: study.load(recipe, [*changes, *study.rows[name]]) for name in rows}
    flags = [*(["--quick"] if quick else []), *(f"--set {shlex.quote(change)}" for change in changes)]
    # Each row says the command that makes it alone, whatever else was asked for with it.
    commands = {name: " ".join(["burnin reproduce", study.name, *flags, "--rows", name]) for name in rows}
    return run_rows(
        study, out, settings, commands, partial(local_round, jobs=jobs, status=status), say=say, known=known
    )


def run_rows(
    study: Experiment[Settings],
    out: Path,
    settings: Mapping[str, Settings],
    commands: Mapping[str, str],
    make: Round,
    *,
    say: Say,
    known: Path | None = None,
) -> tuple[dict[str, Any], list[Check]]:
    """Makes the rows of these settings that are missing, then the table and the figure.

    Nobody else may write to the folder meanwhile.

    Arguments:
        study: what to make.
        out: where the rows and the results go.
        settings: of each row.
        commands: what makes each row alone.
        make: where rows are made.
        say: told what was found.
        known: a table to take rows from.
    """
    for name, wanted in settings.items():
        _refuse_other_settings(study, out / f"{name}.json", wanted)
    found = {} if known is None else _known_rows(study, known, settings)
    with telling(out):
        out.mkdir(parents=True, exist_ok=True)
    lock = hold(out)
    try:
        missing = [name for name in settings if not (out / f"{name}.json").exists()]
        taken = [name for name in missing if name in found]
        for name in taken:
            write_json(out / f"{name}.json", {**found[name], TAKEN_FROM: str(known)})
        missing = [name for name in missing if name not in found]
        under_way = sum((out / name).is_dir() for name in missing)
        there = len(settings) - len(missing) - len(taken)
        if there or taken or under_way:
            of_table = f"{len(taken)} from {known}, " if known is not None else ""
            say(f"rows: {there} are there, {of_table}{under_way} go on, {len(missing) - under_way} to make")
        made_by = provenance()
        tasks = [
            RowTask(
                study.maker(),
                out,
                name,
                settings[name],
                made_by | {"command": commands[name]},
                study.goes_first(settings[name]),
            )
            for name in missing
        ]
        make_rows(tasks, make, say)
        return _collect(study, out, settings, say)
    finally:
        lock.release()


def _known_rows(
    study: Experiment[Settings], known: Path, settings: Mapping[str, Settings]
) -> dict[str, dict[str, Any]]:
    """The rows of a table that were made with these settings."""
    try:
        table = read_json(known)["rows"]
        rows = {name: table[name] for name in settings if name in table}
        made_with = {name: study.parse({"title": name, **row["config"]}) for name, row in rows.items()}
    except OSError as error:
        raise InputError(f"{known} cannot be read ({error.strerror or error})") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{known} is no table of this study; --known wants a table.json of one") from error
    return {name: row for name, row in rows.items() if made_with[name].essence() == settings[name].essence()}


def _refuse_other_settings(study: Experiment[Settings], path: Path, wanted: Settings) -> None:
    if not path.exists():
        return
    try:
        settings = read_json(path)["config"]
        made_with = study.parse({"title": path.stem, **settings})
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged or no row of a study; remove it to make it again") from error
    # Read as settings, so that one that is newer than the row has its default.
    if made_with.essence() != wanted.essence():
        raise InputError(f"{path} was made with other settings; choose another --out")


def _collect(
    study: Experiment[Settings], out: Path, settings: Mapping[str, Settings], say: Say
) -> tuple[dict[str, Any], list[Check]]:
    rows = {name: read_json(out / f"{name}.json") for name in settings}
    metrics = {name: row["metrics"] for name, row in rows.items()}
    first = next(iter(settings.values()))
    checks = check_expectations(first.expected, study.judged(metrics))
    table = {
        "study": study.name,
        "rows": {name: {k: v for k, v in row.items() if k != TAKEN_FROM} for name, row in rows.items()},
        "checks": [{"text": c.text, "holds": c.holds, "claim": c.claim} for c in checks],
    }
    write_json(out / "table.json", table)
    text = study.tabulate(metrics) if study.tabulate is not None else markdown_table(metrics, study.metrics)
    write_text_atomically(out / "table.md", text)
    if study.draw is not None:
        drawn = study.drawable(rows)
        if len(drawn) < len(rows):
            lacks = f"{len(rows) - len(drawn)} rows that were taken from a table, without their samples"
            say(f"the figure lacks {lacks}" if drawn else f"there is no figure: it lacks {lacks}")
        if drawn:
            study.draw(out, first, drawn)
    return table, checks
