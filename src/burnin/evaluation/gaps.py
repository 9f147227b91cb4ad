"""Coordinates in which rows with gaps are completed: what is known stays, what is free becomes easy to draw.

Each row has its own map u → x. With the Gaussian guide N(mean, P⁻¹), a rough law of all coordinates:

    held       x = its value
    boxed      x = low + (high - low) · Φ(a + b u)       an interval of a few standard deviations at most;
                                                         any interval, where correlations are left aside
    words      x = u                                     the corner of a word, and noise around it
    linear     x = mean - P_MM⁻¹ P_MR (x_R - mean_R) + L u,   L Lᵀ = P_MM⁻¹,

M the linear coordinates of the row and R the rest: were the guide the law itself, the linear u would be
standard normal. The map is only a change of coordinates, with its determinant counted; whatever guide is
taken, the law of x is the energy's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import Energy, InputError, evaluate

NARROW = 4.0
"""Intervals of fewer standard deviations, given all else, are taken as a whole; wider ones have walls."""
EDGE = 0.01
"""Share of an interval that the guide's mean stays away from its ends."""
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class Words:
    """A column of words among the coordinates.

    Attributes:
        first: the number of its first coordinate.
        corners: of its levels, (K, K - 1), centred at 0.
        level: of each row, (n,); -1 where it is missing.
    """

    first: int
    corners: Tensor
    level: Tensor

    @property
    def place(self) -> slice:
        """Its coordinates."""
        return slice(self.first, self.first + self.corners.shape[1])

    def nearest(self, x: Tensor) -> Tensor:
        """The level whose corner is nearest, (n,)."""
        return (x[:, self.place] @ self.corners.T.to(x.dtype)).argmax(1)


@dataclass(frozen=True, eq=False)
class Gaps:
    """What is known of rows.

    Attributes:
        value: (n, dim); where a coordinate is free it does not count.
        free: (n, dim), which may move: missing ones, and known ones that stand for a cell.
        low, high: (n, dim), between which the free ones lie; infinite for no bound.
        words: columns of words; all their coordinates are free.
    """

    value: Tensor
    free: Tensor
    low: Tensor
    high: Tensor
    words: tuple[Words, ...] = ()

    def __post_init__(self) -> None:
        shapes = {tuple(t.shape) for t in (self.value, self.free, self.low, self.high)}
        if len(shapes) != 1 or self.value.dim() != 2:
            raise InputError(f"value, free, low and high must be of one shape, (n, dim); got {shapes}")
        if not bool(self.value[~self.free].isfinite().all()):
            raise InputError("a value that is held is not finite; say that it is free")
        empty = (self.free & ~(self.low < self.high)).any(1)
        if bool(empty.any()):
            raise InputError(f"row {int(empty.int().argmax()) + 1}: no number lies between its bounds")

    @classmethod
    def of(cls, rows: Tensor, low: float = -math.inf, high: float = math.inf) -> Gaps:
        """From rows whose missing coordinates are NaN, with one pair of bounds for all.

        Example:
            >>> Gaps.of(torch.tensor([[1.0, math.nan]])).free
            tensor([[False,  True]])
        """
        free = rows.isnan()
        return cls(rows.nan_to_num(0.0), free, torch.full_like(rows, low), torch.full_like(rows, high))

    def __len__(self) -> int:
        """How many rows."""
        return len(self.value)

    def rows(self, index: Tensor) -> Gaps:
        """Some of the rows, in the order of `index`."""
        words = tuple(Words(w.first, w.corners, w.level[index]) for w in self.words)
        return Gaps(self.value[index], self.free[index], self.low[index], self.high[index], words)


@dataclass(frozen=True, eq=False)
class Guide:
    """A Gaussian near the law of all coordinates.

    Attributes:
        mean: (dim,).
        precision: (dim, dim); or (dim,), its diagonal, where correlations are left aside.
    """

    mean: Tensor
    precision: Tensor

    @property
    def narrowest(self) -> Tensor:
        """The standard deviation of each coordinate given all others, (dim,)."""
        diagonal = self.precision.diagonal() if self.precision.dim() == 2 else self.precision
        return diagonal.rsqrt()


