"""Calls the readers with changed files and counts what they do: python -m tests.fuzz.run --cases 100000.

A case fails when a reader raises anything but burnin's own errors; when its error names no file, or is no
line that can be read; when it takes seconds of processor time or hundreds of MB; when it opens a file that is
not beside those it was given, starts a program or connects to anything.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import logging
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import burnin
from burnin.core import BurninError
from burnin.limits import MEMORY_VARIABLE
from burnin.provenance import provenance
from tests.fuzz.readers import Target, make, stream_of, targets

SECONDS = 2.0
"""Of processor time, after which a case counts as one that hangs."""
STUCK = 300.0
"""Seconds without a sign of life, after which the process says where it is and ends."""
GIGABYTES = "0.05"
"""What a file may take here; with that the memory of the process must not grow by more than GROWN."""
GROWN = 300_000
"""kB."""
LONGEST = 1200
"""Characters of an error."""
BLOCK = 2000
FORBIDDEN = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "subprocess.Popen",
    "socket.connect",
    "pickle.find_class",
)
OWN = (sys.prefix, sys.base_prefix, str(Path(burnin.__file__).parent), "/sys/fs/cgroup")
"""What may be opened beside the files of a case: Python's and burnin's own, recipes among them."""
ROOM = Path("/dev/shm")
ROWS = Path("results/fuzz/table.json")


NOTHING: dict[str, Any] = {"cases": 0, "refused": 0, "failures": [], "seconds": 0.0}
"""A row before its first case."""


class HangError(BaseException):
    """Raised by the clock."""


@dataclass
class Watch:
    """What a reader does while it reads, seen by an audit hook of the process."""

    home: str
    on: bool = False
    seen: list[str] = field(default_factory=list)

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Told of every event; a hook cannot be taken away, so it looks whether it is on."""
        if not self.on:
            return
        if event == "open" and isinstance(arguments[0], str):
            # A bare name is one within an open folder, as where a temporary one is removed.
            if os.sep in arguments[0] and not arguments[0].startswith((self.home, *OWN)):
                self.seen.append(f"opens {arguments[0]}")
        elif event in FORBIDDEN:
            self.seen.append(f"{event} {str(arguments)[:80]}")


@dataclass
class Fuzzer:
    """Readers in a folder of their own, and what came of their cases."""

    folder: Path
    seed: int
    watch: Watch
    readers: dict[str, tuple[int, Target]]

    def block(self, name: str, first: int, count: int) -> dict[str, Any]:
        """So many cases of a reader, from the case of this number."""
        target = self.readers[name][1]
        whole = {path: path.read_bytes() for path, _ in target.files}
        refused, failures, started = 0, [], time.process_time()
        # Whole, they are read; and what is loaded at the first call is no fault of a file's.
        assert self._case(target) == (False, None), name
        for case in range(first, first + count):
            stream = stream_of(self.seed, name, case)
            path, change = target.files[stream.randrange(len(target.files))]
            path.write_bytes(change(whole[path], stream))
            target.mend()
            told, fault = self._case(target)
            refused += told
            if fault is not None:
                failures.append({"case": case, "fault": fault})
            for file, content in whole.items():
                file.write_bytes(content)
        seconds = round(time.process_time() - started, 2)
        return {"cases": count, "refused": refused, "failures": failures, "seconds": seconds}

    def _case(self, target: Target) -> tuple[bool, str | None]:
        """Whether the file was refused, and what is wrong with how it was dealt with."""
        before, fault, told = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, None, False
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        self.watch.on = True
        try:
            target.read()
        except BurninError as error:
            told, fault = True, self._unclear(str(error))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            fault = f"{type(error).__name__}: {str(error)[:300]}"
        finally:
            self.watch.on = False
            signal.setitimer(signal.ITIMER_PROF, 0)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        if grown > GROWN:
            fault = f"took {grown // 1000} MB"
        if self.watch.seen:
            fault, self.watch.seen = "; ".join(self.watch.seen[:3]), []
        return told, fault

    def _unclear(self, message: str) -> str | None:
        if len(message) > LONGEST or "\n" in message:
            return f"an error of {len(message)} characters: {message[:200]!r}"
        return None if str(self.folder) in message else f"an error that names no file: {message[:200]!r}"


