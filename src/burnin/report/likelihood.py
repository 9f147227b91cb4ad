"""The likelihood's part of a report: nats and bits, with the interval in which they lie."""

from __future__ import annotations

import math
from dataclasses import dataclass

from burnin.report import figures
from burnin.report.drawn import Panel
from burnin.report.page import Block, Facts, Panels

FAR = 1.96


@dataclass(frozen=True)
class MeanLikelihood:
    """A mean log-density, in nats.

    Attributes:
        what: whose: rows and model, in words.
        nats: the mean.
        low, high: where it lies as far as log Z is known.
        error: its standard error by the choice of rows.
        columns: of the density.
        by: how log Z was had.
        trusted: False when too few draws carry log Z.
    """

    what: str
    nats: float
    low: float
    high: float
    error: float
    columns: int
    by: str = ""
    trusted: bool = True

    @property
    def interval(self) -> tuple[float, float]:
        """Where it lies, by log Z and by the choice of rows (19 times in 20)."""
        return self.low - FAR * self.error, self.high + FAR * self.error

    @property
    def bits(self) -> tuple[float, float, float]:
        """Bits per dimension, -nats / (columns · log 2), lowest and highest."""
        unit = -1 / (self.columns * math.log(2))
        low, high = self.interval
        return self.nats * unit, high * unit, low * unit

    def in_nats(self) -> str:
        """The mean and its interval."""
        low, high = self.interval
        return f"{self.nats:.4g} nats ({low:.4g} to {high:.4g})"

    def in_bits(self) -> str:
        """Bits per dimension and their interval."""
        bits, low, high = self.bits
        return f"{bits:.3g} bits per dimension ({low:.3g} to {high:.3g})"


def likelihood_blocks(found: tuple[MeanLikelihood, ...]) -> tuple[Block, ...]:
    """The numbers, and a picture of their intervals."""
    rows = []
    for one in found:
        log_z = (
            "" if one.low == one.high else f", between {one.low:.4g} and {one.high:.4g} as far as it is known"
        )
        doubt = "" if one.trusted else "; too few effective draws to be sure"
        how = f"log Z by {one.by}{log_z}{doubt}; " if one.by else "known exactly; "
        scatter = f"± {FAR * one.error:.2g} nats by the choice of rows"
        rows.append((one.what, f"{one.in_nats()}; {one.in_bits()}", how + scatter))
    return Facts(tuple(rows)), Panels((_intervals(found),), "Mean log-density; to the right is likelier.")


def _intervals(found: tuple[MeanLikelihood, ...]) -> Panel:
    figure, axes = figures.wide(5.6, 0.9 + 0.42 * len(found))
    for place, one in enumerate(found):
        low, high = one.interval
        color = figures.SAMPLES if one.by else "0.5"
        axes.plot([low, high], [-place, -place], color=color, linewidth=2)
        axes.plot([one.nats], [-place], "o", color=color)
    axes.set_yticks([-place for place in range(len(found))], [figures.label(one.what, 34) for one in found])
    axes.set_ylim(-len(found) + 0.4, 0.6)
    axes.margins(x=0.08)
    axes.set_xlabel("nats")
    said = "; ".join(f"{one.what} {one.in_nats()}" for one in found)
    return Panel(figure, f"Mean log-densities as dots with their intervals: {said}.")
