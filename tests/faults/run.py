"""Kills small trainings and compares their ends with those of runs never killed: python -m tests.faults.run.

A run is killed again and again, each time going on from what the last life left, until it comes to its end.
After every kill all checkpoints must be whole, the newest no older than before, and no more updates lost than
lie between two checkpoints; the end must be that of a run never killed, file by file and bit by bit. Every
run's deaths are drawn from the seed, its kind and its number, though the moments are the machine's.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burnin.provenance import provenance
from burnin.storage import unfinished, write_text_atomically
from burnin.training.checkpoint import checkpoint_steps, outdated
from tests.faults.lives import KINDS, RECIPE, RUNS, Death, Kind, Life, damage, draw_death, end_of, live

ROOM = Path("/dev/shm")
ROWS = Path("results/faults/table.json")
STUCK = 300.0
"""Seconds without a sign of life, after which the process says where it is and ends."""
MOST_LIVES = 60
"""Of one run: one that dies more often does not get on."""
NOTHING: dict[str, Any] = {
    "kills": 0,
    "before_the_first_checkpoint": 0,
    "left_unfinished_files": 0,
    "most_updates_lost": 0,
    "ends": 0,
    "corrupted": [],
    "differing": [],
    "seconds": 0.0,
}
"""A row before its first kill."""


@dataclass
class Room:
    """A folder for runs, with what each kind leaves when it is never killed."""

    folder: Path
    seed: int
    wholes: dict[str, tuple[dict[str, Any], dict[Kind, Life]]] = field(default_factory=dict)

    def whole(self, run: str) -> tuple[dict[str, Any], dict[Kind, Life]]:
        """The end of a run never killed, and the life that it was; made once."""
        if run not in self.wholes:
            folder = self.folder / f"whole {run}"
            lives: dict[Kind, Life] = {}
            for kind in KINDS:
                shutil.rmtree(folder, ignore_errors=True)
                lives[kind] = live(folder, run, never(kind))
                assert lives[kind].fault is None, lives[kind].fault
            self.wholes[run] = end_of(folder), lives
        return self.wholes[run]

    def killed(self, run: str, kind: Kind, number: int) -> dict[str, Any]:
        """One run, killed until it comes to its end: a row's counts."""
        chance = random.Random(f"{self.seed} {run} {kind} {number}")
        end, lives = self.whole(run)
        folder = self.folder / "killed"
        shutil.rmtree(folder, ignore_errors=True)
        row, newest, idle = json.loads(json.dumps(NOTHING)), 0, 0
        for _ in range(MOST_LIVES):
            life = live(folder, run, draw_death(kind, lives[kind], chance, idle))
            row["seconds"] += life.seconds
            fault = damage(folder, life, newest)
            if fault is not None:
                row["corrupted"].append({"run": number, "fault": fault})
                break
            if not life.killed:
                row["ends"] += 1
                if (differs := difference(end, end_of(folder))) is not None:
                    row["differing"].append({"run": number, "fault": differs})
                break
            steps = checkpoint_steps(folder)
            idle = 0 if steps and steps[-1] > newest else idle + 1
            newest = steps[-1] if steps else 0
            row["kills"] += 1
            row["before_the_first_checkpoint"] += not steps
            row["left_unfinished_files"] += bool(unfinished(folder) or outdated(folder))
            row["most_updates_lost"] = max(row["most_updates_lost"], life.update - newest)
        else:
            row["corrupted"].append({"run": number, "fault": f"no end after {MOST_LIVES} lives"})
        return dict(row)


def never(kind: Kind) -> Death | None:
    """A death that does not come, so that a whole life's calls of this kind are counted."""
    return None if kind == "moment" else Death(kind, 10**9)


def difference(wanted: dict[str, Any], found: dict[str, Any]) -> str | None:
    """The files in which two ends differ, if they do."""
    names = [name for name in sorted(wanted.keys() | found.keys()) if wanted.get(name) != found.get(name)]
    return f"differs in {', '.join(names)}" if names else None


def added(row: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Two rows' counts together."""
    most = max(row["most_updates_lost"], more["most_updates_lost"])
    return {key: row[key] + more[key] for key in NOTHING} | {"most_updates_lost": most}


@contextmanager
def opened(seed: int) -> Iterator[Room]:
    """A folder in memory where that goes: what is tested is the order of calls, not a disk."""
    with tempfile.TemporaryDirectory(dir=ROOM if ROOM.is_dir() else None, prefix="burnin-faults-") as name:
        (Path(name) / "recipe.toml").write_text(RECIPE, encoding="utf-8")
        yield Room(Path(name), seed)


def main() -> int:
    """Goes on where the rows in the file end, until there were so many kills."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=500, help="over all runs and kinds of death")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help=f"where rows are kept and gone on from, such as {ROWS}")
    given = parser.parse_args()
    rows: dict[str, Any] = {}
    made_by = provenance()
    if given.out and given.out.exists():
        rows = json.loads(given.out.read_text(encoding="utf-8"))["rows"]
    cells = [(run, kind) for run in RUNS for kind in KINDS]
    each = -(-given.kills // len(cells))
    with opened(given.seed) as room:
        for run, kind in cells:
            name = f"{run}, {kind}"
            row = rows.setdefault(name, json.loads(json.dumps(NOTHING)))
            while row["kills"] < each:
                faulthandler.dump_traceback_later(STUCK, exit=True)
                number = row["ends"] + len(row["corrupted"])
                rows[name] = row = added(row, room.killed(run, kind, number))
                if given.out:
                    _write(given.out, given, made_by, rows)
            bad = len(row["corrupted"]), len(row["differing"])
            print(f"{name}: {row['kills']} kills, {row['ends']} ends, {bad[0]} corrupted, {bad[1]} differing")
            for fault in (row["corrupted"] + row["differing"])[:3]:
                print(f"  run {fault['run']}: {fault['fault']}")
    faulthandler.cancel_dump_traceback_later()
    return 1 if any(row["corrupted"] or row["differing"] for row in rows.values()) else 0


def _write(path: Path, given: argparse.Namespace, made_by: dict[str, Any], rows: dict[str, Any]) -> None:
    told = made_by | {"command": f"python -m tests.faults.run --kills {given.kills} --seed {given.seed}"}
    rows = {name: row | {"seconds": round(row["seconds"], 2)} for name, row in rows.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"made_by": told, "seed": given.seed, "rows": rows}
    write_text_atomically(path, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
