"""Trains and samples in turns for a long time and records the memory: python -m tests.soak.run --minutes 120.

One process trains run after run, each with a bank, an average, a fitted scale and everything that is written
to its folder, and after each turn loads the run as `burnin sample` does and draws from it. A run ends after
`RENEWED` updates, or when it diverges: the recipe is that of the fault tests, whose guard gives up soon.
Passes when the resident memory, once warm, stays within 2%: the largest reading is at most 1.02 times the
smallest.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from burnin.assemble import load_model
from burnin.config import load_config
from burnin.core import DivergedError
from burnin.evaluation.chains import from_noise
from burnin.provenance import provenance
from burnin.rng import Streams
from burnin.runs import opened_run
from burnin.storage import write_text_atomically
from tests.faults.lives import RECIPE

ROWS = Path("results/soak/table.json")
WARM = 0.1
"""The share of the time that does not count: caches fill, and allocators find their size."""
FLAT = 0.02
TURN, DRAWN = 200, 500
"""Updates and samples of a turn."""
RENEWED = 20_000
"""Updates after which another run is begun."""
READINGS = 240
"""Kept in the table, evenly over the time."""


@dataclass
class Soak:
    """What was seen so far: seconds, megabytes resident, updates and samples at each reading."""

    readings: list[tuple[float, float, int, int]] = field(default_factory=list)
    runs: int = 0
    diverged: int = 0

    def warm(self) -> list[float]:
        """The memory in MB after the warm-up."""
        whole = self.readings[-1][0]
        return [memory for seconds, memory, _, _ in self.readings if seconds >= WARM * whole]

    def summary(self) -> dict[str, Any]:
        """Whether the memory is flat, and how flat."""
        warm = self.warm()
        tenth = max(1, len(warm) // 10)
        first, last = sum(warm[:tenth]) / tenth, sum(warm[-tenth:]) / tenth
        spread = max(warm) / min(warm) - 1
        seconds, _, updates, samples = self.readings[-1]
        return {
            "minutes": round(seconds / 60, 1),
            "updates": updates,
            "samples": samples,
            "runs": self.runs,
            "diverged": self.diverged,
            "readings": len(warm),
            "least_mb": round(min(warm), 1),
            "most_mb": round(max(warm), 1),
            "spread": round(spread, 4),
            "drift": round(last / first - 1, 4),
            "flat": spread <= FLAT,
        }


def resident() -> float:
    """The memory of this process, in MB, as the system counts it."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def soak(
    folder: Path,
    minutes: float,
    changes: Sequence[str] = (),
    look: Callable[[Soak], None] = lambda seen: None,
) -> Soak:
    """Trains and samples in turns in a folder; `look` is shown what was seen after every turn."""
    recipe, seen = folder / "recipe.toml", Soak()
    recipe.write_text(RECIPE, encoding="utf-8")
    told = [f"run.updates={RENEWED}", "run.checkpoint_every=100", "run.tensorboard=true", "run.log_every=10"]
    began, before = time.monotonic(), (0, 0)

    def enough() -> bool:
        return time.monotonic() - began >= 60 * minutes and len(seen.readings) >= 3

    while not enough():
        config, run = load_config(str(recipe), [*told, *changes, f"run.seed={seen.runs}"]), folder / "run"
        with opened_run(run, config, resume=False) as (trainer, opened, _):
            while not enough() and trainer.step < config.run.updates:
                try:
                    trainer.train(
                        min(trainer.step + TURN, config.run.updates),
                        folder=opened,
                        checkpoint_every=config.run.checkpoint_every,
                        log_every=config.run.log_every,
                        tensorboard=config.run.tensorboard,
                    )
                except DivergedError:
                    seen.diverged += 1
                    break
                drawn = from_noise(load_model(run), DRAWN, Streams(trainer.step)["sample"])
                assert bool(torch.isfinite(drawn.position).all())
                del drawn
                gc.collect()  # what only waits to be collected is no leak
                updates, samples = before[0] + trainer.step, before[1] + DRAWN
                before = before[0], samples
                seen.readings.append((time.monotonic() - began, resident(), updates, samples))
                look(seen)
            before = before[0] + trainer.step, before[1]
        seen.runs += 1
        shutil.rmtree(run)
    return seen


def write(path: Path, seen: Soak, made_by: dict[str, Any]) -> None:
    """What was seen so far, with some of the readings."""
    every = max(1, len(seen.readings) // READINGS)
    kept = [[round(number, 1) for number in reading] for reading in seen.readings[::every]]
    names = ["seconds", "resident_mb", "updates", "samples"]
    content = {"made_by": made_by, "summary": seen.summary(), "columns": names, "readings": kept}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(path, json.dumps(content, indent=1) + "\n")


def main() -> int:
    """Runs it, prints what came out and writes the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--out", type=Path, default=ROWS, help=f"where the table goes; {ROWS} by default")
    given = parser.parse_args()
    torch.set_num_threads(1)
    made_by = provenance() | {"command": f"python -m tests.soak.run --minutes {given.minutes:g}"}

    def look(seen: Soak) -> None:
        if len(seen.readings) % 20 == 0:
            write(given.out, seen, made_by)  # of one that is cut off too

    with tempfile.TemporaryDirectory(prefix="burnin-soak-") as name:
        seen = soak(Path(name), given.minutes, look=look)
    write(given.out, seen, made_by)
    print(json.dumps(seen.summary(), indent=1))
    return 0 if seen.summary()["flat"] else 1


if __name__ == "__main__":
    sys.exit(main())
