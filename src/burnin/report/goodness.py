"""The picture of a goodness-of-fit test: what was seen against what the model would show."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from burnin.discrepancies import GoodnessOfFit
from burnin.evaluation.goodness import FitTest
from burnin.report import figures
from burnin.report.drawn import Panel
from burnin.report.page import Block, Facts, Headline, Notes, Panels

BINS = 50
MODEL, SEEN = "#8a8a8a", figures.SAMPLES
NAMES = {
    "ksd": "kernelised Stein discrepancy, all pairs, wild bootstrap",
    "lksd": "kernelised Stein discrepancy, linear time",
    "fssd": "finite-set Stein discrepancy",
    "lsd": "learned Stein discrepancy",
}


def goodness_figure(result: GoodnessOfFit) -> Figure:
    """The statistic against draws of it under the model; for lsd and lksd the terms whose mean is tested."""
    figure, axes = figures.wide(7, 3.6)
    _draw(axes, result)
    verdict = "rejected" if result.reject else "not rejected"
    axes.set_title(f"{result.method}: p = {result.p_value:.3g}, {verdict} at {result.level:g}", fontsize=10)
    return figure


def goodness_headline(tested: FitTest) -> Headline:
    """The p value in a few words."""
    result = tested.result
    if result is None:
        return Headline("goodness of fit", "not tested", tested.reason)
    said = "the data did not come from this model" if result.reject else "no sign of a misfit"
    return Headline("goodness of fit", f"p = {result.p_value:.2g}", f"{said}; {tested.rows}")


def goodness_blocks(tested: FitTest) -> tuple[Block, ...]:
    """The outcome in words, its numbers, and the statistic against what the model would show."""
    result = tested.result
    if result is None:
        return (Notes((f"Not tested: {tested.reason}.",)),)
    sentence = result.sentence.partition(": ")[2]
    rows = (
        ("p value", f"{result.p_value:.2g}", f"{sentence[0].upper()}{sentence[1:]}."),
        ("test", result.method.upper(), f"{NAMES[result.method]}, on {tested.rows}"),
        ("statistic", f"{result.statistic:.4g}", "large speaks against the model"),
        (
            "power",
            f"{result.power:.0%}",
            "of such data sets would be rejected, were the misfit as it appears",
        ),
    )
    figure, axes = figures.plain(5.6, 2.8)
    _draw(axes, result)
    alt = (
        f"Histogram of {len(result.null):,} draws of the statistic if the data came from the model, and a "
        f"line at that of this data, {result.statistic:.4g}; {result.p_value:.1%} of the draws reach it."
    )
    caption = "Where the line is far to the right of the draws, the data did not come from the model."
    return Facts(rows), Panels((Panel(figure, alt),), caption)


def _draw(axes: Axes, result: GoodnessOfFit) -> None:
    if len(result.null):
        draw_null(axes, result)
    else:
        draw_terms(axes, result.terms)
    axes.set_yticks([])
    figures.key_of(axes)


def draw_null(axes: Axes, result: GoodnessOfFit) -> None:
    """Draws of the statistic under the model as a histogram, the statistic seen as a line."""
    axes.hist(result.null.numpy(), bins=BINS, color=MODEL, label="if the data came from the model")
    axes.axvline(result.statistic, color=SEEN, label="this data")
    axes.set_xlabel("statistic")


def draw_terms(axes: Axes, terms: Tensor) -> None:
    """The Stein terms as a histogram, with their mean, two standard errors of it, and 0."""
    mean, error = terms.mean().item(), terms.std().item() / math.sqrt(len(terms))
    axes.hist(terms.numpy(), bins=BINS, color=MODEL, label=f"Stein terms of {len(terms)} points or pairs")
    axes.axvspan(mean - 2 * error, mean + 2 * error, color=SEEN, alpha=0.25)
    axes.axvline(mean, color=SEEN, label="mean, ± 2 standard errors")
    axes.axvline(0, color="0.5", linestyle=":", label="mean if the data came from the model")
    axes.set_xlabel("Stein term")
