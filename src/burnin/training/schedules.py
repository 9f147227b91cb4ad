"""How numbers change over a run: the learning rate, as a factor for torch's LambdaLR, and β."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from burnin.core import InputError

Decay = Literal["none", "linear", "cosine", "geometric"]


def rate_factor(
    num_updates: int,
    *,
    decay: Decay,
    decay_from: float,
    final_rate: float,
    warmup: int,
    rate_steps: Sequence[tuple[int, float]] = (),
) -> Callable[[int], float]:
    """1 until the share `decay_from` of all updates, then down to `final_rate` at the last.

    Arguments:
        num_updates: length of the run.
        decay: the shape of the fall.
        decay_from: share of the run at which it starts.
        final_rate: what is left at the end, as a share of the first rate.
        warmup: updates over which the rate first rises linearly.
        rate_steps: updates from which on the rate is multiplied, and by what.

    Example:
        >>> factor = rate_factor(100, decay="linear", decay_from=0.5, final_rate=0.0, warmup=0)
        >>> [factor(0), factor(50), factor(75), factor(100)]
        [1.0, 1.0, 0.5, 0.0]
        >>> steps = [(60, 0.3), (80, 0.3)]
        >>> flat = rate_factor(
        ...     100, decay="none", decay_from=1.0, final_rate=1.0, warmup=0, rate_steps=steps
        ... )
        >>> [round(flat(update), 2) for update in (59, 60, 99)]
        [1.0, 0.3, 0.09]
    """

    def factor(update: int) -> float:
        rise = min(1.0, (update + 1) / warmup) if warmup else 1.0
        rise *= math.prod(by for since, by in rate_steps if update >= since)
        start = decay_from * num_updates
        done = min(1.0, max(0.0, (update - start) / max(1e-9, num_updates - start)))
        if decay == "linear":
            return rise * (1 - (1 - final_rate) * done)
        if decay == "cosine":
            return rise * (final_rate + (1 - final_rate) * 0.5 * (1 + math.cos(math.pi * done)))
        if decay == "geometric":
            return rise * math.exp(math.log(final_rate) * done)
        return rise

    return factor


@dataclass(frozen=True)
class Ramp:
    """A value that passes through given points in straight lines, flat before and after; for β over updates.

    Arguments:
        points: (update, value) pairs, updates rising.

    Example:
        >>> ramp = Ramp(((100, 0.0), (200, 0.5)))
        >>> [ramp.at(update) for update in (0, 150, 1000)]
        [0.0, 0.25, 0.5]
    """

    points: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        updates = [update for update, _ in self.points]
        if not updates or any(b <= a for a, b in pairwise(updates)):
            raise InputError(f"the ramp's updates are {updates}; give at least one, rising")

    @property
    def highest(self) -> float:
        """The largest value on the way."""
        return max(value for _, value in self.points)

    def at(self, update: int) -> float:
        """The interpolated value."""
        if update <= self.points[0][0]:
            return self.points[0][1]
        for (left, start), (right, end) in pairwise(self.points):
            if update <= right:
                return start + (end - start) * (update - left) / (right - left)
        return self.points[-1][1]
