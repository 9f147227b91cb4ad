"""Samples of a trained model to a file, in blocks of chains: memory does not grow with their number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from burnin.core import InputError, Outcome, Report
from burnin.data import Encoding, Frame, Pictures
from burnin.data.folders import write_grid, write_pictures
from burnin.data.writing import FrameFile
from burnin.evaluation import chains
from burnin.evaluation.model import Model
from burnin.samplers import RowFile, ToDisk

Accept = Callable[[Tensor, torch.Generator], Tensor]
"""Which of some positions are kept, (n,) of truths."""
BLOCK_CHAINS, FEWEST_CHAINS = 10_000, 128
FEW_ACCEPTED = 15
"""Times as many chains as are wanted of a class."""
MOST_EMPTY = 20


@dataclass(frozen=True)
class Request:
    """What to draw, and where to.

    Attributes:
        number: how many samples.
        output: a .npy or .csv file; of a fitted table, .parquet too; of pictures, a .png for all of them in
            a grid, or a folder for a .png of each.
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
        if self.output.suffix not in (".npy", ".csv", ".parquet", ".png", ""):
            raise InputError(
                f"the output {self.output} must end in .npy, .csv or .parquet; of pictures, in .png, or be a "
                "folder's name, without an ending"
            )
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


def draw(
    model: Model,
    request: Request,
    generator: torch.Generator,
    report: Report,
    encoding: Encoding | None = None,
    accept: Accept | None = None,
) -> Outcome:
    """Draws what is asked for; what is done when it is interrupted is in the file.

    Where several processes share the model's chains, all of them call this, and the first writes.

    Arguments:
        model: where samples come from.
        request: what is asked for.
        generator: of the chains.
        report: told how far it is.
        encoding: what the columns of a table are, where the model has none of its rows.
        accept: which of the chains' ends are kept, such as those of a class; None for all.
    """
    if accept is not None and request.keep is not None:
        raise InputError("--keep follows all chains, and a class is of some: leave out one of them")
    ranks = model.ranks
    if ranks.size > 1 and request.keep is not None:
        raise InputError("--keep follows the chains of one process; take --devices 1")
    encoding = model.rows.encoding if encoding is None and model.rows is not None else encoding
    length = model.own.num_steps
    total = -(-request.number // request.block) * (length + request.steps)
    done, outcome, written, empty = 0, Outcome.OK, 0, 0
    with _writer(request, model, encoding) if ranks.rank == 0 else Nothing() as write:
        while written < request.number:
            left, before = request.number - written, done
            n = min(request.block, left)
            if accept is not None:
                n = min(request.block, FEW_ACCEPTED * left)
            if encoding is not None:
                n = max(n, FEWEST_CHAINS)  # annealed chains are resampled among each other
            n = max(n, ranks.size)

            def progress(steps: int, *_: object, before: int = before) -> None:
                report("chains", min(before + steps, total), total)

            sampled = chains.from_noise(model, n, generator, progress=progress)
            done += length
            if request.steps:
                sampled = _go_on(model, sampled, request, generator, report, done, total)
                done += request.steps
            position = ranks.gather(sampled.position, n)
            if encoding is not None:  # in any order: annealed chains of one ancestor end side by side
                position = position[torch.randperm(n, generator=generator)][:left]
            if accept is not None:
                position = position[accept(position, generator)][:left]
            position = position[:left]
            more = write.append(position) if len(position) else 0
            more = int(ranks.first(torch.tensor(more)))
            written, empty = written + more, 0 if more else empty + 1
            if empty == MOST_EMPTY:
                raise InputError(
                    "no sample lies within the bounds of the columns; loosen them"
                    if accept is None
                    else "no chain ends in this class; train longer, or run chains of ClassEnergy (docs/jem)"
                )
            stopped = ranks.any(sampled.result.outcome is not Outcome.OK)
            outcome = Outcome.NON_FINITE if stopped else outcome
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

    def append(self, rows: torch.Tensor) -> int:
        """Adds rows, (k, dim), and says how many."""
        np.savetxt(self._file, rows.numpy(), delimiter=",", fmt="%.9g")
        return len(rows)

    def __enter__(self) -> CsvFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


class Nothing:
    """What the processes write that only help."""

    def append(self, rows: torch.Tensor) -> int:
        """Drops rows."""
        return 0

    def __enter__(self) -> Nothing:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class TableFile:
    """A .csv, .parquet or .npy file of rows as in the table that a model was fitted to."""

    def __init__(self, path: Path, encoding: Encoding) -> None:
        self._encoding = encoding
        self._file = FrameFile(path, [column.name for column in encoding.columns])

    def append(self, rows: torch.Tensor) -> int:
        """Adds the rows that coordinates stand for, less those beyond a bound, and says how many."""
        frame, good = self._encoding.decode(rows)
        if good.any():
            self._file.append(Frame({name: values[good] for name, values in frame.columns.items()}))
        return int(good.sum())

    def __enter__(self) -> TableFile:
        self._file.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._file.__exit__(*error)


class PictureFiles:
    """A folder of .png files, or one .png with all pictures in a grid."""

    def __init__(self, path: Path, pictures: Pictures) -> None:
        self._path, self._pictures = path, pictures
        self._parts: list[torch.Tensor] = []
        self._written = 0
        if not path.suffix:
            path.mkdir(exist_ok=True)

    def append(self, rows: torch.Tensor) -> int:
        """Adds the pictures that rows stand for, and says how many."""
        brightness = self._pictures.brightness(rows)
        if self._path.suffix:
            self._parts.append(brightness)
        else:
            write_pictures(self._path, brightness, self._written)
        self._written += len(rows)
        return len(rows)

    def __enter__(self) -> PictureFiles:
        return self

    def __exit__(self, *_: object) -> None:
        if self._parts:
            write_grid(self._path, torch.cat(self._parts))


def _writer(
    request: Request, model: Model, encoding: Encoding | None
) -> RowFile | CsvFile | TableFile | PictureFiles:
    if request.output.suffix in (".png", ""):
        if model.pictures is None:
            raise InputError(f"{request.output}: only pictures are drawn so; write .npy or .csv")
        return PictureFiles(request.output, model.pictures)
    if encoding is not None:
        return TableFile(request.output, encoding)
    if request.output.suffix == ".parquet":
        raise InputError(f"{request.output}: only a fitted table is drawn to .parquet; write .npy or .csv")
    if request.output.suffix == ".csv":
        return CsvFile(request.output, model.columns)
    return RowFile(request.output, force=request.force)
