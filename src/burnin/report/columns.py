"""Points of a model's space as rows that a reader knows: the table's own columns, words and units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from burnin.data import EncodedRows, Encoding
from burnin.data.columns import Category
from burnin.evaluation.model import Model

Rows = NDArray[np.float64]
"""(n, columns): a number, or that of a word among its column's levels."""


@dataclass(frozen=True)
class Columns:
    """What the columns are called, and the words of those that hold words.

    Attributes:
        names: of the columns.
        levels: the words of each column, None where it is one of numbers.
        encoding: how they became coordinates, where they did.
    """

    names: tuple[str, ...]
    levels: tuple[tuple[str, ...] | None, ...]
    encoding: Encoding | None = None

    @classmethod
    def of(cls, model: Model) -> Columns:
        """The columns of what a model is one of."""
        if model.rows is None:
            return cls(model.columns, (None,) * len(model.columns))
        encoding = model.rows.encoding
        levels = [column.levels if isinstance(column, Category) else None for column in encoding.modelled]
        return cls(tuple(column.name for column in encoding.modelled), tuple(levels), encoding)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.names)

    @property
    def numeric(self) -> list[int]:
        """Which are columns of numbers."""
        return [index for index, levels in enumerate(self.levels) if levels is None]

    def rows(self, points: Tensor) -> Rows:
        """The rows that points stand for, without those that are not finite or cannot occur."""
        points = points[points.isfinite().all(1)]
        if self.encoding is None:
            return np.asarray(points.double().numpy())
        frame, good = self.encoding.decode(points)
        found = [self._numbers(frame.columns[name], levels) for name, levels in self._named]
        return np.stack(found, axis=1)[good]

    def cells(self, row: NDArray[np.float64]) -> tuple[float | str, ...]:
        """A row as it is read: numbers and words."""
        return tuple(
            float(value) if levels is None else levels[int(value)]
            for value, levels in zip(row, self.levels, strict=True)
        )

    @property
    def _named(self) -> list[tuple[str, tuple[str, ...] | None]]:
        return list(zip(self.names, self.levels, strict=True))

    @staticmethod
    def _numbers(values: NDArray[np.float64], levels: Sequence[str] | None) -> NDArray[np.float64]:
        if levels is None:
            return values
        number = {level: float(index) for index, level in enumerate(levels)}
        return np.array([number[word] for word in values.tolist()])


@dataclass(frozen=True)
class Shown:
    """Rows of data and of samples that a page shows, in the reader's units.

    Attributes:
        columns: what they are.
        data: rows of the data.
        samples: rows that chains from noise ended at.
        numbers: where each row of `data` stood in its table, counted from 1; None where there is no table.
    """

    columns: Columns
    data: Rows
    samples: Rows
    numbers: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls,
        model: Model,
        data: Tensor | EncodedRows,
        samples: Tensor,
        numbers: NDArray[np.int64] | None = None,
    ) -> Shown:
        """The samples of a model, and data: points, or the rows of a table with those held out."""
        columns = Columns.of(model)
        if isinstance(data, EncodedRows):
            return cls(columns, data.all_codes(), columns.rows(samples), data.all_numbers())
        return cls(columns, columns.rows(data), columns.rows(samples), numbers)

    def gaps(self) -> NDArray[np.float64]:
        """For each column the largest difference of the distribution functions of data and samples.

        Example:
            >>> two = Columns(("a", "b"), (None, None))
            >>> data, samples = np.array([[0.0, 1.0], [1.0, 2.0]]), np.array([[0.0, 5.0], [1.0, 6.0]])
            >>> Shown(two, data, samples).gaps().tolist()
            [0.0, 1.0]
        """
        return np.array([_gap(a, b) for a, b in zip(self.data.T, self.samples.T, strict=True)])

    def order(self, gaps: NDArray[np.float64]) -> list[int]:
        """The columns, those in which data and samples differ by more than chance first.

        Chance is the 95th percentile of the largest difference for equal laws, 1.358·sqrt(1/n + 1/m).
        """
        chance = 1.358 * np.sqrt(1 / max(1, len(self.data)) + 1 / max(1, len(self.samples)))
        return [int(i) for i in np.argsort(-np.where(gaps > chance, gaps, 0.0), kind="stable")]


def _gap(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    if not len(one) or not len(other):
        return 1.0
    one, other = np.sort(one), np.sort(other)
    values = np.concatenate([one, other])
    first = np.searchsorted(one, values, side="right") / len(one)
    second = np.searchsorted(other, values, side="right") / len(other)
    return float(np.abs(first - second).max())
