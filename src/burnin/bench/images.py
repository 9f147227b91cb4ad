"""Chains of images against their bare convolutions, in one process: `burnin bench --images`.

Both take turns in the same process and are timed by its processor time, so that what else the machine does
weighs little on either. The memory is the process's peak after short chains and after ten times as long ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from burnin.bench import floor
from burnin.bench.cases import SEEDS, STEP_SIZE, TEMPERATURE, Case, make_energy, make_start
from burnin.bench.child import memory
from burnin.bench.origin import origin
from burnin.bench.spread import quartiles
from burnin.samplers import Engine, Langevin, run
from burnin.samplers.blocks import block_length

IMAGES = (
    Case("conv-14", "langevin", "image", 64, (1, 14, 14), 16),
    Case("conv-32-wide", "langevin", "image", 64, (3, 32, 32), 32),
)
BOUND = 1.3
"""What a step may cost, in times of its convolutions."""
LONGER = 10
"""How many times as long the chains are whose memory is compared with that of two blocks of noise."""
Take = Callable[[int], object]


def measure_images(
    repeats: int, seconds: float, status: Callable[[str, int, int], None] = lambda *_: None
) -> dict[str, Any]:
    """Images × steps a second of plain chains, how many times slower they are than their convolutions, and
    how much memory longer chains take.

    Arguments:
        repeats: turns of either.
        seconds: how long a turn should take.
        status: told the case, how many turns are done and how many there are.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        cells = {case.name: _measure(case, repeats, seconds, status) for case in IMAGES}
    finally:
        torch.set_num_threads(threads)
    settings = {"repeats": repeats, "seconds": seconds, "seeds": SEEDS, "bound": BOUND}
    return {"made_by": origin(), "settings": settings, "cases": cells}


def _measure(
    case: Case, repeats: int, seconds: float, status: Callable[[str, int, int], None]
) -> dict[str, Any]:
    chains, convolutions = _chains(case), floor.make(case).run
    short = 2 * block_length(make_start(case))
    chains(short)
    before = memory("VmHWM")
    chains(LONGER * short)
    after = memory("VmHWM")
    convolutions(1)
    steps = max(1, round(seconds / _time(convolutions, 2)))
    ours: list[float] = []
    bare: list[float] = []
    for turn in range(repeats):
        status(case.title, turn, repeats)
        pair = [(ours, chains), (bare, convolutions)]
        for times, take in pair if turn % 2 else reversed(pair):
            times.append(_time(take, steps))
    status(case.title, repeats, repeats)
    low, middle, high = quartiles([a / b for a, b in zip(ours, bare, strict=True)])
    return {
        "title": case.title,
        "ratio": middle,
        "quartiles": [low, high],
        "images_steps_per_second": case.chains / quartiles(ours)[1],
        "memory_growth_mb": None if before is None or after is None else after - before,
        "steps_compared": [short, LONGER * short],
        "met": middle <= BOUND,
    }


def _chains(case: Case) -> Take:
    sampler, energy = Langevin(STEP_SIZE, TEMPERATURE), make_energy(case)
    start, stream = make_start(case), torch.Generator().manual_seed(SEEDS["chains"])
    state, engine = sampler.init(energy, start), Engine("never")
    return lambda steps: run(sampler, energy, state, num_steps=steps, generator=stream, engine=engine)


def _time(take: Take, steps: int) -> float:
    """Processor seconds of a step."""
    before = time.process_time()
    take(steps)
    return (time.process_time() - before) / steps


def write_images(result: dict[str, Any]) -> str:
    """The table for the terminal."""
    lines = ["plain chains of images against their bare convolutions, one core"]
    for cell in result["cases"].values():
        low, high = cell["quartiles"]
        grown = cell["memory_growth_mb"]
        steps = " → ".join(map(str, cell["steps_compared"]))
        memory_line = "" if grown is None else f"; {steps} steps take {grown:.1f} MB more"
        lines.append(
            f"{cell['title']}: {cell['ratio']:.2f} times as long ({low:.2f}–{high:.2f}), "
            f"{cell['images_steps_per_second']:,.0f} images·steps/s{memory_line}"
        )
    met = all(cell["met"] for cell in result["cases"].values())
    return "\n".join([*lines, f"at most {BOUND}: {'met' if met else 'NOT met'}"])
