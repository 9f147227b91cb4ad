"""What JEM's study sees while a row trains, and when its training diverged."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

from burnin.core import InputError
from burnin.data import Pictures, clean, held_out
from burnin.data.matching import BRIGHTEST, full_bytes, rescaled
from burnin.evaluation.calibration import class_probabilities
from burnin.evaluation.features import extract
from burnin.evaluation.frechet import frechet_distance, inception_score
from burnin.settings import Config
from burnin.storage import write_text_atomically
from burnin.studies.images import own_features
from burnin.training import Guard, GuardSettings, Trainer

CURVE_FILE = "curve.jsonl"
DRAWN = 1000
"""Pictures of the bank that are looked at, and held-out ones that they are compared with."""
FAR = 100.0
"""|E⁺ - E⁻|, in logits, that no sound classifier has: training has diverged."""
LAST = 200
"""Updates at the end whose gap is told."""
SETTLED = 200
"""Updates after which the range of d so far is taken for its usual one."""


@dataclass(frozen=True)
class Look:
    """A model in training.

    Attributes:
        step: after which update.
        validation, accuracy: shares that are classified right of either half of what is held out.
        inception_score, frechet: of the bank, by the data set's own classifier.
    """

    step: int
    validation: float
    accuracy: float
    inception_score: float
    frechet: float


class Looker:
    """Looks at a model in training and keeps what it saw in a file; after a resume it goes on there.

    Arguments:
        trainer: what trains it.
        config: its configuration.
        path: the file, a line for each look.
    """

    def __init__(self, trainer: Trainer, config: Config, path: Path) -> None:
        held = clean(held_out(trainer.parts.data))
        if not isinstance(held, Pictures) or held.labels is None or config.data.name is None:
            raise InputError("JEM's study needs a named set of pictures with labels")
        self.trainer, self.path, self.held, self.labels = trainer, path, held, held.labels
        self.rows = held.rows(held.pixels)
        self.features = own_features(config.data.name, held.shape[1])
        self.reference = extract(self.features, full_bytes(held)[:DRAWN]).features
        self.looks = [look for look in read_looks(path) if look.step <= trainer.step]

    def look(self, step: int) -> None:
        """One more look."""
        probabilities = class_probabilities(self.trainer.model, self.rows)
        right = (probabilities.argmax(1) == self.labels).double()
        seen = extract(self.features, self._bank())
        assert seen.probabilities is not None
        found = Look(
            step,
            validation=right[::2].mean().item(),
            accuracy=right[1::2].mean().item(),
            inception_score=inception_score(seen.probabilities, seed=0).value,
            frechet=frechet_distance(seen.features, self.reference),
        )
        self.looks = [*(look for look in self.looks if look.step < step), found]
        text = "".join(json.dumps(asdict(look)) + "\n" for look in self.looks)
        write_text_atomically(self.path, text)

    def _bank(self) -> torch.Tensor:
        """Pictures of the bank, where there is one; else of data-started chains' ends there are none."""
        state = self.trainer.parts.arms[0].start.state()
        if "position" not in state:
            raise InputError("JEM's study looks at the bank; scheme.name must be persistent or refresh")
        position = state["position"][:DRAWN].nan_to_num(0.0)
        return rescaled(self.held.bytes(position), self.held.levels, BRIGHTEST)


def read_looks(path: Path) -> list[Look]:
    """What a file of looks holds; none where there is none yet."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Look(**json.loads(line)) for line in lines]


def divergence(logged: Sequence[Mapping[str, Any]], ended: str, guard: GuardSettings) -> dict[str, Any]:
    """When training diverged, when that began, when the guard names it, and how often it was rolled back.

    It has diverged when |d| = |⟨E⁺⟩ - ⟨E⁻⟩| is at least 100 or not a number; it began when d last left the
    range of all that came before. A run that the guard brought back has its bad updates cut off, so it is
    not counted. `gap_last` is the median of ⟨E⁻⟩ - ⟨E⁺⟩ at the end: a run that has not diverged is still no
    model of p(x) where that is far from 0, for then the chains reach nothing like data. `guard` says when the
    guard names a divergence: the run's own, or what it would be if it were enabled.

    Example:
        >>> rows = [{"step": t, "d/bank": (-1.0) ** t} for t in range(1, 301)]
        >>> rows += [{"step": 301, "d/bank": -7.0}, {"step": 302, "d/bank": -900.0}]
        >>> divergence(rows, "finished", GuardSettings())
        {'diverged_at': 302, 'began_at': 301, 'named_at': None, 'rollbacks': 0, 'gap_last': 1.0}
    """
    gaps = [(row["step"], row["d/bank"]) for row in logged if "d/bank" in row]
    rollbacks = sum("rolled back" in row.get("event", "") for row in logged)
    found = next((step for step, d in gaps if not math.isfinite(d) or abs(d) >= FAR), None)
    if found is None and ended != "finished":  # the update that was not finite is not logged
        found = gaps[-1][0] + 1 if gaps else 1
    began = found
    low, high = math.inf, -math.inf
    outside_since = None
    for step, d in gaps:
        if found is None or step > found:
            break
        inside = low <= d <= high or step <= SETTLED
        outside_since = None if inside else (outside_since or step)
        if inside:
            low, high = min(low, d), max(high, d)
    if found is not None and outside_since is not None:
        began = outside_since
    return {
        "diverged_at": found,
        "began_at": began,
        "named_at": _named_at(logged, guard),
        "rollbacks": rollbacks,
        "gap_last": -median(d for _, d in gaps[-LAST:]) if gaps else None,
    }


def _named_at(logged: Sequence[Mapping[str, Any]], settings: GuardSettings) -> int | None:
    """The update at which a guard with these settings calls what was logged a divergence."""
    guard = Guard(settings)
    for row in logged:
        watched = {name: row[name] for name in ("d/bank", "r/bank") if name in row}
        if watched and guard.look(watched) is not None:
            return int(row["step"])
    return None
