"""Measures: repeats in turn, one contestant at work at a time, so that a noisy machine is noisy for all."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from burnin.bench.cases import CASES, SEEDS, Case
from burnin.bench.contestants import CONTESTANTS, Contestant, how_to_install
from burnin.bench.origin import origin
from burnin.bench.process import ContestantError, Process, number_of_cores
from burnin.bench.ratios import add_ratios
from burnin.bench.spread import spread
from burnin.core import InputError

REST = 0.02
"""Seconds between two turns: threads of the one before may still spin while they wait for more."""
Status = Callable[[str, str, int, int], None]
"""Called with the table, what is going on in it, how much is done and how much there is."""


@dataclass(frozen=True)
class Settings:
    """How to measure.

    Attributes:
        cases: what.
        contestants: who; peers take part only with `peers`.
        peers: also measure other libraries.
        repeats: how many turns each contestant has.
        seconds: how long a turn should take.
        threads: cores and threads of the second table; None for all cores, with every library's own
            number of threads. 1 leaves the second table out, as it would be the first again.
    """

    cases: Sequence[Case] = CASES
    contestants: Sequence[Contestant] = CONTESTANTS
    peers: bool = False
    repeats: int = 7
    seconds: float = 0.3
    threads: int | None = None

    def tables(self) -> dict[str, int | None]:
        """The number of threads of each table."""
        number = number_of_cores() if self.threads is None else self.threads
        if number == 1:
            return {"one core": 1}
        return {"one core": 1, ("all cores" if self.threads is None else f"{number} cores"): self.threads}


def settings_for(
    cases: Sequence[Case], *, peers: bool, quick: bool, repeats: int | None, threads: int | None
) -> Settings:
    """The settings of a command line; more threads than cores are refused."""
    if threads is not None and threads > number_of_cores():
        raise InputError(f"--threads is {threads}; this process has {number_of_cores()} cores to use")
    usual = Settings(repeats=3, seconds=0.1) if quick else Settings()
    return replace(usual, cases=cases, peers=peers, repeats=repeats or usual.repeats, threads=threads)


@dataclass
class Turns:
    """One contestant's process and what it has shown so far."""

    contestant: Contestant
    process: Process
    least_steps: int
    steps: int = 0
    shown: dict[str, Any] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)

    def prepare(self, seconds: float) -> None:
        """Imports, first call, and how many steps make a turn of about `seconds`."""
        ready = self.process.ask("prepare")
        self.shown |= {"threads": ready["threads"], "imported_mb": ready["memory"]}
        steps = self.least_steps
        self.shown["first_call"] = self._run(steps)
        taken = self._run(steps)
        for _ in range(2):  # the first estimate holds the cost of the call itself, so one more
            wanted = steps * seconds / taken
            self.steps = self.least_steps * max(1, round(wanted / self.least_steps))
            taken, steps = self._run(self.steps), self.steps
        self.shown["steps"] = self.steps

    def take(self) -> None:
        """One timed turn."""
        self.seconds.append(self._run(self.steps) / self.steps)

    def end(self) -> None:
        """Peak memory and the path taken."""
        last = self.process.ask("end")
        peak, imported = last["memory"], self.shown["imported_mb"]
        self.shown |= {
            "path": last["path"],
            "peak_mb": peak,
            "increase_mb": None if peak is None else peak - imported,
        }

    def _run(self, steps: int) -> float:
        return float(self.process.ask("run", steps=steps)["seconds"])


def measure(settings: Settings, status: Status = lambda *_: None) -> dict[str, Any]:
    """Measures everything; returns what `--json` writes.

    A contestant that fails has its error in its place, and the rest goes on.
    """
    chosen = [contestant for contestant in settings.contestants if settings.peers or not contestant.peer]
    missing = {package: how_to_install(package) for one in chosen for package in one.missing()}
    result: dict[str, Any] = {
        "made_by": origin(),
        "settings": {
            "repeats": settings.repeats,
            "seconds": settings.seconds,
            "peers": settings.peers,
            "cores": number_of_cores(),
            "seeds": SEEDS,
            "load": os.getloadavg()[0] if sys.platform != "win32" else None,
        },
        "cases": {
            case.name: {"title": case.title, "kind": case.kind, "size": case.size} for case in settings.cases
        },
        "contestants": [contestant.name for contestant in chosen],
        "missing": missing,
        "tables": {},
    }
    for table, threads in settings.tables().items():
        total = sum(
            sum(contestant.takes(case) for contestant in chosen) * (settings.repeats + 1)
            for case in settings.cases
        )
        done = 0
        rows: dict[str, Any] = {}
        for case in settings.cases:

            def step(who: str, title: str = case.title, table: str = table, total: int = total) -> None:
                nonlocal done
                status(table, f"{title}, {who}", done, total)
                done += 1

            rows[case.name] = measure_case(
                case, [one for one in chosen if one.takes(case)], threads, settings, step
            )
        status(table, "done", total, total)
        result["tables"][table] = {"threads": threads, "rows": rows}
    return add_ratios(result)


def measure_case(
    case: Case,
    contestants: Sequence[Contestant],
    threads: int | None,
    settings: Settings,
    step: Callable[[str], None],
) -> dict[str, Any]:
    """The numbers of every contestant on one case."""
    cells: dict[str, Any] = {}
    with ExitStack() as stack:
        running: list[Turns] = []

        def attempt(turns: Turns, act: Callable[[], None]) -> None:
            try:
                act()
            except ContestantError as error:
                cells[turns.contestant.name] = {"error": str(error)}
                turns.process.stop()
                running.remove(turns)

        for contestant in contestants:
            step(contestant.name)
            if contestant.missing():
                cells[contestant.name] = {"error": f"{', '.join(contestant.missing())} not installed"}
                continue
            process = Process(contestant, case, threads)
            stack.callback(process.stop)
            turns = Turns(contestant, process, case.least_steps)
            running.append(turns)
            attempt(turns, lambda turns=turns: turns.prepare(settings.seconds))  # type: ignore[misc]
        for repeat in range(settings.repeats):
            shift = repeat % max(1, len(running))  # nobody is always the first
            for turns in [*running[shift:], *running[:shift]]:
                step(turns.contestant.name)
                time.sleep(REST)
                attempt(turns, turns.take)
        for turns in list(running):
            attempt(turns, turns.end)
            if turns in running:
                cells[turns.contestant.name] = turns.shown | spread(turns.seconds)
    return {contestant.name: cells[contestant.name] for contestant in contestants}
