"""Expansion and contraction updates, and the collapse d → -∞ (convergent, sections C and D)."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from burnin.diagnostics.correlation import Values

BLOCK = 100
"""Updates in a block; only its median and spread are kept."""

FALLS = 5
"""Blocks in a row that must each lie lower than the one before."""

SPREADS = 3.0
"""How many times the blocks' own spread d must have fallen over these blocks."""

GROWTH = 2.0
"""By what factor d must have grown over them."""


@dataclass(frozen=True)
class Updates:
    """How many updates were of each kind.

    With E = β·Ẽ, d is the loss's derivative by ln β (hybrid, appendix A.3). A negative d means that the
    forces are too small and the update enlarges them: an **expansion**. A positive d means that they are
    too large and the update shrinks them: a **contraction**. A d of exactly 0 is neither.
    """

    expansions: int
    contractions: int
    num_updates: int

    @property
    def expansion_share(self) -> float:
        """Share of expansions."""
        return self.expansions / max(1, self.num_updates)

    @property
    def contraction_share(self) -> float:
        """Share of contractions: of positive d."""
        return self.contractions / max(1, self.num_updates)


def count_updates(d: Values) -> Updates:
    """Counts expansions (d < 0) and contractions (d > 0).

    Example:
        >>> count_updates(np.array([-1.0, 2.0, -3.0, 0.0]))
        Updates(expansions=2, contractions=1, num_updates=4)
    """
    return Updates(int(np.sum(d < 0)), int(np.sum(d > 0)), len(d))


@dataclass(frozen=True)
class Collapse:
    """A time in which d ran away downwards.

    Attributes:
        began: the update at which the fall began.
        noticed: the update at which it was certain.
        start: median of d in the fall's first block.
        deepest: the lowest median so far.
        ended: the update at which d had come back to half of its depth; None while it has not.
    """

    began: int
    noticed: int
    start: float
    deepest: float
    ended: int | None = None


class CollapseDetector:
    """Notices d → -∞ from the medians of blocks of 100 updates; one update costs an append.

    It is a collapse when, over the last five blocks, every median of d is negative and lower than the one
    before, the last is at least twice as deep as the first, and the fall is at least three times the
    spread of d within a block (1.4826 · median absolute deviation). Medians of a stationary d cannot do
    that, and single odd batches do not move them. The collapse has ended when a median has come back to
    half of the greatest depth.

    Example:
        >>> detector = CollapseDetector()
        >>> found = [detector.add(t, -1e-6 * t**3) for t in range(1, 1001)]
        >>> [collapse for collapse in found if collapse][0].noticed
        500
    """

    def __init__(self) -> None:
        self.current: Collapse | None = None
        self._block: list[float] = []
        self._run: deque[tuple[float, float]] = deque(maxlen=FALLS)
        self._run_start = 0
        self._first = 0.0
        self._block_start = 0

    def add(self, update: int, d: float) -> Collapse | None:
        """Takes one update's d; returns the collapse when it has just been noticed, or has just ended."""
        if not self._block:
            self._block_start = update
        self._block.append(d)
        if len(self._block) < BLOCK:
            return None
        median = statistics.median(self._block)
        spread = 1.4826 * statistics.median(abs(value - median) for value in self._block)
        self._block.clear()
        self._lengthen_run(median, spread)
        if self.current is not None:
            deepest = min(self.current.deepest, median)
            self.current = replace(self.current, deepest=deepest)
            if median <= deepest / 2:
                return None
            ended = replace(self.current, ended=self._block_start)
            self.current = None
            return ended
        if not self._falling():
            return None
        self.current = Collapse(self._run_start, update, self._first, median)
        return self.current

    def _lengthen_run(self, median: float, spread: float) -> None:
        if self._run and not median < self._run[-1][0]:
            self._run.clear()
        if median >= 0:
            self._run.clear()
            return
        if not self._run:
            self._run_start, self._first = self._block_start, median
        self._run.append((median, spread))

    def _falling(self) -> bool:
        if len(self._run) < FALLS:
            return False
        first, last = self._run[0][0], self._run[-1][0]
        spread = statistics.median(spread for _, spread in self._run)
        return last <= GROWTH * first and first - last > SPREADS * spread

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {
            "current": asdict(self.current) if self.current is not None else None,
            "block": list(self._block),
            "block_start": self._block_start,
            "run": [list(pair) for pair in self._run],
            "run_start": self._run_start,
            "first": self._first,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        self.current = Collapse(**state["current"]) if state["current"] is not None else None
        self._block = list(map(float, state["block"]))
        self._block_start = int(state["block_start"])
        self._run = deque(((float(pair[0]), float(pair[1])) for pair in state["run"]), maxlen=FALLS)
        self._run_start, self._first = int(state["run_start"]), float(state["first"])


def find_collapses(updates: Iterable[int], d: Values) -> list[Collapse]:
    """Every collapse in a series of d; the last may go on."""
    detector, ended = CollapseDetector(), []
    for update, value in zip(updates, d.tolist(), strict=True):
        found = detector.add(update, value)
        if found is not None and found.ended is not None:
            ended.append(found)
    return ended if detector.current is None else [*ended, detector.current]
