"""Data against samples: histograms, pair plots, grids of pictures, and rows for the reader to explore."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from burnin.data import Pictures
from burnin.report import figures
from burnin.report.columns import Columns, Rows, Shown
from burnin.report.drawn import Panel
from burnin.report.page import Block, Explorer, Listing, Panels

MOST_PAIRED = 4
"""Columns of a pair plot: more could not be read on a phone."""
MOST_DOTS = 1000
MOST_NUMBERS = 60_000
"""That the rows for the explorer hold, about half a megabyte."""
MOST_COLUMNS = 30
BINS = 30
MOST_STEPS = 10
"""In a bin of a histogram, beyond which a column is as good as continuous."""
DIGITS = 4


def compared(shown: Shown, outliers: NDArray[np.int64] | None = None) -> tuple[Block, ...]:
    """Rows of data and samples: a pair plot, a plot of any two columns, and a line for each column.

    Arguments:
        shown: both.
        outliers: the unlikely ones among the rows of the data, to be marked.
    """
    gaps = shown.gaps()
    blocks: list[Block] = [_pairs(shown, gaps)]
    if len(shown.columns) > 1:
        blocks.append(_explorer(shown, gaps, outliers))
    blocks.append(_listing(shown, gaps))
    return tuple(blocks)


def picture_grids(pictures: Pictures, data: Tensor, samples: Tensor) -> Panels:
    """Data and samples of pictures, side by side."""
    height, width = pictures.shape[1:]
    what = f"pictures of {height} by {width} pixels in eight rows of eight"
    panels = []
    for title, x, said in (
        ("data", data, "drawn from the data"),
        ("samples from noise", samples, "at the ends of the model's chains from noise"),
    ):
        figure, axes = figures.square()
        figures.draw_pictures(axes, pictures.brightness(x[x.isfinite().all(1)]))
        panels.append(Panel(figure, f"{what}, {said}.", title))
    return Panels(tuple(panels), "Samples should look like the data, and be as different from each other.")


def _pairs(shown: Shown, gaps: NDArray[np.float64]) -> Panels:
    columns, names = shown.columns, shown.columns.names
    chosen = sorted(shown.order(gaps)[:MOST_PAIRED])
    furthest = int(gaps.argmax())
    size = 1.65 * len(chosen) + 0.5 if len(chosen) > 1 else 4.6
    figure = Figure(figsize=(size, size if len(chosen) > 1 else 3.2), layout="constrained")
    grid = figure.subplots(len(chosen), len(chosen), squeeze=False)
    for row, y in enumerate(chosen):
        for column, x in enumerate(chosen):
            axes = grid[row][column]
            if column > row:
                axes.set_axis_off()
            elif column == row:
                _histograms(axes, columns, x, shown)
            else:
                _dots(axes, shown, x, y)
            if row == len(chosen) - 1:
                axes.set_xlabel(figures.label(names[x]), fontsize=9)
            else:
                axes.tick_params(labelbottom=False)
            if column == 0 and row > 0:
                axes.set_ylabel(figures.label(names[y]), fontsize=9)
            elif column > 0:
                axes.tick_params(labelleft=False)
            axes.tick_params(labelsize=8)
    if len(chosen) > 1:
        figure.legend(*grid[0][0].get_legend_handles_labels(), loc="upper right", frameon=False, fontsize=10)
    else:
        figures.key_of(grid[0][0])
    alt = (
        f"Pair plot of {_listed([names[index] for index in chosen])}, data in blue and samples in magenta: "
        "histograms of each on the diagonal, dots for each pair below. The largest difference of the two is "
        f"in {names[furthest]}, where their distribution functions are up to {gaps[furthest]:.2f} apart."
    )
    some = f"{len(chosen)} of {len(names)} columns, preferring those that differ by more than chance"
    which = some if len(chosen) < len(names) else "all columns"
    caption = f"Data (blue) and samples from noise (magenta), {which}. They should lie over each other."
    return Panels((Panel(figure, alt),), caption)


def _histograms(axes: Axes, columns: Columns, index: int, shown: Shown) -> None:
    levels = columns.levels[index]
    data, samples = shown.data[:, index], shown.samples[:, index]
    if levels is None:
        bins = edges_for(data)
    else:
        bins = [place - 0.5 for place in range(len(levels) + 1)]
        _words(axes, "x", levels)
    for values, color, filled in ((data, figures.DATA, True), (samples, figures.SAMPLES, False)):
        axes.hist(
            values,
            bins=bins,
            weights=np.full(len(values), 1 / max(1, len(values))),
            histtype="stepfilled" if filled else "step",
            color=color,
            alpha=0.45 if filled else 1.0,
            linewidth=1.4,
            label="data" if filled else "samples",
        )
    axes.set_yticks([])


def edges_for(values: NDArray[np.float64]) -> list[float]:
    """Edges of a histogram's bins; where values have a step, each bin holds as many steps as any other.

    Example:
        >>> [round(edge, 2) for edge in edges_for(np.array([0.1, 0.3, 0.2, 0.2]))]
        [0.05, 0.15, 0.25, 0.35]
    """
    distinct = np.unique(values)
    low, high = distinct[0], distinct[-1]
    step = float(np.diff(distinct).min()) if len(distinct) > 1 else 0.0
    if step * BINS * MOST_STEPS < high - low or step == 0:
        return [float(edge) for edge in np.linspace(*figures.range_of(values), BINS + 1)]
    width = step * max(1, math.ceil((high - low) / (step * BINS)))
    number = math.ceil((high - low + step) / width - 1e-6)
    return [float(low - step / 2 + width * place) for place in range(number + 1)]


def _dots(axes: Axes, shown: Shown, x: int, y: int) -> None:
    noise = np.random.default_rng(0)  # only spreads dots of the same word

    def spread(values: NDArray[np.float64], index: int) -> NDArray[np.float64]:
        words = shown.columns.levels[index] is not None
        return values + noise.uniform(-0.3, 0.3, len(values)) if words else values

    most = min(MOST_DOTS, len(shown.data))  # as many of the one as of the other, or one would hide the other
    for rows, color in ((shown.data, figures.DATA), (shown.samples, figures.SAMPLES)):
        some = rows[:most]
        xs, ys = spread(some[:, x], x), spread(some[:, y], y)
        axes.plot(xs, ys, ".", color=color, markersize=figures.dot_size(len(xs)), alpha=0.5, rasterized=True)
    for axis, index, limits in (("x", x, axes.set_xlim), ("y", y, axes.set_ylim)):
        levels = shown.columns.levels[index]
        if levels is None:
            limits(*figures.range_of(shown.data[:, index]))
        else:
            limits(-0.6, len(levels) - 0.4)
            _words(axes, axis, levels)


def _words(axes: Axes, axis: str, levels: Sequence[str]) -> None:
    """Words along an axis, slanted where they would run into each other."""
    every = max(1, len(levels) // 6)
    places, words = range(0, len(levels), every), [figures.label(level, 10) for level in levels[::every]]
    if axis == "x":
        axes.set_xticks(places, words, rotation=40, ha="right", rotation_mode="anchor")
    else:
        axes.set_yticks(places, words)


def _explorer(shown: Shown, gaps: NDArray[np.float64], outliers: NDArray[np.int64] | None) -> Explorer:
    columns = shown.columns
    kept = sorted(shown.order(gaps)[:MOST_COLUMNS])
    most = min(MOST_DOTS, MOST_NUMBERS // (2 * len(kept)))
    order = np.random.default_rng(0).permutation(len(shown.data))[:most]  # rows may be sorted in their table
    series: list[dict[str, Any]] = [
        {"key": "data", "name": "data", "rows": _brief(shown.data[order][:, kept])},
        {"key": "samples", "name": "samples", "rows": _brief(shown.samples[: len(order)][:, kept])},
    ]
    if shown.numbers is not None:
        series[0]["numbers"] = shown.numbers[order].tolist()
    if outliers is not None and len(outliers):
        marked: dict[str, Any] = {"rows": _brief(shown.data[outliers][:, kept])}
        if shown.numbers is not None:
            marked["numbers"] = shown.numbers[outliers].tolist()
        series.append({"key": "outliers", "name": "least likely rows", **marked})
    described = []
    for index in kept:
        low, high = figures.range_of(shown.data[:, index])
        levels = columns.levels[index]
        described.append(
            {"name": columns.names[index], "low": low, "high": high} | ({"levels": levels} if levels else {})
        )
    alt = "Scatter plot of data and samples for two columns, which can be chosen above it."
    caption = "Choose two columns; point at a dot to see its row."
    return Explorer({"columns": described, "series": series}, alt, caption)


def _listing(shown: Shown, gaps: NDArray[np.float64]) -> Listing:
    columns, rows = shown.columns, []
    for index, name in enumerate(columns.names):
        levels = columns.levels[index]
        told: tuple[float | str, ...]
        if levels is None:
            both = (shown.data[:, index], shown.samples[:, index])
            told = (*(_rounded(float(v.mean())) for v in both), *(_rounded(float(v.std())) for v in both))
        else:
            told = (*(_most(levels, rows[:, index]) for rows in (shown.data, shown.samples)), "–", "–")
        rows.append((name, *told, _rounded(float(gaps[index]), 3)))
    names = ("column", "mean, data", "mean, samples", "spread, data", "spread, samples", "largest gap")
    caption = (
        "Each column of data and samples: mean (of words, the most frequent), standard deviation, and the "
        "largest difference of the distribution functions (0 the same, 1 nothing in common)."
    )
    return Listing(caption, names, tuple(rows))


def _most(levels: Sequence[str], values: NDArray[np.float64]) -> str:
    if not len(values):
        return "–"
    counts = np.bincount(values.astype(int), minlength=len(levels))
    return f"{levels[int(counts.argmax())]} ({counts.max() / len(values):.0%})"


def _brief(rows: Rows) -> list[list[float]]:
    return [[_rounded(value) for value in row] for row in rows.tolist()]


def _rounded(value: float, digits: int = DIGITS) -> float:
    return float(f"{value:.{digits}g}")


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
