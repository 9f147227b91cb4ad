"""From a table's columns to coordinates in which a density can be learned, and back.

A number becomes one coordinate: with a step, as integers have one, uniform noise over its cell is added
(dequantisation), so that the density integrated over the cell is the value's probability; on the way back
it is rounded. A word of K levels becomes K - 1 coordinates: a corner of the regular simplex, on which no
level is nearer to one than to another (one-hot less the direction in which nothing varies), with unit
Gaussian noise kept to the corner's cell; on the way back the nearest corner counts. Corners are five standard
deviations apart: the noise hardly leaves a cell, and chains still cross, over 2.4 nats. At last all
coordinates are whitened by the symmetric root of the correlation (shrunk after Ledoit and Wolf), of all
whitenings the one that stays nearest to the columns themselves.
"""

from __future__ import annotations

import math
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor

from burnin.core import InputError
from burnin.data.columns import Bounds, Category, Column, Constant, Numeric, Repeated, infer_columns
from burnin.data.frames import MOST_SHOWN, Frame, is_numeric
from burnin.data.whitening import corners_of, whitening_of
from burnin.limits import GROWTH, brief, read_within, require_room

FORMAT = "burnin-encoding-1"
FEWEST = 5
"""Rows that a density needs at least."""
MATRICES = 8
"""Of all coordinates by all that a fit holds at once, Python's own lists of them included."""
Codes = NDArray[np.float64]