class Chart:
    """The map of every row of `gaps`, and the energy of u.

    Arguments:
        gaps: what is known.
        guide: a Gaussian near the law.
        energy: E(x).
        temperature: T.
    """

    def __init__(self, gaps: Gaps, guide: Guide, energy: Energy, temperature: float) -> None:
        self.gaps, self._energy, self._temperature = gaps, energy, temperature
        in_words = torch.zeros_like(gaps.free)
        for column in gaps.words:
            in_words[:, column.place] = True
        width = gaps.high - gaps.low
        boxable = gaps.free & ~in_words & width.isfinite()
        self.boxed = boxable & ((width < NARROW * guide.narrowest) | (guide.precision.dim() == 1))
        self.linear = gaps.free & ~in_words & ~self.boxed
        self._width = torch.where(self.boxed, width, torch.ones_like(width))
        self._low = torch.where(self.boxed, gaps.low, torch.zeros_like(width))
        self._centre, self._slope = self._box(guide)
        self._held = ~gaps.free
        self._matrix, self._shift = self._maps(guide)

    def _box(self, guide: Guide) -> tuple[Tensor, Tensor]:
        """a and b of the boxed coordinates: 0 and 1 where the interval is narrow, else the guide's."""
        share = ((guide.mean - self._low) / self._width).clamp(EDGE, 1 - EDGE)
        centre = torch.special.ndtri(share)
        height = self._width * (-0.5 * centre.square() - HALF_LOG_2PI).exp()
        narrow = self._width < NARROW * guide.narrowest
        slope = (guide.narrowest / height).clamp(max=1.0)
        return torch.where(narrow, torch.zeros_like(centre), centre), torch.where(
            narrow, torch.ones_like(slope), slope
        )

    def _maps(self, guide: Guide) -> tuple[Tensor, Tensor]:
        """Matrix and shift of x = y · matrix + shift, y the coordinates before the linear ones are mixed."""
        linear, mean = self.linear.to(guide.mean.dtype), guide.mean
        if guide.precision.dim() == 1:
            return torch.where(self.linear, guide.narrowest, torch.ones_like(linear)), linear * mean
        rest = 1 - linear
        both = linear[:, :, None] * linear[:, None, :]
        root = torch.linalg.cholesky(guide.precision * both + torch.diag_embed(rest))
        inverse = torch.cholesky_inverse(root) * both
        # Precision = C Cᵀ, so that its inverse is L Lᵀ with L = C⁻ᵀ; of a row vector, u · Lᵀ = u · C⁻¹.
        identity = torch.eye(len(mean), dtype=mean.dtype).expand_as(root)
        spread = torch.linalg.solve_triangular(root, identity, upper=False) * both
        across = -(guide.precision * rest[:, :, None]) @ inverse
        shift = linear * mean - ((rest * mean)[:, None, :] @ across).squeeze(1)
        return torch.diag_embed(rest) + across + spread, shift

    def positions(self, u: Tensor) -> Tensor:
        """x of u, (n, dim); held coordinates to the bit."""
        cells = self._low + self._width * torch.special.ndtr(self._centre + self._slope * u)
        y = torch.where(self.boxed, cells, torch.where(self._held, self.gaps.value, u))
        if self._matrix.dim() == 2:
            mixed = y * self._matrix + self._shift
        else:
            mixed = (y[:, None, :] @ self._matrix).squeeze(1) + self._shift
        return torch.where(self.linear, mixed, y)

    def __call__(self, u: Tensor) -> Tensor:
        """-log of the unnormalised density of u: E(x)/T, less log Φ′ of the boxed ones; ∞ beyond a wall."""
        x = self.positions(u)
        value = evaluate(self._energy, x) / self._temperature
        inner = torch.where(self.boxed, self._centre + self._slope * u, torch.zeros_like(u))
        value = value + 0.5 * inner.square().sum(1)
        return torch.where(self._inside(x), value, torch.full_like(value, math.inf))

    def _inside(self, x: Tensor) -> Tensor:
        beyond = self.linear & ((x < self.gaps.low) | (x > self.gaps.high))
        good = ~beyond.any(1)
        for column in self.gaps.words:
            good &= (column.level < 0) | (column.nearest(x) == column.level)
        return good

    def rows(self, index: Tensor) -> Chart:
        """The maps of some rows, in the order of `index`."""
        part = object.__new__(Chart)
        part.gaps, part._energy, part._temperature = self.gaps.rows(index), self._energy, self._temperature
        part.boxed, part.linear, part._held = self.boxed[index], self.linear[index], self._held[index]
        part._centre, part._slope = self._centre[index], self._slope[index]
        part._width, part._low = self._width[index], self._low[index]
        part._matrix, part._shift = self._matrix[index], self._shift[index]
        return part

    def draw(self, u: Tensor, spread: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Fresh free coordinates, and log of the density that they were drawn from.

        Linear ones from N(0, spread²), boxed ones from N(0, 1), missing words from a corner each, any as
        likely, with unit noise. Held ones are those of `u`.
        """
        noise = torch.randn(u.shape, generator=generator, dtype=u.dtype)
        fresh = torch.where(self.linear, spread * noise, noise)
        for column in self.gaps.words:
            any_level = torch.randint(len(column.corners), (len(u),), generator=generator)
            level = torch.where(column.level < 0, any_level, column.level)
            fresh[:, column.place] += column.corners[level].to(u.dtype)
        fresh = torch.where(self._held, u, fresh)
        return fresh, self.log_drawn(fresh, spread)

    def log_drawn(self, u: Tensor, spread: float) -> Tensor:
        """log of the density that `draw` has at u, but for a constant, (n,)."""
        linear = torch.where(self.linear, u / spread, torch.zeros_like(u)).square().sum(1)
        boxed = torch.where(self.boxed, u, torch.zeros_like(u)).square().sum(1)
        found: Tensor = -0.5 * (linear + boxed)
        for column in self.gaps.words:
            corners = column.corners.to(u.dtype)
            away = -0.5 * (u[:, None, column.place] - corners).square().sum(2)
            known = away.gather(1, column.level.clamp(min=0)[:, None]).squeeze(1)
            found = found + torch.where(column.level < 0, away.logsumexp(1), known)
        return found