@contextmanager
def opened(seed: int) -> Iterator[Fuzzer]:
    """Makes the valid files, in memory where that goes; the process is as it was when all is done."""
    before, on_clock = os.environ.get(MEMORY_VARIABLE), signal.signal(signal.SIGPROF, _hang)
    try:
        with (
            tempfile.TemporaryDirectory(dir=ROOM if ROOM.is_dir() else None, prefix="burnin-fuzz-") as name,
            warnings.catch_warnings(),
        ):
            readers = targets(Path(name), make(Path(name)))
            os.environ[MEMORY_VARIABLE] = GIGABYTES
            logging.disable(logging.CRITICAL)
            warnings.simplefilter("ignore")
            yield Fuzzer(Path(name), seed, Watch(name), readers)
    finally:
        logging.disable(logging.NOTSET)
        signal.signal(signal.SIGPROF, on_clock)
        os.environ.pop(MEMORY_VARIABLE, None)
        if before is not None:
            os.environ[MEMORY_VARIABLE] = before


def _hang(number: int, frame: FrameType | None) -> None:
    raise HangError(f"still busy after {SECONDS:g} s of processor time")


def shares(fuzzer: Fuzzer, cases: int, only: Sequence[str] = ()) -> dict[str, int]:
    """How many cases each reader gets."""
    weights = {name: weight for name, (weight, _) in fuzzer.readers.items() if not only or name in only}
    return {name: max(1, cases * weight // sum(weights.values())) for name, weight in weights.items()}


def main() -> int:
    """Goes on where the rows in the file end, until every reader has had its cases."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=20_000, help="over all readers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", action="append", default=[], help="only this one; may be repeated")
    parser.add_argument("--from-case", type=int, default=0, help="with --reader: the first case")
    parser.add_argument("--again", action="store_true", help="with --reader: as if its row were not there")
    parser.add_argument("--out", type=Path, help=f"where rows are kept and gone on from, such as {ROWS}")
    given = parser.parse_args()
    faulthandler.enable()
    commit = provenance()["commit"]
    with opened(given.seed) as fuzzer:
        sys.addaudithook(fuzzer.watch.hook)
        rows = _rows(given.out) if given.out and given.out.exists() else {}
        for reader in given.reader if given.again else ():
            rows.pop(reader, None)
        for reader, wanted in shares(fuzzer, given.cases, given.reader).items():
            row = rows.setdefault(reader, dict(NOTHING))
            while row["cases"] < wanted:
                faulthandler.dump_traceback_later(STUCK, exit=True)
                first = given.from_case + row["cases"]
                done = fuzzer.block(reader, first, min(BLOCK, wanted - row["cases"]))
                row |= {key: row[key] + done[key] for key in NOTHING} | {"commit": commit}
                if given.out:
                    _write(given.out, given, rows)
            each = f"{1e6 * row['seconds'] / row['cases']:.0f} µs each"
            print(f"{reader}: {row['cases']} cases, {row['refused']} refused, {each}")
            for failure in row["failures"][:5]:
                print(f"  failed: case {failure['case']}: {failure['fault']}")
        faulthandler.cancel_dump_traceback_later()
        if given.out:
            _write(given.out, given, rows)
    return 1 if any(row["failures"] for row in rows.values()) else 0


def _rows(path: Path) -> dict[str, Any]:
    """The rows of a file, each with the commit whose readers it is of."""
    table = json.loads(path.read_text(encoding="utf-8"))
    return {name: {"commit": table["made_by"]["commit"], **row} for name, row in table["rows"].items()}


def _write(path: Path, given: argparse.Namespace, rows: dict[str, Any]) -> None:
    told = provenance() | {"command": f"python -m tests.fuzz.run --cases {given.cases} --seed {given.seed}"}
    total = {key: sum(row[key] for row in rows.values()) for key in ("cases", "refused")}
    total["failures"] = sum(len(row["failures"]) for row in rows.values())
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = {name: row | {"seconds": round(row["seconds"], 2)} for name, row in rows.items()}
    content = {"made_by": told, "seed": given.seed, "total": total, "rows": rows}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
