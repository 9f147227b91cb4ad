"""The picture of a goodness-of-fit test: what was seen against what the model would show."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from burnin.discrepancies import GoodnessOfFit

BINS = 50
MODEL, SEEN = "#8a8a8a", "#b5367a"


def goodness_figure(result: GoodnessOfFit) -> Figure:
    """The statistic against draws of it under the model; for lsd and lksd the terms whose mean is tested."""
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    if len(result.null):
        draw_null(axes, result)
    else:
        draw_terms(axes, result.terms)
    verdict = "rejected" if result.reject else "not rejected"
    axes.set_title(f"{result.method}: p = {result.p_value:.3g}, {verdict} at {result.level:g}", fontsize=10)
    axes.set_yticks([])
    axes.legend(fontsize=8, frameon=False)
    return figure


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
    axes.axvline(0, color="black", linestyle=":", label="mean if the data came from the model")
    axes.set_xlabel("Stein term")