class Encoding(BaseModel):
    """What a table's columns are, and the whitening z = (f - mean) · matrix of their coordinates f.

    A row's code is a number for each column of the density: the value, or the number of the level, NaN for a
    word that was never seen.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    format: str = FORMAT
    columns: tuple[Column, ...]
    mean: tuple[float, ...]
    matrix: tuple[tuple[float, ...], ...]

    @classmethod
    def fit(
        cls,
        frame: Frame,
        *,
        dequantise: bool = True,
        bounds: Bounds | None = None,
        find_bounds: bool = False,
    ) -> Encoding:
        """The encoding of a frame without gaps; for the arguments see `infer_columns`."""
        frame.require_values()
        frame.require_no_gaps()
        if len(frame) < FEWEST:
            raise InputError(f"the table has {len(frame)} rows; a density needs at least {FEWEST}")
        columns = tuple(infer_columns(frame, dequantise=dequantise, bounds=bounds, find_bounds=find_bounds))
        bare = cls(columns=columns, mean=(), matrix=())
        require_room(MATRICES * 8 * bare.dim**2, f"a density of {bare.dim} coordinates")
        centres = bare.features(bare.codes(frame)).numpy()
        mean, matrix = whitening_of(centres, np.array(bare._noise_variance()))
        return cls(columns=columns, mean=tuple(mean.tolist()), matrix=tuple(map(tuple, matrix.tolist())))

    @property
    def modelled(self) -> list[Numeric | Category]:
        """The columns that the density is one of."""
        return [column for column in self.columns if isinstance(column, Numeric | Category)]

    def describe(self) -> list[str]:
        """The columns in words, those of one kind together."""
        kinds: dict[str, list[str]] = {}
        for column in self.columns:
            kinds.setdefault(column.describe(), []).append(column.name)
        return [f"{', '.join(names)}: {words}" for words, names in kinds.items()]

    @property
    def coordinates(self) -> tuple[str, ...]:
        """A name for each coordinate: the column's, for a word with a number behind."""
        names: list[str] = []
        for column in self.modelled:
            if isinstance(column, Numeric):
                names.append(column.name)
            else:
                names += [f"{column.name}#{index}" for index in range(1, len(column.levels))]
        return tuple(names)

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.coordinates)

    @property
    def bounded(self) -> bool:
        """Whether some column has bounds."""
        return any(isinstance(c, Numeric) and (c.low, c.high) != (None, None) for c in self.columns)

    @property
    def num_noisy(self) -> int:
        """How many coordinates are noised."""
        return sum(variance > 0 for variance in self._noise_variance())

    def codes(self, frame: Frame, *, fill: bool = False) -> Codes:
        """The rows' codes, (n, columns of the density); other columns of the frame do not count.

        Arguments:
            frame: has every column of the density, in any order.
            fill: whether gaps are filled with the column's median or most frequent word.
        """
        missing = [column.name for column in self.modelled if column.name not in frame.columns]
        if missing:
            raise InputError(f"the table lacks the column {', '.join(missing)}")
        if not fill:
            Frame({column.name: frame.columns[column.name] for column in self.modelled}).require_no_gaps()
        codes = np.empty((len(frame), len(self.modelled)))
        for index, column in enumerate(self.modelled):
            values = frame.columns[column.name]
            if isinstance(column, Numeric):
                if not is_numeric(values):
                    word = next(value for value in values.tolist() if value is not None)
                    raise InputError(f"column {column.name} holds words ({word!r}); wanted numbers")
                codes[:, index] = np.where(np.isnan(values), column.typical, values)
            else:
                number = {level: float(place) for place, level in enumerate(column.levels)}
                texts = values.tolist() if not is_numeric(values) else [f"{v:.10g}" for v in values.tolist()]
                codes[:, index] = [number.get(column.typical if t is None else t, math.nan) for t in texts]
        return codes

    def supported(self, codes: Codes, frame: Frame | None = None) -> NDArray[np.bool_]:
        """Which rows can occur at all: known words, within bounds, the constants as they were."""
        good = ~np.isnan(codes).any(1)
        for index, column in enumerate(self.modelled):
            if isinstance(column, Numeric):
                good &= ~(codes[:, index] < (-math.inf if column.low is None else column.low))
                good &= ~(codes[:, index] > (math.inf if column.high is None else column.high))
        for one in self.columns:
            if frame is not None and isinstance(one, Constant) and one.name in frame.columns:
                good &= np.array([v == one.value for v in frame.columns[one.name].tolist()], dtype=bool)
        return np.asarray(good)

    def features(self, codes: Codes, uniform: Tensor | None = None) -> Tensor:
        """The coordinates before whitening, (n, dim), with noise made of `uniform` numbers in (0, 1).

        Arguments:
            codes: the rows.
            uniform: one for each noised coordinate, (n, num_noisy); None for no noise.
        """
        parts, used = [], 0
        given = torch.from_numpy(np.ascontiguousarray(codes))
        for index, column in enumerate(self.modelled):
            code = given[:, index]
            if isinstance(column, Numeric):
                part = code[:, None]
                if uniform is not None and column.cell > 0:
                    part = part + column.cell * (uniform[:, used : used + 1] - 0.5)
                    used += 1
            else:
                corners = corners_of(len(column.levels))
                part = corners[code.nan_to_num(0).long()]
                if uniform is not None:
                    size = corners.shape[1]
                    part = part + torch.special.ndtri(uniform[:, used : used + size])
                    used += size
            parts.append(part)
        return torch.cat(parts, 1)

    def in_cells(self, codes: Codes, features: Tensor) -> Tensor:
        """Which coordinates decode to the words of their codes, (n,)."""
        good = torch.ones(len(features), dtype=torch.bool)
        first = 0
        for index, column in enumerate(self.modelled):
            size = 1 if isinstance(column, Numeric) else len(column.levels) - 1
            if isinstance(column, Category):
                near = (features[:, first : first + size] @ corners_of(size + 1).T).argmax(1)
                good &= near == torch.from_numpy(codes[:, index]).nan_to_num(-1).long()
            first += size
        return good

    def log_noise(self, uniform: Tensor) -> Tensor:
        """log-density of the Gaussian noise that `features` makes of `uniform`, (n,).

        That of a step's uniform noise is left out: with it, a value's probability would come out instead of
        its density, probability over step, which is the same for integers.
        """
        gaussian = [words for size, words in self._noised() for _ in range(size)]
        z = torch.special.ndtri(uniform[:, torch.tensor(gaussian, dtype=torch.bool)])
        log_noise: Tensor = (-0.5 * z.square() - 0.5 * math.log(2 * math.pi)).sum(1)
        return log_noise

    def along_columns(self) -> Encoding:
        """The encoding whose coordinates have their scales taken out, but not their correlations.

        The whitening's inverse has the covariance, whose diagonal holds the variances as they were.
        """
        scales = self._tensors[2].square().sum(0).sqrt()
        matrix = tuple(map(tuple, (1 / scales).diag().tolist()))
        return Encoding(columns=self.columns, mean=self.mean, matrix=matrix)

    @property
    def affine(self) -> tuple[Tensor, Tensor]:
        """Mean and matrix of the whitening z = (f - mean) · matrix, in double precision."""
        return self._tensors[:2]

    def whiten(self, features: Tensor) -> Tensor:
        """z of features, (n, dim), in torch's default precision."""
        mean, matrix = self.affine
        return ((features.double() - mean) @ matrix).to(torch.get_default_dtype())

    def decode(self, z: Tensor) -> tuple[Frame, NDArray[np.bool_]]:
        """The rows that coordinates stand for, all columns as in the table, and which of them can occur."""
        mean, _, inverse = self._tensors
        return self.decode_features(z.detach().double() @ inverse + mean)

    def decode_features(self, features: Tensor) -> tuple[Frame, NDArray[np.bool_]]:
        """`decode` of coordinates before whitening."""
        columns: dict[str, NDArray[np.float64] | NDArray[np.object_]] = {}
        codes, first = np.empty((len(features), len(self.modelled))), 0
        for index, column in enumerate(self.modelled):
            if isinstance(column, Numeric):
                values = features[:, first].numpy().copy()
                values = values if column.decimals is None else np.round(values, column.decimals) + 0.0
                columns[column.name] = codes[:, index] = values
                first += 1
            else:
                corners = corners_of(len(column.levels))
                near = (features[:, first : first + corners.shape[1]] @ corners.T).argmax(1).numpy()
                columns[column.name], codes[:, index] = np.array(column.levels, dtype=object)[near], near
                first += corners.shape[1]
        whole: dict[str, NDArray[np.float64] | NDArray[np.object_]] = {}
        for one in self.columns:
            if isinstance(one, Constant):
                words = isinstance(one.value, str)
                whole[one.name] = np.full(len(features), one.value, dtype=object if words else np.float64)
            elif isinstance(one, Numeric | Category):
                whole[one.name] = columns[one.name]
            else:
                whole[one.name] = whole[one.of]
        return Frame(whole), self.supported(codes)

    @cached_property
    def log_volume(self) -> float:
        """log |det| of the whitening: what a density of z is to be multiplied with to be one of features."""
        return float(torch.linalg.slogdet(self._tensors[1]).logabsdet)

    @property
    def _inverse_or_nan(self) -> Tensor:
        found = torch.linalg.inv_ex(torch.tensor(self.matrix, dtype=torch.float64))
        inverse: Tensor = found.inverse
        return inverse if int(found.info) == 0 else inverse * math.nan

    @cached_property
    def _tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        matrix = torch.tensor(self.matrix, dtype=torch.float64)
        return torch.tensor(self.mean, dtype=torch.float64), matrix, torch.linalg.inv(matrix)

    def _noised(self) -> list[tuple[int, bool]]:
        """For each noised column, how many coordinates, and whether the noise is Gaussian."""
        return [
            (1, False) if isinstance(column, Numeric) else (len(column.levels) - 1, True)
            for column in self.modelled
            if isinstance(column, Category) or column.cell > 0
        ]

    def _noise_variance(self) -> list[float]:
        return [
            variance
            for column in self.modelled
            for variance in (
                [column.cell**2 / 12] if isinstance(column, Numeric) else [1.0] * (len(column.levels) - 1)
            )
        ]

    def save(self, path: Path) -> None:
        """Writes it as JSON."""
        path.write_text(self.model_dump_json(indent=1), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Encoding:
        """Reads what `save` wrote.

        Raises:
            InputError: when the file is missing, damaged or not an encoding.
        """
        try:
            encoding = cls.model_validate_json(read_within(path, growth=GROWTH))
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror or error})") from error
        except ValidationError as error:
            raise InputError(f"{path} is damaged: {brief(error.errors()[0]['msg'])}") from error
        encoding.require_whole(str(path))
        return encoding

    def require_whole(self, where: str) -> None:
        """Raises InputError unless its parts fit each other, as those of a fitted encoding do."""
        if self.format != FORMAT or len(self.mean) != self.dim:
            raise InputError(f"{where} was not written by this version of burnin (wanted {FORMAT!r})")
        seen: set[str] = set()
        for column in self.columns:
            if column.name in seen or (isinstance(column, Repeated) and column.of not in seen):
                raise InputError(
                    f"{where} is damaged: column {column.name[:MOST_SHOWN]!r} is there twice or of none"
                )
            if isinstance(column, Category) and column.typical not in column.levels:
                raise InputError(
                    f"{where} is damaged: {column.name[:MOST_SHOWN]!r} has no level for its typical word"
                )
            seen.add(column.name)
        if not self.modelled or {len(self.matrix), *map(len, self.matrix)} != {self.dim}:
            raise InputError(f"{where} is damaged: its matrix is not {self.dim} × {self.dim}")
        if not bool(self._inverse_or_nan.isfinite().all()):
            raise InputError(f"{where} is damaged: its matrix has no inverse")
