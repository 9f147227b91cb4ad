"""Densities and log-densities in the plane, side by side: the robust paper's kind of figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from burnin.evaluation.grid import PlaneGrid
from burnin.report.figures import COLORS, draw_density

LOG_RANGE = 20.0
"""How many nats below the highest log-density are told apart."""


class Column(NamedTuple):
    """A density on a grid and what it is called."""

    title: str
    grid: PlaneGrid
    log_density: Tensor


def draw_log_density(axes: Axes, log_density: Tensor, grid: PlaneGrid) -> None:
    """A log-density on the grid as an image, down from its highest value."""
    highest = float(log_density.max())
    image = log_density.reshape(grid.points, grid.points).T
    axes.imshow(image.numpy(), origin="lower", cmap=COLORS, vmin=highest - LOG_RANGE, vmax=highest)
    axes.set_xticks([])
    axes.set_yticks([])


def pairs_figure(panels: Mapping[str, Sequence[Column]]) -> Figure:
    """For each data set a row of densities and below it one of log-densities.

    The first column is the truth; the others share its brightest colour, so that they compare.
    """
    across = max(len(columns) for columns in panels.values())
    figure = Figure(figsize=(1.7 * across, 3.6 * len(panels)), layout="constrained")
    axes = figure.subplots(2 * len(panels), across, squeeze=False)
    for row, (name, columns) in enumerate(panels.items()):
        top = float(columns[0].log_density.exp().max())
        for index in range(across):
            upper, lower = axes[2 * row][index], axes[2 * row + 1][index]
            if index >= len(columns):
                upper.axis("off")
                lower.axis("off")
                continue
            column = columns[index]
            upper.set_title(column.title, fontsize=9)
            draw_density(upper, column.log_density.exp(), column.grid, top)
            draw_log_density(lower, column.log_density, column.grid)
        axes[2 * row][0].set_ylabel(name)
        axes[2 * row + 1][0].set_ylabel(f"log, {name}")
    return figure
