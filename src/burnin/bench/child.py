"""A contestant's own process. It reads JSON lines on stdin and answers each on stdout.

    {"do": "prepare"}          → {"memory": MB, "threads": n}: imports done
    {"do": "run", "steps": n}  → {"seconds": s}; the first one also builds the contestant
    {"do": "end"}              → {"memory": peak MB, "path": which way the steps went}

Anything that goes wrong is answered by {"error": its first line}, and the process ends.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from burnin.bench.cases import Case
from burnin.bench.contestants import Work


class Child:
    """Does what the parent asks for.

    Arguments:
        maker: "module:function" of the contestant.
        requires: packages to import before its memory is read.
        case: what to run.
        threads: how many it may use; None leaves every library its own default.
    """

    def __init__(self, maker: str, requires: list[str], case: Case, threads: int | None) -> None:
        self.module, self.function = maker.split(":")
        self.requires = requires
        self.case = case
        self.threads = threads
        self.work: Work | None = None

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request."""
        if request["do"] == "prepare":
            return self._prepare()
        if request["do"] == "run":
            return {"seconds": self._run(int(request["steps"]))}
        assert self.work is not None
        return {"memory": memory("VmHWM"), "path": self.work.path()}

    def _prepare(self) -> dict[str, Any]:
        import torch

        if self.threads is not None:
            torch.set_num_threads(self.threads)
        for package in self.requires:
            importlib.import_module(package)
        importlib.import_module(self.module)
        return {"memory": memory("VmRSS"), "threads": torch.get_num_threads()}

    def _run(self, steps: int) -> float:
        before = time.perf_counter()
        if self.work is None:
            self.work = getattr(importlib.import_module(self.module), self.function)(self.case)
        assert self.work is not None
        self.work.run(steps)
        return time.perf_counter() - before


def memory(line: str) -> float | None:
    """MB of this process, now (VmRSS) or at most so far (VmHWM); None where Linux does not tell.

    Not getrusage: its ru_maxrss begins with what the parent had when it started this process.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    found = re.search(rf"^{line}:\s+(\d+) kB", status.read_text(encoding="ascii"), re.M)
    return None if found is None else int(found[1]) / 1024


def first_line(error: BaseException) -> str:
    """An error's kind and the first line of what it says.

    Example:
        >>> first_line(ValueError("too much\\nsee the manual"))
        'ValueError: too much'
    """
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__


def private_stdout() -> IO[str]:
    """A file to answer on; what libraries print from now on goes to stderr."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


def main(order: str) -> None:
    """Answers the requests on stdin until it ends or the parent goes away."""
    answers = private_stdout()
    wanted = json.loads(order)
    case = Case(**{**wanted["case"], "shape": tuple(wanted["case"]["shape"])})
    child = Child(wanted["maker"], wanted["requires"], case, wanted["threads"])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = child.answer(request)
        except Exception as error:
            answer = {"error": first_line(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        if "error" in answer or request["do"] == "end":
            return
