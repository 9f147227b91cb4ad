"""How well processes share a run: `burnin bench --processes 2`.

One process trains with a batch, and all together with that many for each: the time of an update would be the
same if nothing had to be said and the cores had nothing else to do. What the cores lose by themselves when
all are busy is measured too: every process trains alone, all at a time. All take turns in the same processes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from burnin.assemble import build_engine, build_trainer
from burnin.bench.origin import origin
from burnin.bench.spread import quartiles
from burnin.bench.traffic import Hardware, on_paper, traffic_of
from burnin.config import load_config
from burnin.ranks import Ranks
from burnin.training import Trainer

BOUND = 0.85
PLAIN = ("run.tensorboard=false", "scheme.name=hybrid", "sampler.num_steps=10")
CASES = {
    "rings, perceptron 3 × 512, batch 128": (
        "rings",
        (*PLAIN, "model.width=512", "run.batch_size=128", "sampler_from_noise={}", "model.average=0"),
    ),
    "rings, perceptron 3 × 1024, batch 128": (
        "rings",
        (*PLAIN, "model.width=1024", "run.batch_size=128", "sampler_from_noise={}", "model.average=0"),
    ),
    "digits 8×8, ConvNet n_f = 32, batch 64": (
        "images-quick",
        (
            *PLAIN,
            "data.name=digits8",
            "data.side=8",
            "data.flip=false",
            "model.width=32",
            "run.batch_size=64",
        ),
    ),
}
ON_PAPER = ("images-cifar10-paper", (3, 32, 32))


@final
class Counted(Ranks):
    """Processes whose sums are counted and timed."""

    def __init__(self, inner: Ranks) -> None:
        self.inner = inner
        self.bytes, self.messages, self.seconds = 0, 0, 0.0

    @property
    def rank(self) -> int:
        """That of the inner one."""
        return self.inner.rank

    @property
    def size(self) -> int:
        """That of the inner one."""
        return self.inner.size

    @property
    def neighbours(self) -> int:
        """That of the inner one."""
        return self.inner.neighbours

    def sum(self, x: Tensor) -> Tensor:
        """The sum, counted; its time includes waiting for the slowest."""
        before = time.perf_counter()
        total = self.inner.sum(x)
        self.seconds += time.perf_counter() - before
        self.bytes += x.numel() * x.element_size()
        self.messages += 1
        return total


@dataclass(frozen=True)
class Turn:
    """Seconds of an update: on the clock, and of the processor."""

    wall: float
    processor: float


def measure_together(
    ranks: Ranks, rounds: int, seconds: float, status: Callable[[str, int, int], None]
) -> dict[str, Any]:
    """Seconds of an update by one process and by all, what they told each other; and more GPUs on paper."""
    torch.set_num_threads(1)
    before = os.getloadavg()
    cases = {name: _measure(name, ranks, rounds, seconds, status) for name in CASES}
    recipe, shape = ON_PAPER
    return {
        "made_by": origin() | {"load_average": [before[0], os.getloadavg()[0]]},
        "settings": {
            "processes": ranks.size,
            "rounds": rounds,
            "seconds": seconds,
            "bound": BOUND,
            "seed": 0,
        },
        "cases": cases,
        "on_paper": on_paper(load_config(recipe), shape, Hardware()),
    }


def _measure(
    name: str, ranks: Ranks, rounds: int, seconds: float, status: Callable[[str, int, int], None]
) -> dict[str, Any]:
    recipe, changes = CASES[name]
    single = load_config(recipe, list(changes))
    batch = single.run.batch_size
    shared = load_config(recipe, [*changes, f"run.batch_size={batch * ranks.size}"])
    counted = Counted(ranks)
    alone = build_trainer(single, build_engine(single, threads=1))
    together = build_trainer(shared, build_engine(shared, threads=1), ranks=counted)
    for trainer in (alone, together):
        trainer.engine.expected_steps = 10**6
        trainer.update()
    ranks.any(False)
    guess = _time(alone, 1).wall if ranks.rank == 0 else 0.0
    updates = max(1, round(seconds / float(ranks.first(torch.tensor(guess)))))
    counted.bytes, counted.messages, counted.seconds = 0, 0, 0.0
    of_one: list[Turn] = []
    apart: list[Turn] = []
    of_all: list[Turn] = []
    for turn in range(rounds):
        status(name, turn, rounds)
        ranks.any(False)
        if ranks.rank == 0:
            of_one.append(_time(alone, updates))
        ranks.any(False)
        apart.append(_time(alone, updates))
        ranks.any(False)
        of_all.append(_time(together, updates))
    status(name, rounds, rounds)
    made = rounds * updates
    processor = [float(ranks.sum(torch.tensor(turn.processor))) / ranks.size for turn in of_all]
    side_by_side = [float(ranks.sum(torch.tensor(turn.wall))) / ranks.size for turn in apart]
    arms = [arm.num_chains or batch * ranks.size for arm in together.arms]
    weights = sum(parameter.numel() for parameter in together.parts.energy.parameters())
    steps = sum(arm.num_steps for arm in alone.arms) if ranks.rank == 0 else 1
    return {
        "updates_of_a_turn": updates,
        "seconds_alone": [turn.wall for turn in of_one],
        "seconds_side_by_side": side_by_side,
        "seconds_together": [turn.wall for turn in of_all],
        "processor_alone": [turn.processor for turn in of_one],
        "processor_together": processor,
        "step_seconds": quartiles([t.wall for t in of_one])[1] / steps if of_one else None,
        "efficiency": _ratios([t.wall for t in of_one], [t.wall for t in of_all]),
        "efficiency_side_by_side": _ratios([t.wall for t in of_one], side_by_side),
        "processor_efficiency": _ratios([t.processor for t in of_one], processor),
        "bytes_of_an_update": counted.bytes / made,
        "messages_of_an_update": counted.messages / made,
        "expected_bytes": traffic_of(weights, batch * ranks.size, arms).total - 4,  # no loop, no Ctrl-C
        "seconds_in_sums": counted.seconds / made,
    }


def _ratios(one: list[float], all_of_them: list[float]) -> list[float]:
    """Quartiles of one process's time over that of all, round by round."""
    return list(quartiles([a / b for a, b in zip(one, all_of_them, strict=True)])) if one else []


def _time(trainer: Trainer, updates: int) -> Turn:
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(updates):
        trainer.update()
    return Turn((time.perf_counter() - wall) / updates, (time.process_time() - processor) / updates)


def write_together(result: dict[str, Any]) -> str:
    """The table for the terminal and the docs."""
    size = result["settings"]["processes"]
    lines = [
        f"| | a step, ms | one over {size}, clock | one over {size} that share nothing, clock | "
        f"one over {size}, processor | bytes of an update |",
        "|---|---|---|---|---|---|",
    ]
    for name, cell in result["cases"].items():
        ratios = [cell["efficiency"], cell["efficiency_side_by_side"], cell["processor_efficiency"]]
        cells = [f"{middle:.2f} ({low:.2f}–{high:.2f})" for low, middle, high in ratios]
        lines.append(
            f"| {name} | {1000 * cell['step_seconds']:.1f} | {' | '.join(cells)} | "
            f"{cell['bytes_of_an_update']:,.0f} |"
        )
    return "\n".join(lines)
