"""Outliers: the rows that the model finds least likely, as they stand in the table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from burnin.data import Pictures
from burnin.report import figures
from burnin.report.columns import Columns, Rows
from burnin.report.drawn import Panel
from burnin.report.page import Block, Listing, Panels

LISTED = 20
ACROSS = 6
BINS = 50


@dataclass(frozen=True)
class Scored:
    """Rows with their log-densities.

    Attributes:
        log_density: of each row, in nats.
        normalised: False where it is only known up to a constant: rows compare, but no number means anything.
        what: the rows in words, such as "150 rows of the table".
        numbers: where each stood in its table, counted from 1; None where there is no table.
        threshold: below which a row counts as an outlier; None where nobody said.
    """

    log_density: NDArray[np.float64]
    normalised: bool
    what: str
    numbers: NDArray[np.int64] | None = None
    threshold: float | None = None

    def lowest(self, number: int = LISTED) -> NDArray[np.int64]:
        """Which rows have the lowest log-densities, the lowest first."""
        return np.argsort(self.log_density, kind="stable")[:number]

    @property
    def unit(self) -> str:
        """What the numbers are."""
        return "log-density, nats" if self.normalised else "log-density + constant, nats"

    def lead(self) -> str:
        """How many outliers there are, in a sentence."""
        if self.threshold is None:
            return f"The least likely of {self.what}, by the model's log-density."
        found = int((self.log_density < self.threshold).sum())
        return (
            f"{found} of {self.what} are outliers: their log-density is below {self.threshold:.4g} nats. "
            "The least likely ones are listed; a low log-density says that a row is unlike the others, not "
            "that it is wrong."
        )


def outlier_rows(scored: Scored, columns: Columns, rows: Rows) -> tuple[Block, ...]:
    """The least likely rows as a table, and where they lie among all."""
    lowest = scored.lowest()
    listed = []
    for index in lowest.tolist():
        percentile = 100 * float((scored.log_density < scored.log_density[index]).mean())
        score = float(f"{scored.log_density[index]:.5g}")
        number = () if scored.numbers is None else (int(scored.numbers[index]),)
        cells = columns.cells(rows[index])
        if scored.numbers is None:  # drawn, not given: the last digits are of no use to anybody
            cells = tuple(value if isinstance(value, str) else float(f"{value:.4g}") for value in cells)
        listed.append((*number, score, float(f"{percentile:.3g}"), *cells))
    number_name = () if scored.numbers is None else ("row",)
    names = (*number_name, scored.unit, "percentile", *columns.names)
    caption = f"The {len(lowest)} least likely of {scored.what}; click a heading to sort."
    table = Listing(caption, names, tuple(listed), sorted_by=len(number_name))
    return table, Panels((_spread(scored),), "Log-densities of all rows; those listed are at the left end.")


def outlier_pictures(scored: Scored, pictures: Pictures, x: Tensor) -> tuple[Block, ...]:
    """The least likely pictures with their numbers, beside the likeliest, and where they lie among all."""
    order = torch.from_numpy(np.argsort(scored.log_density, kind="stable"))
    panels = []
    for title, chosen in (("least likely", order[: ACROSS**2]), ("likeliest", order.flip(0)[: ACROSS**2])):
        figure, axes = figures.square()
        figures.draw_pictures(axes, pictures.brightness(x[chosen]), across=ACROSS)
        alt = f"The {len(chosen)} {title} of {scored.what}, row by row from the top left."
        panels.append(Panel(figure, alt, title))
    listed = tuple(
        (place + 1, int(index) + 1 if scored.numbers is None else int(scored.numbers[index]), score)
        for place, index in enumerate(scored.lowest().tolist())
        for score in (float(f"{scored.log_density[index]:.5g}"),)
    )
    table = Listing("The least likely pictures", ("place", "picture", scored.unit), listed, sorted_by=0)
    caption = "From the top left, row by row. Plain pictures are often likeliest: they leave least to chance."
    return Panels(tuple(panels), caption), table, Panels((_spread(scored),), "Log-densities of all pictures.")


def _spread(scored: Scored) -> Panel:
    """A histogram of all log-densities, the outliers' end marked."""
    values = scored.log_density[np.isfinite(scored.log_density)]
    figure, axes = figures.plain(5.6, 2.4)
    axes.hist(values, bins=min(BINS, 8 + len(values) // 20), color=figures.DATA, alpha=0.6)
    last = scored.lowest()[-1]
    edge = scored.log_density[last] if scored.threshold is None else scored.threshold
    axes.axvline(edge, color=figures.OUTLIERS, linestyle="--")
    axes.set_xlabel(scored.unit)
    axes.set_ylabel("rows")
    what = "the last that is listed" if scored.threshold is None else "the threshold of outliers"
    alt = (
        f"Histogram of the log-densities of {scored.what}, from {values.min():.4g} to {values.max():.4g}, "
        f"with a median of {np.median(values):.4g}; a dashed line at {edge:.4g} marks {what}."
    )
    return Panel(figure, alt)
