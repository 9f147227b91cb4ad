"""What the measured numbers say: how burnin compares, and whether that is what was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from burnin.bench.contestants import BASELINE, FLOOR, JAX, OURS, TORCHEBM
from burnin.bench.spread import quartiles

SIZES = ("small", "large", "image", "other")
LANGEVIN_SIZES = ("small", "large", "image")


@dataclass(frozen=True)
class Requirement:
    """A bound on a ratio, for some of the cases.

    Attributes:
        text: what is required, in words.
        against: the contestant that burnin is compared with.
        bound: what every ratio must reach, or stay below for the floor.
        sizes: the cases' sizes it holds for.
        kind: only cases of this kind; None for all.
    """

    text: str
    against: str
    bound: float
    sizes: tuple[str, ...]
    kind: str | None = None

    @property
    def at_least(self) -> bool:
        """Whether larger is better: times faster than another, but slower than the floor."""
        return self.against != FLOOR

    def holds_for(self, case: Mapping[str, Any]) -> bool:
        """Whether it asks something of a case."""
        return case["size"] in self.sizes and self.kind in (None, case["kind"])


REQUIREMENTS = (
    Requirement("against the autograd.grad loop, small sizes: ≥ 2", BASELINE, 2.0, ("small",)),
    Requirement("against the autograd.grad loop, large sizes: ≥ 1.2", BASELINE, 1.2, ("large",)),
    Requirement("against the autograd.grad loop, everything measured: ≥ 1", BASELINE, 1.0, SIZES),
    Requirement("against torchebm's LangevinDynamics, small sizes: ≥ 3", TORCHEBM, 3.0, ("small",)),
    Requirement("against JAX jit + scan, every size: ≥ 1", JAX, 1.0, LANGEVIN_SIZES),
    Requirement("against the floor, small sizes: ≤ 2", FLOOR, 2.0, ("small",)),
    Requirement("against the floor, large sizes: ≤ 1.3", FLOOR, 1.3, ("large",)),
    Requirement("one hybrid update against the script: ≥ 2", BASELINE, 2.0, ("other",), "training"),
)


def add_ratios(result: dict[str, Any]) -> dict[str, Any]:
    """The result with the ratios of every table and with the requirements held against them."""
    tables = {
        name: table | {"ratios": {case: ratios(row) for case, row in table["rows"].items()}}
        for name, table in result["tables"].items()
    }
    checks = [
        {
            "text": requirement.text,
            "tables": {name: check(requirement, table["ratios"], result) for name, table in tables.items()},
        }
        for requirement in REQUIREMENTS
    ]
    return result | {"tables": tables, "requirements": checks}


def ratios(row: Mapping[str, Any]) -> dict[str, Any]:
    """How many times faster burnin's compiled chains are than each other contestant, turn by turn.

    A ratio is taken within each turn, where the machine was the same for both; the middle and the
    quartiles are over the turns. For the floor it is the other way round: how many times slower.

    Example:
        >>> row = {OURS: {"turns": [1.0, 2.0]}, BASELINE: {"turns": [3.0, 5.0]}, FLOOR: {"turns": [0.5, 1.0]}}
        >>> ratios(row)[BASELINE]["median"], ratios(row)[FLOOR]["median"]
        (2.75, 2.0)
    """
    ours = row.get(OURS, {}).get("turns", [])
    found = {}
    for name, cell in row.items():
        theirs = cell.get("turns", [])
        if name == OURS or not ours or len(theirs) != len(ours):
            continue
        pairs = zip(ours, theirs, strict=True)
        low, middle, high = quartiles([a / b if name == FLOOR else b / a for a, b in pairs])
        found[name] = {"median": middle, "quartiles": [low, high]}
    return found


def check(
    requirement: Requirement, measured: Mapping[str, Mapping[str, Any]], result: Mapping[str, Any]
) -> dict[str, Any]:
    """The worst ratio that a requirement is about, where it was, and whether it is met.

    `met` is None where nothing was measured; a case that should have a ratio and has none (its contestant
    failed) keeps a requirement from being met.
    """
    asked = [name for name, case in result["cases"].items() if requirement.holds_for(case)]
    known = {
        name: float(measured[name][requirement.against]["median"])
        for name in asked
        if requirement.against in measured[name]
    }
    if not known:
        return {"ratio": None, "case": None, "met": None}
    worst = (min if requirement.at_least else max)(known, key=lambda name: known[name])
    ratio = known[worst]
    reached = ratio >= requirement.bound if requirement.at_least else ratio <= requirement.bound
    return {"ratio": ratio, "case": worst, "met": reached and len(known) == len(asked)}
