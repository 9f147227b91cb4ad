"""Missing cells of a table, filled by the conditional law of a fitted density."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from burnin.core import InputError
from burnin.data import Encoding, Frame
from burnin.data.columns import Bounds, Category, Constant, Numeric, Repeated
from burnin.data.encoding import Codes
from burnin.data.frames import NAMED_ROWS, gaps_in, is_numeric
from burnin.data.whitening import MOST_WHITENED, corners_of
from burnin.evaluation.conditional import Completed, Effort, NoStartError, complete
from burnin.evaluation.gaps import Gaps, Guide, Words
from burnin.fitted import FittedTable

FOR_MEAN = 4
"""Chains of each row whose mean is wanted."""
DIGITS = 10
Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Imputed:
    """A table without gaps, once or several times.

    Attributes:
        frames: the completed tables: the columns that were given, then those that were lacking.
        cells: how many cells of each column were filled.
        rows: how many rows had gaps.
        acceptance: of the chains' steps; NaN where there was nothing to fill.
        leapt: share of the leaps between modes that were taken; NaN where there were none.
        notes: what else was done, a sentence each.
    """

    frames: tuple[Frame, ...]
    cells: Mapping[str, int]
    rows: int
    acceptance: float
    leapt: float
    notes: tuple[str, ...]


def impute(
    fitted: FittedTable,
    frame: Frame,
    *,
    generator: torch.Generator,
    draws: int = 1,
    mean: bool = False,
    bounds: Bounds | None = None,
    effort: Effort | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Imputed:
    """Fills the gaps of rows with draws from p(missing | known), by Metropolis-adjusted chains.

    What is known stays as it is: a continuous value to the bit, a whole number or a word as the cell of
    coordinates that it stands for. Columns that the table lacks are filled in every row; constants and
    repetitions by what they are. Other columns are passed on.

    Arguments:
        fitted: the density.
        frame: the rows.
        generator: of the chains.
        draws: how many completed tables, each of independent chains.
        mean: whether to fill in the conditional mean and the most probable word, instead of a draw.
        bounds: of what is filled in, for some columns, within those of the density.
        effort: how long chains are.
        progress: told how much is done, and of how much.

    Raises:
        InputError: naming rows whose known values cannot occur.
    """
    if draws < 1 or (mean and draws > 1):
        raise InputError(f"draws is {draws}; it must be at least 1, and 1 for a mean")
    encoding = fitted.encoding
    whole, notes = _whole(encoding, frame)
    missing = {name: gaps_in(values) for name, values in whole.items()}
    modelled = [column.name for column in encoding.modelled]
    table = np.stack([missing[name] for name in modelled], axis=1)
    rows = np.flatnonzero(table.any(1))
    limits = _limits(encoding, bounds or {})
    chains = FOR_MEAN if mean else draws
    parts: list[Frame | None] = [None] * draws
    acceptance = leapt = math.nan
    if len(rows):
        codes = encoding.codes(Frame(whole), fill=True)[rows]
        _require_possible(encoding, codes, table[rows], whole, rows)
        gaps = _gaps_of(encoding, codes, table[rows], limits)
        repeated = gaps.rows(torch.arange(len(rows)).repeat(chains))
        try:
            done = complete(
                *_energy_of(fitted),
                repeated,
                _guide(fitted),
                generator=generator,
                effort=effort,
                progress=progress,
            )
        except NoStartError as error:
            raise NoStartError(int(rows[error.row % len(rows)])) from None
        acceptance, leapt = done.acceptance, done.leapt
        found = [_mean(encoding, done, chains)] if mean else list(done.last.chunk(chains))
        parts = [encoding.decode_features(features)[0] for features in found]
    frames = [_fill(encoding, whole, missing, rows, part, limits) for part in parts]
    filled = [column.name for column in encoding.columns if missing[column.name].any()]
    return Imputed(
        frames=tuple(Frame(columns) for columns in frames),
        cells={name: int(missing[name].sum()) for name in filled},
        rows=int(np.any([missing[name] for name in filled], axis=0).sum()) if filled else 0,
        acceptance=acceptance,
        leapt=leapt,
        notes=tuple(notes),
    )


def _whole(encoding: Encoding, frame: Frame) -> tuple[Columns, list[str]]:
    """The columns with those that are lacking added, and twins told what the other knows."""
    columns, notes = dict(frame.columns), []
    lacking = [column.name for column in encoding.columns if column.name not in columns]
    if len(lacking) == len(encoding.columns):
        raise InputError(f"the table has none of the density's columns: {', '.join(lacking)}")
    if lacking:
        notes.append(f"not in the table, filled in every row: {', '.join(lacking)}")
    for column in encoding.columns:
        if column.name in lacking or gaps_in(columns[column.name]).all():
            words = isinstance(column, Category) or (
                isinstance(column, Constant) and isinstance(column.value, str)
            )
            columns[column.name] = np.full(len(frame), None if words else np.nan, object if words else float)
    for column in encoding.columns:
        if isinstance(column, Repeated):
            own, other = columns[column.name], columns[column.of]
            if not is_numeric(other) and is_numeric(own):
                columns[column.name] = own = np.full(len(frame), None, dtype=object)
            columns[column.of] = np.where(gaps_in(other), own, other)
    passed = [name for name in frame.names if name not in {column.name for column in encoding.columns}]
    left = [name for name in passed if gaps_in(columns[name]).any()]
    if left:
        notes.append(f"not in the density, gaps left as they are: {', '.join(left)}")
    return columns, notes


def _limits(encoding: Encoding, bounds: Bounds) -> dict[str, tuple[float, float]]:
    """The lowest and the highest value that may be filled into each column of numbers."""
    numeric = {column.name: column for column in encoding.modelled if isinstance(column, Numeric)}
    unknown = sorted(set(bounds) - set(numeric))
    if unknown:
        raise InputError(f"bounds for {', '.join(unknown)}; columns of numbers are: {', '.join(numeric)}")
    limits = {}
    for name, column in numeric.items():
        lows, highs = zip((column.low, column.high), bounds.get(name, (None, None)), strict=True)
        low = max((end for end in lows if end is not None), default=-math.inf)
        high = min((end for end in highs if end is not None), default=math.inf)
        if column.decimals is not None:  # to the steps within, but for rounding
            low = math.ceil(low / column.step - 1e-9) * column.step if math.isfinite(low) else low
            high = math.floor(high / column.step + 1e-9) * column.step if math.isfinite(high) else high
        if low > high or (low == high and column.decimals is None):
            raise InputError(f"bounds of {name}: no value lies between {lows} and {highs}")
        limits[name] = (low, high)
    return limits


def _require_possible(
    encoding: Encoding,
    codes: Codes,
    missing: NDArray[np.bool_],
    whole: Columns,
    rows: NDArray[np.int64],
) -> None:
    """Raises InputError when what is known of a row with gaps cannot occur."""
    # What fills a gap for the moment, the column's typical value, can.
    good = encoding.supported(np.where(missing & np.isnan(codes), 0.0, codes))
    for column in encoding.columns:
        if isinstance(column, Constant):
            values = whole[column.name][rows]
            good &= gaps_in(values) | np.array([v == column.value for v in values.tolist()], dtype=bool)
    if not good.all():
        bad = rows[~good]
        named = ", ".join(str(row + 1) for row in bad[:NAMED_ROWS]) + (", …" if len(bad) > NAMED_ROWS else "")
        raise InputError(
            f"row {named}: what is known cannot occur (a word never seen, a value beyond a bound, another "
            "value in a constant column), so nothing follows from it; correct it, or leave the row out"
        )


def _gaps_of(
    encoding: Encoding, codes: Codes, missing: NDArray[np.bool_], limits: Mapping[str, tuple[float, float]]
) -> Gaps:
    """What the rows' codes say of their coordinates before whitening."""
    value = encoding.features(codes)
    free = torch.zeros_like(value, dtype=torch.bool)
    low, high = torch.full_like(value, -math.inf), torch.full_like(value, math.inf)
    words: list[Words] = []
    first = 0
    for index, column in enumerate(encoding.modelled):
        gone = torch.from_numpy(np.ascontiguousarray(missing[:, index]))
        if isinstance(column, Category):
            level = torch.from_numpy(codes[:, index]).nan_to_num(0).long()
            words.append(Words(first, corners_of(len(column.levels)), level.masked_fill(gone, -1)))
            free[:, words[-1].place] = True
            first += len(column.levels) - 1
            continue
        lowest, highest = limits[column.name]
        known, half = value[:, first], column.cell / 2
        free[:, first] = gone | (half > 0)
        low[:, first] = torch.where(gone, lowest - column.step / 2, known - half)
        high[:, first] = torch.where(gone, highest + column.step / 2, known + half)
        first += 1
    return Gaps(value, free, low, high, tuple(words))


