"""Could the data have come from the model? A test that takes seconds, on rows that training did not see."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from burnin import discrepancies
from burnin.core import BurninError, Density
from burnin.data import EncodedRows, NoisyDensity, Pictures, Table, clean
from burnin.discrepancies import GoodnessOfFit, KernelSettings
from burnin.discrepancies.goodness import FEWEST_ROWS, Method
from burnin.evaluation.model import Model

MOST_ROWS = 1000
"""That are tested: the time of the kernelised discrepancy grows with their square."""
METHOD: Method = "ksd"
FEWEST_FITTED = 200
"""Rows from which on a fifth is given to find the kernel's bandwidth; fewer are tested with the median."""


@dataclass(frozen=True)
class FitTest:
    """The outcome of a test of a model against its data.

    Attributes:
        rows: what was tested, in words.
        result: the outcome; None where there is none.
        reason: why there is none.
    """

    rows: str
    result: GoodnessOfFit | None
    reason: str = ""


def fit_test(model: Model, data: Density, generator: torch.Generator) -> FitTest:
    """The kernelised Stein test of a model on at most 1,000 rows.

    Rows of a table are tested as they are; draws of other data have the noise that training adds to them.

    Arguments:
        model: the model.
        data: what it was trained on, with the part held out where there is one.
        generator: draws the rows, the noise that coded rows need, and the test's signs.
    """
    rows, x = rows_to_test(model, data, generator)
    if len(x) < FEWEST_ROWS:
        return FitTest(rows, None, f"there are {len(x)} rows; a test needs at least {FEWEST_ROWS}")
    try:
        kernel = KernelSettings(bandwidth="median" if len(x) < FEWEST_FITTED else None)
        return FitTest(rows, discrepancies.test(model, x, METHOD, generator=generator, kernel=kernel))
    except BurninError as error:
        return FitTest(rows, None, str(error))


def rows_to_test(model: Model, data: Density, generator: torch.Generator) -> tuple[str, Tensor]:
    """What is tested, in words and as points: held-out rows, where there are enough of them."""
    known = clean(data)
    if isinstance(known, EncodedRows):
        held = known.held_out
        if held is not None and len(held) >= FEWEST_ROWS:
            return _some(held.each(generator), "held-out rows", generator)
        every = EncodedRows(known.encoding, known.all_codes()).each(generator)
        return _some(every, "rows, most of which it was trained on", generator)
    if isinstance(known, Table):
        return _some(known.values, "rows that it was trained on", generator)
    if isinstance(known, Pictures):
        judged = known.held_out or known
        seen = "pictures that it was trained on" if judged is known else "held-out pictures"
        picked = torch.randperm(len(judged), generator=generator)[:MOST_ROWS]
        x = judged.rows(judged.pixels[picked], generator)
        if isinstance(data, NoisyDensity):
            x = x + data.noise * torch.randn(x.shape, generator=generator, dtype=x.dtype)
        return f"{len(x):,} {seen}", x
    return f"{MOST_ROWS:,} fresh draws of the data", model.data.sample(MOST_ROWS, generator)


def _some(x: Tensor, what: str, generator: torch.Generator) -> tuple[str, Tensor]:
    """At most so many rows as are tested, without any twice."""
    order = torch.randperm(len(x), generator=generator)[:MOST_ROWS]
    part = "" if len(order) == len(x) else f" of {len(x):,}"
    return f"{len(order):,}{part} {what}", x[order]
