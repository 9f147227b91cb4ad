"""What a run cost, and where it was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from burnin.report.page import Facts


@dataclass(frozen=True)
class Cost:
    """What was spent on a run and on its report.

    Attributes:
        updates: of the weights that the model had; `trained_for`, that were made.
        trained_for: updates that were made, those after the best included.
        training_seconds: what they took, None where nothing was logged.
        parts: seconds of each part of the report.
        origin: where the run was trained: machine, versions, commit, time, command; empty if not known.
        here: the same of the report.
        seed: of everything drawn.
    """

    updates: int
    trained_for: int
    training_seconds: float | None
    parts: Mapping[str, float]
    origin: Mapping[str, Any]
    here: Mapping[str, Any]
    seed: int

    def training(self) -> tuple[str, str]:
        """Time, updates and machine, in a few words."""
        made = f"{self.updates:,} updates"
        where = f" on {self.origin['machine']}" if "machine" in self.origin else ""
        if self.training_seconds is None:
            return made, where.strip()
        return spoken(self.training_seconds), made + where


def training_seconds(metrics: Sequence[Mapping[str, Any]]) -> float | None:
    """The time of training, from seconds since its start; after a resume they start anew.

    Example:
        >>> training_seconds([{"step": step, "seconds": time} for step, time in enumerate((1.0, 3.0, 0.5))])
        3.5
    """
    logged = [float(row["seconds"]) for row in metrics if "seconds" in row]
    ends = [before for before, after in pairwise(logged) if after < before]
    return sum(ends) + logged[-1] if logged else None


def cost_facts(cost: Cost) -> Facts:
    """Updates, seconds, machine."""
    best = "" if cost.trained_for == cost.updates else f"the best of {cost.trained_for:,} that were made"
    rows = [("updates", f"{cost.updates:,}", best or "of the network's weights")]
    if cost.training_seconds is not None:
        rows.append(("training", spoken(cost.training_seconds), "time of all updates"))
    rows += [(name, spoken(seconds), "for this report") for name, seconds in cost.parts.items()]
    for name, where in (("trained on", cost.origin), ("judged on", cost.here)):
        if where:
            told = (("burnin", "version"), ("Python", "python"), ("torch", "torch"), ("commit", "commit"))
            made = [f"{word} {where[key]}" for word, key in told if where.get(key)]
            when = str(where.get("time", ""))
            rows.append((name, str(where.get("machine", "?")), ", ".join([*made, when])))
    rows.append(("seed", str(cost.seed), "of everything drawn, in training and here"))
    if cost.origin:
        rows.append(("command", str(cost.origin.get("command", "?")), "that started the training"))
    return Facts(tuple(rows))


def spoken(seconds: float) -> str:
    """A time as one says it.

    Example:
        >>> spoken(0.1234), spoken(45.6), spoken(754), spoken(7300)
        ('0.12 s', '46 s', '12 min 34 s', '2 h 1 min')
    """
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
