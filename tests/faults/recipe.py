"""Trains a recipe twice, once killed at random, and compares the ends: python -m tests.faults.recipe NAME.

    python -m tests.faults.recipe images-fashion-mnist-small --kills 10 --out runs/killed

Both trainings are processes of `burnin train`; the killed one has as many deaths by SIGKILL as asked for, at
moments drawn evenly over the time that the other took, and goes on with --resume after each. The ends must be
the same file by file and bit by bit, but for times. A command that was cut off goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burnin.provenance import provenance
from burnin.storage import write_text_atomically
from burnin.training.checkpoint import checkpoint_steps, load_checkpoint
from tests.faults.lives import end_of

ROWS = Path("results/faults/recipe.json")


@dataclass(frozen=True)
class Run:
    """A training by `burnin train`, in processes of its own."""

    recipe: str
    changes: Sequence[str]
    out: Path

    def start(self) -> subprocess.Popen[bytes]:
        """Goes on where there is something to go on from."""
        sets = [word for change in self.changes for word in ("--set", change)]
        further = ["--resume"] if (self.out / "config.toml").exists() else []
        words = ["train", self.recipe, *sets, "--out", str(self.out), *further]
        return subprocess.Popen([sys.executable, "-m", "burnin.cli", *words], stderr=subprocess.DEVNULL)

    def finish(self) -> None:
        """Trains to the end."""
        if (code := self.start().wait()) != 0:
            raise SystemExit(f"burnin train {self.recipe} ended with exit code {code}")


def never_killed(run: Run, noted: Path) -> float:
    """Trains to the end; the seconds that it took, which are noted for a command that is cut off later."""
    if not noted.exists():
        before = time.perf_counter()
        run.finish()
        write_text_atomically(noted, json.dumps(time.perf_counter() - before))
    return float(json.loads(noted.read_text(encoding="utf-8")))


def killed(run: Run, noted: Path, kills: int, seconds: float, seed: int) -> list[int]:
    """Trains with `kills` deaths; the newest checkpoint's update at each."""
    chance = random.Random(seed)
    waits = [chance.uniform(0, 2 * seconds / (kills + 1)) for _ in range(kills)]
    died: list[int] = json.loads(noted.read_text(encoding="utf-8")) if noted.exists() else []
    for wait in waits[len(died) :]:
        process = run.start()
        time.sleep(wait)
        if process.poll() is not None:
            raise SystemExit(f"the run ended before its death number {len(died) + 1}; take another --seed")
        process.kill()
        process.wait()
        steps = checkpoint_steps(run.out) if run.out.exists() else []
        for step in steps:
            load_checkpoint(run.out, step)
        died.append(steps[-1] if steps else 0)
        write_text_atomically(noted, json.dumps(died))
        print(f"killed after {wait:.0f} s; the newest checkpoint is of update {died[-1]}", flush=True)
    run.finish()
    return died


def compare(whole: Path, other: Path) -> list[str]:
    """The files in which two finished runs differ."""
    first, second = end_of(whole), end_of(other)
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Makes both runs and writes what came out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recipe")
    parser.add_argument("--set", action="append", default=[], dest="changes", metavar="KEY=VALUE")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/killed"))
    parser.add_argument("--json", type=Path, default=ROWS)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    whole, other = (Run(options.recipe, options.changes, options.out / name) for name in ("whole", "killed"))
    seconds = never_killed(whole, options.out / "whole-seconds.json")
    died = killed(other, options.out / "deaths.json", options.kills, seconds, options.seed)
    sets = "".join(f" --set {change}" for change in options.changes)
    asked = f"{options.recipe}{sets} --kills {options.kills} --seed {options.seed}"
    result = {
        "made_by": provenance() | {"command": f"python -m tests.faults.recipe {asked}"},
        "recipe": options.recipe,
        "changes": options.changes,
        "seconds": seconds,
        "updates": checkpoint_steps(whole.out)[-1],
        "died_after_checkpoint": died,
        "differing": compare(whole.out, other.out),
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(options.json, json.dumps(result, indent=1) + "\n")
    print(f"{len(died)} deaths, files that differ: {', '.join(result['differing']) or 'none'}")
    return result


if __name__ == "__main__":
    sys.exit(bool(main()["differing"]))
