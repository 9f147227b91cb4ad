"""The parent's side of a contestant's process: starts it, asks it, stops it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict
from typing import Any

from burnin.bench.cases import Case
from burnin.bench.contestants import Contestant

THREAD_SETTINGS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "XLA_FLAGS")
ONE_THREAD_XLA = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
# The cores are chosen before torch or jax is imported: both count them then.
START = """
import os, sys
cores = [int(core) for core in sys.argv[2].split(",") if core]
if cores:
    os.sched_setaffinity(0, cores)
from burnin.bench.child import main
main(sys.argv[1])
"""


class ContestantError(Exception):
    """A contestant failed; the message is what its cell says."""


class Process:
    """A contestant at work on one case, in a process and a session of its own.

    Arguments:
        contestant: who.
        case: on what.
        threads: how many threads and cores it may use; None for all, each library with its default.
    """

    def __init__(self, contestant: Contestant, case: Case, threads: int | None) -> None:
        order = {
            "maker": contestant.maker,
            "requires": list(contestant.requires),
            "case": asdict(case),
            "threads": threads,
        }
        cores = ",".join(map(str, held_to(threads)))
        self._stopped = False
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (closed by stop)
        # -P: a file of the current folder must not take a library's place.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", START, json.dumps(order), cores],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environment(threads),
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C reaches the parent alone, which then stops the children
        )

    def ask(self, what: str, **more: Any) -> dict[str, Any]:
        """Sends a request and waits for its answer.

        Raises:
            ContestantError: with the first line of what went wrong there.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": what, **more}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise ContestantError(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ContestantError(str(answer["error"]))
        return answer

    def stop(self) -> None:
        """Ends the process and whatever it started (compilers, for example)."""
        if self._stopped:
            return
        self._stopped = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _last_words(self) -> str:
        """Why a process is gone without an answer."""
        code = self._process.wait()
        self._stderr.seek(0)
        lines = self._stderr.read().decode("utf-8", "replace").strip().splitlines()
        how = f"killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"{how}: {lines[-1].strip()}" if lines else how


def available_cores() -> list[int]:
    """The cores this process may use; empty where the system does not tell."""
    if sys.platform == "linux":
        return sorted(os.sched_getaffinity(0))
    return []


def number_of_cores() -> int:
    """How many cores there are to use."""
    return len(available_cores()) or os.cpu_count() or 1


def held_to(threads: int | None) -> list[int]:
    """The cores of a contestant with so many threads: the last ones, as the first serves the system too."""
    cores = available_cores()
    return cores if threads is None else cores[-threads:]


def environment(threads: int | None) -> dict[str, str]:
    """The child's environment: no thread settings from outside, and those that hold it to `threads`."""
    kept = {name: value for name, value in os.environ.items() if name not in THREAD_SETTINGS}
    if threads is None:
        return kept
    limits = dict.fromkeys(THREAD_SETTINGS[:3], str(threads))
    return kept | limits | ({"XLA_FLAGS": ONE_THREAD_XLA} if threads == 1 else {})
