"""Samples of a trained model to a file, in blocks of chains: memory does not grow with their number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from burnin.core import InputError, Outcome
from burnin.evaluation import chains
from burnin.evaluation.model import Model
from burnin.samplers import RowFile, ToDisk

BLOCK_CHAINS = 10_000
Report = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Request:
    """What to draw, and where to.

    Attributes:
        number: how many samples.
        output: a .npy or .csv file.
        steps: further steps after the chain's own number.
        keep: a .npy file for the chains' positions along the further steps; None for none.
        keep_every: how many steps between two kept positions.
        block: chains at a time.
        force: whether files may be written over.
    """

    number: int
    output: Path
    steps: int = 0
    keep: Path | None = None
    keep_every: int = 100
    block: int = BLOCK_CHAINS
    force: bool = False

    def __post_init__(self) -> None:
        if self.number < 1 or self.steps < 0:
            raise InputError(f"-n is {self.number} and --steps {self.steps}; they must be at least 1 and 0")
        if self.output.suffix not in (".npy", ".csv"):
            raise InputError(f"the output {self.output} must end in .npy or .csv")
        if self.block < 1 or self.keep_every < 1:
            raise InputError("--block and --keep-every must be at least 1")
        if self.keep is not None:
            if self.keep.suffix != ".npy":
                raise InputError(f"the chains' file {self.keep} must end in .npy")
            if self.steps < self.keep_every:
                raise InputError(
                    f"--keep writes every {self.keep_every} of the further steps, of which there are "
                    f"{self.steps}; raise --steps"
                )
            if self.number > self.block:
                raise InputError(
                    f"--keep follows one block of chains, but -n is {self.number} and --block {self.block}; "
                    "raise --block"
                )
        for file in (self.output, self.keep):
            if file is not None and not file.parent.is_dir():
                raise InputError(
                    f"there is no folder {file.parent} for the output {file.name}; make it first"
                )
            if file is not None and file.exists() and not self.force:
                raise InputError(f"{file} exists; choose another name, or add --force to write over it")


def draw(model: Model, request: Request, generator: torch.Generator, report: Report) -> Outcome:
    """Draws what is asked for; what is done when it is interrupted is in the file."""
    length = model.own.num_steps
    total = -(-request.number // request.block) * (length + request.steps)
    done, outcome = 0, Outcome.OK
    with _writer(request, model.columns) as write:
        for first in range(0, request.number, request.block):
            n, before = min(request.block, request.number - first), done

            def progress(steps: int, *_: object, before: int = before) -> None:
                report("chains", before + steps, total)

            sampled = chains.from_noise(model, n, generator, progress=progress)
            done += length
            if request.steps:
                sampled = _go_on(model, sampled, request, generator, report, done, total)
                done += request.steps
            write.append(sampled.position)
            outcome = outcome if sampled.result.outcome is Outcome.OK else sampled.result.outcome
    return outcome


def _go_on(
    model: Model,
    sampled: chains.Sampled,
    request: Request,
    generator: torch.Generator,
    report: Report,
    done: int,
    total: int,
) -> chains.Sampled:
    def progress(steps: int, *_: object) -> None:
        report("further", done + steps, total)

    if request.keep is None:
        return chains.go_on(model, sampled, request.steps, generator, progress=progress)
    with ToDisk(request.keep, force=request.force) as keep:
        return chains.go_on(
            model,
            sampled,
            request.steps,
            generator,
            keep_every=request.keep_every,
            keep=keep,
            progress=progress,
        )


class CsvFile:
    """A .csv file that grows by rows."""

    def __init__(self, path: Path, columns: tuple[str, ...]) -> None:
        self._file = path.open("w", encoding="utf-8")
        self._file.write(",".join(columns) + "\n")

    def append(self, rows: torch.Tensor) -> None:
        """Adds rows, (k, dim)."""
        np.savetxt(self._file, rows.numpy(), delimiter=",", fmt="%.9g")

    def __enter__(self) -> CsvFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _writer(request: Request, columns: tuple[str, ...]) -> RowFile | CsvFile:
    if request.output.suffix == ".csv":
        return CsvFile(request.output, columns)
    return RowFile(request.output, force=request.force)
