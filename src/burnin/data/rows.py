"""The rows of a table as data to learn from: coded, with fresh noise at every draw, some held out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from burnin.core import InputError
from burnin.data.checks import require_at_least
from burnin.data.columns import Category
from burnin.data.encoding import FEWEST, Codes, Encoding
from burnin.data.kept import read_kept

ENCODING_FILE = "encoding.json"
TRIES = 20
"""Splits that are tried, for one in which no column is constant."""


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows of a table. As a density it is the empirical law of their coordinates, with the encoding's noise.

    Arguments:
        encoding: what the columns are.
        codes: the rows, (n, columns of the density).
        held_out: rows that training does not see; what a model is judged on.
        numbers: where each row stood in its table, counted from 1; by default they are all of it, in order.

    Example:
        >>> from burnin.data.frames import Frame
        >>> frame = Frame.of_numbers(np.arange(20.0).reshape(10, 2) ** 2)
        >>> encoding = Encoding.fit(frame)
        >>> rows = EncodedRows.split(encoding, encoding.codes(frame), share=0.2, seed=0)
        >>> len(rows), len(rows.held_out), rows.sample(4, torch.Generator()).shape
        (8, 2, torch.Size([4, 2]))
    """

    encoding: Encoding
    codes: Codes
    held_out: EncodedRows | None = None
    numbers: NDArray[np.int64] | None = None

    @classmethod
    def split(cls, encoding: Encoding, codes: Codes, *, share: float, seed: int) -> EncodedRows:
        """A share of the rows, at least one, drawn by the seed, is held out."""
        n = len(codes)
        if n < FEWEST:
            raise InputError(f"the table has {n} rows; a density needs at least {FEWEST}")
        generator, held = np.random.default_rng(seed), min(n - 2, max(1, round(share * n)))
        for _ in range(TRIES):
            order = generator.permutation(n)
            inside, outside = np.sort(order[held:]), np.sort(order[:held])
            kept = cls(encoding, codes[inside])
            if not kept.constant:
                rest = cls(encoding, codes[outside], numbers=outside + 1)
                return cls(encoding, kept.codes, rest, inside + 1)
        raise InputError(f"too few rows: without those held out, {', '.join(kept.constant)} is constant")

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.encoding.dim

    @property
    def columns(self) -> tuple[str, ...]:
        """A name for each coordinate."""
        return self.encoding.coordinates

    @property
    def constant(self) -> list[str]:
        """Columns of the density that have one value in these rows."""
        same = (self.codes == self.codes[0]).all(0)
        return [c.name for c, constant in zip(self.encoding.modelled, same, strict=True) if constant]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.codes)

    def all_codes(self) -> Codes:
        """The codes of these rows and of those held out."""
        return self.codes if self.held_out is None else np.concatenate([self.codes, self.held_out.codes])

    def all_numbers(self) -> NDArray[np.int64]:
        """Where the rows of `all_codes` stood in the table, counted from 1."""
        own = np.arange(1, len(self) + 1) if self.numbers is None else self.numbers
        return own if self.held_out is None else np.concatenate([own, self.held_out.all_numbers()])

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n rows drawn with replacement, their coordinates with fresh noise, (n, dim)."""
        require_at_least("EncodedRows", 0, n=n)
        picked = torch.randint(len(self), (n,), generator=generator, device=generator.device)
        return self.noised(self.codes[picked.cpu().numpy()], generator).to(generator.device)

    def each(self, generator: torch.Generator) -> Tensor:
        """The coordinates of every row once, with fresh noise."""
        return self.noised(self.codes, generator)

    def noised(self, codes: Codes, generator: torch.Generator) -> Tensor:
        """Coordinates of codes, with noise that stays within the cells of the words."""
        uniform = _uniform(len(codes), self.encoding.num_noisy, generator)
        features = self.encoding.features(codes, uniform)
        out = ~self.encoding.in_cells(codes, features)
        while bool(out.any()):
            again = codes[out.numpy()]
            features[out] = self.encoding.features(
                again, _uniform(len(again), self.encoding.num_noisy, generator)
            )
            out = ~self.encoding.in_cells(codes, features)
        return self.encoding.whiten(features)

    def along_columns(self) -> EncodedRows:
        """The same rows in the coordinates of `Encoding.along_columns`."""
        encoding = self.encoding.along_columns()
        held = None if self.held_out is None else replace(self.held_out, encoding=encoding)
        return replace(self, encoding=encoding, held_out=held)

    def save(self, path: Path) -> None:
        """Writes the codes to `path`, an .npz, and the encoding beside it."""
        self.encoding.save(path.with_name(ENCODING_FILE))
        held = self.codes[:0] if self.held_out is None else self.held_out.codes
        np.savez(path, rows=self.codes, held_out=held, numbers=self.all_numbers())

    @classmethod
    def load(cls, path: Path) -> EncodedRows:
        """Reads what `save` wrote.

        Raises:
            InputError: when a file is missing or damaged.
        """
        encoding = Encoding.load(path.with_name(ENCODING_FILE))
        codes, held, numbers = read_kept(path, "rows", "held_out", "numbers")
        width = len(encoding.modelled)
        if codes.ndim != 2 or codes.shape[1] != width or held.shape[1:] != (width,) or not len(codes):
            raise InputError(f"{path} does not fit {ENCODING_FILE}: it is damaged")
        _require_codes(path, encoding, codes, held)
        if numbers.shape != (len(codes) + len(held),) or numbers.dtype.kind not in "iu":
            raise InputError(f"{path} has numbers for {len(numbers)} rows and other rows: it is damaged")
        rest = cls(encoding, held, numbers=numbers[len(codes) :]) if len(held) else None
        return cls(encoding, codes, rest, numbers[: len(codes)])


def _require_codes(path: Path, encoding: Encoding, *parts: Codes) -> None:
    """Raises InputError unless every code is a finite number, and one of words that of a level."""
    for part in parts:
        good = part.dtype == np.float64 and bool(np.isfinite(part).all())
        for index, column in enumerate(encoding.modelled if good else []):
            if isinstance(column, Category):
                good &= bool(np.isin(part[:, index], np.arange(len(column.levels))).all())
        if not good:
            raise InputError(f"{path} holds what is no code of a row: it is damaged")


def _uniform(n: int, width: int, generator: torch.Generator) -> Tensor:
    """Uniform numbers strictly between 0 and 1."""
    drawn = torch.rand(n, width, generator=generator, dtype=torch.float64, device=generator.device)
    return drawn.cpu().clamp(1e-12, 1 - 1e-12)
