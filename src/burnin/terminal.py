"""Progress bars for the terminal, and an option that several commands have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from burnin.core import Report

OnUpdate = Callable[[int, Mapping[str, float]], None]
Set = Annotated[
    list[str], typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be repeated.")
]


Devices = Annotated[int, typer.Option(help="Processes on this machine that share the work.")]
Nodes = Annotated[int, typer.Option(help="Machines; each runs this command (docs/scale.md).")]


def make_console(*, stderr: bool = True, quiet: bool = False) -> Console:
    """Progress and messages go to stderr, so that stdout stays clean for what a program may read."""
    return Console(stderr=stderr, quiet=quiet, highlight=False, markup=False, emoji=False)


def harmless(text: str) -> str:
    """Text without what a terminal would take for commands: it may come from a stranger's file.

    Example:
        >>> harmless("no column \\x1b[2J")
        'no column �[2J'
    """
    return "".join(letter if letter.isprintable() or letter == "\n" else "�" for letter in text)


class NumberedProgress(Progress):
    """Bars, and below them the live numbers of each: beside them they would crush the counts."""

    def get_renderables(self) -> Iterable[RenderableType]:
        """What is shown."""
        yield self.make_tasks_table(self.tasks)
        for task in self.tasks:
            if task.fields["numbers"]:
                yield Text(task.fields["numbers"], no_wrap=True, overflow="ellipsis")


def make_progress(console: Console) -> Progress:
    """A bar with counts, times and a line of live numbers."""
    return NumberedProgress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=28),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        refresh_per_second=4,
    )


@contextmanager
def shown_progress(console: Console) -> Iterator[Callable[[], Progress]]:
    """A bar that appears when it is first asked for, so that bad input met before leaves one line only."""
    progress = make_progress(console)
    started = False

    def show() -> Progress:
        nonlocal started
        if not started:
            started = True
            progress.start()
        return progress

    try:
        yield show
    finally:
        if started:
            progress.stop()


@contextmanager
def training_bar(console: Console, label: str, total: int, batch_size: int = 0) -> Iterator[OnUpdate]:
    """A bar for training that shows samples so far, and d, r, acceptance and step size of each arm."""
    with shown_progress(console) as show:
        yield _training(show, label, total, batch_size)


@contextmanager
def stages_bar(console: Console) -> Iterator[Report]:
    """A bar that starts anew for each stage of a judgement."""
    with shown_progress(console) as show:
        yield _stages(show)


@contextmanager
def fitting_bar(console: Console, total: int, batch_size: int) -> Iterator[tuple[OnUpdate, Report]]:
    """Bars for a fit: its training, with samples so far, and each stage before and after."""
    with shown_progress(console) as show:
        yield _training(show, "training", total, batch_size), _stages(show)


def _training(show: Callable[[], Progress], label: str, total: int, batch_size: int) -> OnUpdate:
    tasks: list[TaskID] = []

    def update(step: int, numbers: Mapping[str, float]) -> None:
        if not tasks:
            tasks.append(show().add_task(label, total=total, numbers=""))
        seen = f"{step * batch_size:,} samples  " if batch_size else ""
        show().update(tasks[0], completed=step, numbers=seen + live_numbers(numbers))

    return update


def _stages(show: Callable[[], Progress]) -> Report:
    tasks: dict[str, TaskID] = {}

    def report(what: str, done: int, total: int) -> None:
        if what not in tasks:
            tasks[what] = show().add_task(what, total=total, numbers="")
        show().update(tasks[what], completed=done, total=total)

    return report


@contextmanager
def studies_bar(console: Console) -> Iterator[Callable[[str, str, int, int], None]]:
    """A bar for each row of a study."""
    with shown_progress(console) as show:
        tasks: dict[str, TaskID] = {}

        def status(row: str, what: str, done: int, total: int) -> None:
            if row not in tasks:
                tasks[row] = show().add_task(row, total=total, numbers="")
            show().update(tasks[row], description=f"{row}: {what}", completed=done, total=total)

        yield status


def live_numbers(numbers: Mapping[str, float]) -> str:
    """d, r, acceptance and step size of each arm in one short line; without chains, the objective's numbers.

    The acceptance is 1 where steps are not checked.
    """
    arms = [key.removeprefix("d/") for key in numbers if key.startswith("d/")]
    if not arms:
        return "  ".join(f"{key} {value:.4g}" for key, value in numbers.items() if key != "learning_rate")
    shown = (
        ("d", "d", "+.3f"),
        ("r", "r", ".3g"),
        ("acc", "acceptance", ".2f"),
        ("step", "step_size", ".3g"),
    )
    return "  ".join(
        f"{arm}: " + " ".join(f"{short} {numbers[f'{key}/{arm}']:{form}}" for short, key, form in shown)
        for arm in arms
    )
