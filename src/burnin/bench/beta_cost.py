"""What β costs: `burnin bench --beta`.

A plain and a β-weighted trainer take short turns in one process, so that whatever else the machine does
weighs on both; a ratio is taken within each pair of turns. Where a process happens to have its memory can
favour either, so there are several processes, and the spread between them is the error.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from statistics import fmean, median, stdev
from typing import Any

import torch

from burnin.bench import ours
from burnin.bench.cases import BETA, CASES, SEEDS, Case
from burnin.bench.contestants import Work
from burnin.bench.origin import origin
from burnin.bench.process import held_to, number_of_cores
from burnin.samplers import Engine

TRAININGS = tuple(case for case in CASES if case.kind == "training")
BOUND = 1.03
"""What an update may cost, in times of a plain one."""
PROCESSES = 9
SHORTER = 6
"""Times, than a bench's usual turn: pairs of short turns see the same machine."""
Status = Callable[[str, int, int], None]


def measure_beta(
    repeats: int,
    seconds: float,
    status: Status = lambda *_: None,
    *,
    processes: int = PROCESSES,
    cases: tuple[Case, ...] = TRAININGS,
) -> dict[str, Any]:
    """The ratio of a β-weighted update's time to that of a plain one, with its standard error.

    Arguments:
        repeats: of a usual bench; the turns are `SHORTER` times as short here, and as many times as many.
        seconds: how long a usual turn should take.
        status: told the case, how many processes are done and how many there are.
        processes: how many, for each case and table.
        cases: kinds of updates.
    """
    load, rounds, seconds = os.getloadavg()[0], repeats * SHORTER, seconds / SHORTER
    tables: dict[str, int | None] = {"one core": 1}
    if number_of_cores() > 1:
        tables["all cores"] = None
    cells: dict[str, dict[str, Any]] = {}
    for case in cases:
        cells[case.name] = {"title": case.title, "tables": {}}
        for table, threads in tables.items():
            ratios = []
            for done in range(processes):
                status(f"{case.title}, {table}", done, processes)
                ratios.append(_in_a_process(case, threads, rounds, seconds))
            status(f"{case.title}, {table}", processes, processes)
            cells[case.name]["tables"][table] = summarise(ratios)
    settings = {"rounds": rounds, "seconds": seconds, "processes": processes, "beta": BETA}
    return {
        "made_by": origin(),
        "settings": settings | {"seeds": SEEDS, "bound": BOUND, "load": load},
        "cases": cells,
    }


def summarise(ratios: list[float]) -> dict[str, Any]:
    """The mean of the processes' ratios, its standard error, and whether it is within the bound.

    Example:
        >>> summarise([1.00, 1.02])
        {'ratios': [1.0, 1.02], 'ratio': 1.01, 'error': 0.01, 'met': True}
    """
    error = stdev(ratios) / math.sqrt(len(ratios)) if len(ratios) > 1 else math.nan
    ratio = fmean(ratios)
    return {"ratios": ratios, "ratio": round(ratio, 4), "error": round(error, 4), "met": ratio <= BOUND}


def _in_a_process(case: Case, threads: int | None, rounds: int, seconds: float) -> float:
    """Of a fresh process: its own memory, held to its cores."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=_hold, initargs=(threads,)) as pool:
        return pool.submit(_ratio, asdict(case), rounds, seconds).result()


def _hold(threads: int | None) -> None:
    if sys.platform == "linux":
        os.sched_setaffinity(0, held_to(threads))
    torch.set_num_threads(threads or number_of_cores())


def _ratio(described: dict[str, Any], rounds: int, seconds: float) -> float:
    """The median of pairs of turns; each begins every other round."""
    case = Case(**described)
    plain, weighted = (ours.updates(case, Engine(compile="always"), beta) for beta in (0.0, BETA))
    for work in (plain, weighted):
        work.run(2)
    updates = max(1, round(seconds / _time(plain, 2)))
    pairs = []
    for turn in range(rounds):
        if turn % 2:
            first = _time(plain, updates)
            pairs.append(_time(weighted, updates) / first)
        else:
            first = _time(weighted, updates)
            pairs.append(first / _time(plain, updates))
    return median(pairs)


def _time(work: Work, updates: int) -> float:
    """Seconds of an update."""
    before = time.perf_counter()
    work.run(updates)
    return (time.perf_counter() - before) / updates


def write_beta(result: dict[str, Any]) -> str:
    """The table for the terminal and the docs."""
    cells = list(result["cases"].values())
    tables = list(cells[0]["tables"])
    lines = [
        f"| β = {result['settings']['beta']:g} over β = 0 | " + " | ".join(tables) + " |",
        "|---" * (len(tables) + 1) + "|",
    ]
    for cell in cells:
        found = [f"{one['ratio']:.3f} ± {one['error']:.3f}" for one in cell["tables"].values()]
        lines.append(f"| {cell['title']} | " + " | ".join(found) + " |")
    missed = [one for cell in cells for one in cell["tables"].values() if not one["met"]]
    return "\n".join([*lines, "", f"at most {BOUND}: {'NOT met' if missed else 'met'}"])
