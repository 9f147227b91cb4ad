"""What training notices while it runs: no negatives left, collapse, a new kind of oscillation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from burnin.diagnostics import CollapseDetector, classify
from burnin.diagnostics.words import collapse_warning, oscillation_news
from burnin.training.watch import NegativesWatch

LOOK_EVERY = 1000
"""Updates from one look at the oscillation to the next, and how many each look is told from."""


class ArmWatch:
    """Watches the d of one arm, at the cost of two appends for each update.

    The oscillation is told anew from every 1,000 updates. A kind is news when two looks in a row agree on
    it, so that a run between two kinds does not report each look.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.collapse = CollapseDetector()
        self._recent: list[float] = []
        self._last = self._told = "none yet"

    def look(self, update: int, d: float, *, weighted: bool) -> list[str]:
        """What is to be said after this update; mostly nothing.

        The d of a β-weighted contrast need not settle around 0, so its oscillation is not told.
        """
        said = []
        found = self.collapse.add(update, d)
        if found is not None:
            said.append(collapse_warning(update, self.name, found))
        if weighted:
            self._recent.clear()
            return said
        self._recent.append(d)
        if len(self._recent) >= LOOK_EVERY:
            seen = classify(np.array(self._recent))
            self._recent.clear()
            if seen.kind == self._last != self._told:
                self._told = seen.kind
                said.append(oscillation_news(update, self.name, seen))
            self._last = seen.kind
        return said

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {
            "collapse": self.collapse.state(),
            "recent": list(self._recent),
            "last": self._last,
            "told": self._told,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        self.collapse.restore(state["collapse"])
        self._recent = list(map(float, state["recent"]))
        self._last, self._told = str(state["last"]), str(state["told"])


class TrainingWatch:
    """Everything that is watched at every update, of every arm.

    Example:
        >>> watch = TrainingWatch()
        >>> said = [text for t in range(1, 501) for text in watch.look(t, {"d/noise": -1e-6 * t**3})]
        >>> len(said), said[0][:71]
        (1, "update 500: d of arm 'noise' has fallen without a turn since update 1, ")
    """

    def __init__(self) -> None:
        self.negatives = NegativesWatch()
        self._arms: dict[str, ArmWatch] = {}

    def look(self, update: int, numbers: Mapping[str, float]) -> list[str]:
        """The warnings that are due after this update."""
        warning = self.negatives.look(update, numbers)
        said = [] if warning is None else [warning]
        for name, value in numbers.items():
            if name.startswith("d/"):
                arm = name.removeprefix("d/")
                if arm not in self._arms:
                    self._arms[arm] = ArmWatch(arm)
                said += self._arms[arm].look(update, value, weighted=f"grad_scale/{arm}" in numbers)
        return said

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {name: arm.state() for name, arm in self._arms.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state`."""
        self._arms = {}
        for name, kept in state.items():
            self._arms[name] = ArmWatch(name)
            self._arms[name].restore(kept)
