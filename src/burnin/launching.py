"""Starts the processes of a command that several share, and watches over them until they end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from types import FrameType
from typing import IO

from burnin.core import InputError
from burnin.ranks import Ranks
from burnin.training.processes import LostProcessError, join_processes, started_together

LOOK_SECONDS = 0.1
GRACE_SECONDS = 10.0
"""What the others have to end by themselves when one has failed."""
MEETING = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK")


def start_processes(devices: int, nodes: int) -> int | None:
    """Runs this very command in `devices` processes here, on one of `nodes` machines; gives its exit code.

    None where there is nothing to start: one process on one machine, or this is one of several already.

    Raises:
        InputError: when torchrun has started another number, or the other machines cannot be met.
        LostProcessError: when a process was ended from outside.
    """
    if devices < 1 or nodes < 1:
        raise InputError(f"--devices is {devices} and --nodes {nodes}; both must be at least 1")
    if started_together():
        here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        if devices not in (1, here):
            raise InputError(f"--devices is {devices}, but {here} processes were started here; leave it out")
        return None
    if devices * nodes == 1:
        return None
    meeting = _meeting(nodes)
    first = int(meeting["NODE_RANK"]) * devices
    shared = {
        **meeting,
        "GROUP_RANK": meeting["NODE_RANK"],
        "WORLD_SIZE": str(devices * nodes),
        "LOCAL_WORLD_SIZE": str(devices),
    }
    workers = [
        Worker.start(first + local, {**shared, "RANK": str(first + local), "LOCAL_RANK": str(local)})
        for local in range(devices)
    ]
    try:
        return _watch(workers)
    finally:
        for worker in workers:
            if worker.said is not None:
                worker.said.close()


def take_part(devices: int, nodes: int, strategy: str = "ddp") -> Ranks:
    """The processes that share this command; where they are to be started, the program ends with them."""
    code = start_processes(devices, nodes)
    if code is not None:
        sys.exit(code)
    return join_processes(strategy)


def _meeting(nodes: int) -> dict[str, str]:
    """Where the processes meet, and which of the machines this is."""
    if nodes > 1:
        if missing := [name for name in MEETING if name not in os.environ]:
            raise InputError(
                f"--nodes is {nodes}, but {missing[0]} is not set: run the command on each machine with "
                "MASTER_ADDR and MASTER_PORT of the first and NODE_RANK 0, 1, …; or use torchrun"
            )
        return {name: os.environ[name] for name in MEETING}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "NODE_RANK": "0"}


@dataclass(frozen=True)
class Worker:
    """One process; the first speaks for all, and what another says is kept in case that it fails alone."""

    rank: int
    process: subprocess.Popen[bytes]
    said: IO[bytes] | None

    @classmethod
    def start(cls, rank: int, variables: dict[str, str]) -> Worker:
        """This command again, as one of several."""
        said = None if rank == 0 else tempfile.TemporaryFile()  # noqa: SIM115  (closed when all have ended)
        process = subprocess.Popen(
            [sys.executable, "-m", "burnin.cli", *sys.argv[1:]],
            env={**os.environ, **variables},
            stdout=None if rank == 0 else subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,  # Ctrl-C is passed on once, not twice
        )
        return cls(rank, process, said)

    def last_line(self) -> str:
        """The last line that it has said."""
        if self.said is None:
            return ""
        self.said.seek(0)
        lines = [line for line in self.said.read().decode(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else ""


def _watch(workers: list[Worker]) -> int:
    """Waits for all; when one fails, the others get a moment to notice, and are ended then."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        for worker in workers:
            if worker.process.poll() is None:
                worker.process.send_signal(number)

    kept = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        while all(worker.process.poll() in (None, 0) for worker in workers):
            if all(worker.process.poll() == 0 for worker in workers):
                return 0
            time.sleep(LOOK_SECONDS)
        failed = next(worker for worker in workers if worker.process.poll() not in (None, 0))
        deadline = time.monotonic() + GRACE_SECONDS
        while any(worker.process.poll() is None for worker in workers) and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
    finally:
        for number, old in kept.items():
            signal.signal(number, old)
        for worker in workers:
            if worker.process.poll() is None:
                worker.process.kill()
            worker.process.wait()
    return _verdict(workers, failed)


def _verdict(workers: list[Worker], failed: Worker) -> int:
    """The exit code; the first process has said why, unless it could not, or another knows better."""
    first, code = workers[0], failed.process.returncode
    if first.rank == 0 and first.process.returncode < 0:
        raise LostProcessError(
            f"process 0 of {len(workers)} was ended by signal {-first.process.returncode}; the last "
            "checkpoint is whole: go on with --resume"
        )
    if failed is not first and code > 0 and code != LostProcessError.exit_code and failed.last_line():
        print(failed.last_line(), file=sys.stderr)
    if first.rank == 0 and first.process.returncode == 0 and code < 0:
        # The first writes everything, and can only after all have done their share.
        print(f"process {failed.rank} was ended by signal {-code} after the work was done", file=sys.stderr)
        return 0
    return first.process.returncode or (code if code > 0 else LostProcessError.exit_code)
