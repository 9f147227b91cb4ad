"""The guard: notices training that diverges, so that the trainer can roll back and say so."""

from __future__ import annotations

import math
import statistics
from collections import deque
from dataclasses import dataclass
from typing import Any, Literal, get_args

from burnin.core import InputError

Remedy = Literal["learning_rate", "step_size", "num_steps", "beta", "none"]
MIDDLE_EVERY = 10
"""Updates between two looks at the history's median, which moves slowly and takes time to find."""


@dataclass(frozen=True)
class GuardSettings:
    """What counts as divergence and what is done about it.

    Attributes:
        window: how many past updates make the history that d and r are held against.
        warmup: updates before the history is used; non-finite values are caught from the first.
        threshold: how many robust standard deviations (1.4826 · median absolute deviation) from the
            history's median are too far.
        patience: how many updates in a row must be too far; one odd batch is no divergence.
        remedy: what is changed after a rollback, one or several: a lower learning rate, a smaller step of the
            chains, more of their steps, a larger β of the contrast, or nothing.
        factor: by how much rate and step are multiplied; the other two are divided by it.
        beta: β after the first rollback, where β is a remedy and has been 0.
        tries: rollbacks before training is given up.
    """

    window: int = 200
    warmup: int = 100
    threshold: float = 30.0
    patience: int = 10
    remedy: Remedy | tuple[Remedy, ...] = "learning_rate"
    factor: float = 0.5
    beta: float = 0.05
    tries: int = 3

    def __post_init__(self) -> None:
        known = get_args(Remedy)
        if unknown := [name for name in self.remedies if name not in known]:
            raise InputError(
                f"guard.remedy is {unknown[0]!r}; it must be one or several of {', '.join(known)}"
            )
        if not 0 < self.beta < 1:
            raise InputError(f"guard.beta is {self.beta}; it must lie between 0 and 1")
        if not 0 < self.factor < 1:
            raise InputError(f"guard.factor is {self.factor}; it must lie between 0 and 1")
        if self.window < 10 or self.patience < 1 or self.tries < 0:
            raise InputError("guard.window must be at least 10, patience at least 1, tries at least 0")

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """All of them; "none" is none."""
        given = (self.remedy,) if isinstance(self.remedy, str) else self.remedy
        return tuple(name for name in given if name != "none")


class Guard:
    """Watches named numbers of training and says when one leaves the finite numbers or its history.

    Example:
        >>> guard = Guard(GuardSettings(window=10, warmup=10, patience=1))
        >>> for i in range(20):
        ...     assert guard.look({"d": 0.1 * (-1) ** i}) is None
        >>> guard.look({"d": 1e9})
        'd = 1e+09 is far outside its own history (median 0 ± 0.148)'
        >>> guard.look({"d": float("nan")})
        'd is nan'
    """

    def __init__(self, settings: GuardSettings) -> None:
        self.settings = settings
        self.rollbacks = 0
        self._history: dict[str, deque[float]] = {}
        self._streak: dict[str, int] = {}
        self._middle: dict[str, tuple[float, float]] = {}
        self._seen = 0

    def look(self, values: dict[str, float], only_finite: tuple[str, ...] = ()) -> str | None:
        """Takes one update's numbers; returns why training has diverged, or None.

        Arguments:
            values: the numbers by name.
            only_finite: those that may move as they like.
        """
        for name, value in values.items():
            if not math.isfinite(value):
                return f"{name} is {value}"
        self._seen += 1
        reason = None
        for name, value in values.items():
            if name not in only_finite:
                reason = self._hold_against_history(name, value) or reason
        return reason

    def _hold_against_history(self, name: str, value: float) -> str | None:
        history = self._history.setdefault(name, deque(maxlen=self.settings.window))
        too_far = False
        middle = spread = 0.0
        if self._seen > self.settings.warmup and len(history) >= min(self.settings.window, 50):
            if name not in self._middle or self._seen % MIDDLE_EVERY == 0:
                middle = statistics.median(history)
                spread = 1.4826 * statistics.median(abs(v - middle) for v in history)
                self._middle[name] = (middle, spread)
            middle, spread = self._middle[name]
            too_far = abs(value - middle) > self.settings.threshold * max(spread, 1e-9 * abs(middle), 1e-12)
        self._streak[name] = self._streak.get(name, 0) + 1 if too_far else 0
        if not too_far:
            history.append(value)
        if self._streak[name] < self.settings.patience:
            return None
        return f"{name} = {value:.6g} is far outside its own history (median {middle:.3g} ± {spread:.3g})"

    @property
    def suspicious(self) -> bool:
        """True while some number is too far off, though not yet for long enough: no time to save."""
        return any(self._streak.values())

    @property
    def exhausted(self) -> bool:
        """True when one more rollback would be too many."""
        return self.rollbacks >= self.settings.tries

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {
            "rollbacks": self.rollbacks,
            "seen": self._seen,
            "history": {name: list(values) for name, values in self._history.items()},
            "streak": dict(self._streak),
            "middle": {name: list(pair) for name, pair in self._middle.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        self.rollbacks = state["rollbacks"]
        self._seen = state["seen"]
        self._streak = {name: int(value) for name, value in state["streak"].items()}
        self._middle = {name: (float(pair[0]), float(pair[1])) for name, pair in state["middle"].items()}
        self._history = {
            name: deque(map(float, values), maxlen=self.settings.window)
            for name, values in state["history"].items()
        }