def _energy_of(fitted: FittedTable) -> tuple[Callable[[Tensor], Tensor], float]:
    """E of coordinates before whitening, in double precision, and T."""
    exact = copy.deepcopy(fitted.model.energy).double().eval()
    mean, matrix = fitted.encoding.affine
    return lambda features: exact((features - mean) @ matrix), fitted.model.temperature


def _guide(fitted: FittedTable) -> Guide:
    """The Gaussian with the moments of the base."""
    assert fitted.model.base is not None
    mean, covariance = fitted.model.base.moments
    offset, matrix = fitted.encoding.affine
    centre = offset + mean @ torch.linalg.inv(matrix)
    if fitted.encoding.dim > MOST_WHITENED:
        return Guide(centre, matrix.diagonal().square() / covariance.diagonal())
    return Guide(centre, matrix @ torch.linalg.inv(covariance) @ matrix.T)


def _mean(encoding: Encoding, done: Completed, chains: int) -> Tensor:
    """Each row's mean coordinates, and the corner of its most frequent word."""
    kept = done.kept.reshape(len(done.kept) * chains, -1, encoding.dim)
    found: Tensor = kept.mean(0)
    first = 0
    for column in encoding.modelled:
        if isinstance(column, Category):
            corners = corners_of(len(column.levels))
            place = slice(first, first + corners.shape[1])
            levels = (kept[:, :, place] @ corners.T).argmax(2)
            found[:, place] = corners[levels.mode(0).values]
        first += 1 if isinstance(column, Numeric) else len(column.levels) - 1
    return found


def _fill(
    encoding: Encoding,
    whole: Columns,
    missing: Mapping[str, NDArray[np.bool_]],
    rows: NDArray[np.int64],
    part: Frame | None,
    limits: Mapping[str, tuple[float, float]],
) -> Columns:
    """The columns with what was found in the place of gaps."""
    columns = {name: values.copy() for name, values in whole.items()}
    for column in encoding.modelled:
        gone = missing[column.name]
        if part is not None and gone.any():
            found = part.columns[column.name][gone[rows]]
            if isinstance(column, Numeric):
                if column.decimals is None:
                    found = np.array([float(f"{value:.{DIGITS}g}") for value in found.tolist()])
                found = np.clip(found, *limits[column.name])
            columns[column.name][gone] = found
    for one in encoding.columns:
        if isinstance(one, Constant):
            columns[one.name][missing[one.name]] = one.value
        elif isinstance(one, Repeated):
            gone = missing[one.name]
            columns[one.name][gone] = columns[one.of][gone]
    return columns
