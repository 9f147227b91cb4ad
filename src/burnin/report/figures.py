"""Pictures: densities, samples, energies along chains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from burnin.evaluation.grid import PlaneGrid
from burnin.samplers import Trace

COLORS = mpl.colormaps["magma"]
KDE_BANDWIDTH = 0.1
WIDE = 200.0
"""Range of energies above which they are drawn on an axis that is logarithmic far from 0."""
DATA, SAMPLES, OUTLIERS = "#4a86bd", "#c8457f", "#c67c10"
"""What data, samples and outliers are drawn in: told apart by all eyes, on white and on black."""


@dataclass(frozen=True)
class Panel:
    """A picture of the plane of the first two coordinates: log-densities on a grid, or samples."""

    title: str
    log_density: Tensor | None = None
    samples: Tensor | None = None


def kernel_density(samples: Tensor, grid: PlaneGrid, bandwidth: float = KDE_BANDWIDTH) -> Tensor:
    """A Gaussian kernel-density estimate of the first two coordinates on the grid, (points²,), summing to 1.

    The kernel is a product, so the whole grid is one matrix product of two (points, n) tables.
    """
    axis = grid.axis()
    x = torch.exp(-0.5 * ((axis.unsqueeze(1) - samples[:, 0]) / bandwidth).square())
    y = torch.exp(-0.5 * ((axis.unsqueeze(1) - samples[:, 1]) / bandwidth).square())
    density = (x @ y.T).flatten()
    return density / density.sum()


def draw_density(axes: Axes, density: Tensor, grid: PlaneGrid, top: float | None = None) -> None:
    """A density on the grid as an image; `top` sets the brightest colour so that panels compare."""
    image = density.reshape(grid.points, grid.points).T
    half = grid.half_width
    axes.imshow(
        image.numpy(),
        origin="lower",
        extent=(-half, half, -half, half),
        cmap=COLORS,
        vmin=0,
        vmax=top if top is not None else float(image.max()),
        interpolation="bilinear",
    )
    axes.set_xticks([])
    axes.set_yticks([])


Frame = tuple[tuple[float, float], tuple[float, float]]
"""What a picture shows of the first and of the second coordinate."""


def frame_around(data: Tensor, margin: float = 0.15) -> Frame:
    """The range of the first two coordinates, each with a margin; of some width for a constant one too."""
    low, high = data[:, :2].min(0).values, data[:, :2].max(0).values
    room = (margin * (high - low)).clamp(min=1e-3)
    (left, bottom), (right, top) = (low - room).tolist(), (high + room).tolist()
    return (left, right), (bottom, top)


def range_of(values: NDArray[np.float64], margin: float = 0.08) -> tuple[float, float]:
    """The range of numbers with a margin; of some width for constant ones too."""
    low, high = float(values.min()), float(values.max())
    room = margin * (high - low) or max(1e-3, 0.01 * abs(high))
    return low - room, high + room


def dot_size(number: int) -> float:
    """Of so many dots in a panel: few must be seen, many must not hide each other."""
    return 4.0 if number < 300 else 2.5 if number < 1500 else 1.5


def square(size: float = 3.2) -> tuple[Figure, Axes]:
    """A figure that is one square panel to its edges."""
    figure = Figure(figsize=(size, size))
    return figure, figure.add_axes((0.01, 0.01, 0.98, 0.98))


def wide(width: float = 4.8, height: float = 3.2) -> tuple[Figure, Axes]:
    """A figure with one panel, whose labels may be of any length."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def plain(width: float = 4.8, height: float = 3.2) -> tuple[Figure, Axes]:
    """A figure with one panel, whose labels are short: twice as fast, as their room need not be found."""
    left, right, bottom, top = 0.75, 0.25, 0.52, 0.1
    box = (left / width, bottom / height, (width - left - right) / width, (height - bottom - top) / height)
    figure = Figure(figsize=(width, height))
    return figure, figure.add_axes(box)


def key_of(axes: Axes) -> None:
    """What is drawn in which colour."""
    axes.legend(frameon=False, fontsize=8, loc="upper right")


def label(text: str, most: int = 18) -> str:
    """A name from a user's table as it can be drawn: not too long, a dollar being a dollar.

    Example:
        >>> label("price in $ or € per kilogram"), label("$x$")
        ('price in \\\\$ or € p…', '\\\\$x\\\\$')
    """
    short = text if len(text) <= most else text[: most - 1] + "…"
    return short.replace("$", r"\$")


def draw_scatter(axes: Axes, samples: Tensor, frame: Frame, color: str = SAMPLES) -> None:
    """Samples as dots on the plane of the first two coordinates."""
    size = dot_size(len(samples))
    axes.plot(samples[:, 0], samples[:, 1], ".", color=color, markersize=size, rasterized=True)
    axes.set_xlim(*frame[0])
    axes.set_ylim(*frame[1])
    axes.set_box_aspect(1)
    axes.set_xticks([])
    axes.set_yticks([])


def draw_pictures(axes: Axes, pictures: Tensor, across: int = 8, down: int | None = None) -> None:
    """The first pictures, (n, channels, height, width) from 0 to 1, `across` by `down`, or a square."""
    number = across * (down or across)
    shown = pictures[:number]
    nothing = float("nan")  # between pictures and in place of missing ones the ground is seen
    shown = torch.cat([shown, shown.new_full((number - len(shown), *shown.shape[1:]), nothing)])
    padded = torch.nn.functional.pad(shown, (1, 1, 1, 1), value=nothing)
    rows = [torch.cat(list(row), 2) for row in torch.split(padded, across)]
    tiled = torch.cat(rows, 1).permute(1, 2, 0)
    if tiled.shape[2] == 1:
        axes.imshow(tiled[:, :, 0].numpy(), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    else:
        seen = tiled.isfinite().all(2, keepdim=True).to(tiled.dtype)
        axes.imshow(torch.cat([tiled.nan_to_num(0.0), seen], 2).numpy(), interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])


def draw_histogram(axes: Axes, values: Mapping[str, Tensor]) -> None:
    """Histograms of numbers over each other, each of area 1."""
    for name, x in values.items():
        axes.hist(x.flatten().numpy(), bins=60, density=True, alpha=0.5, label=name)
    axes.legend(frameon=False, fontsize=8, loc="upper right")


def draw_energy_traces(axes: Axes, traces: Mapping[str, Trace], data_energy: float | None = None) -> None:
    """Mean energy of the chains by step, on a logarithmic step axis; the data's energy as a line."""
    for name, trace in traces.items():
        axes.plot(trace.iteration, trace.energy, label=name)
    if data_energy is not None:
        axes.axhline(data_energy, color="0.4", linestyle=":", label="data")
    axes.set_xscale("log")
    values = [value for trace in traces.values() for value in trace.energy if np.isfinite(value)]
    if max(values, default=0.0) - min(values, default=0.0) > WIDE:
        axes.set_yscale("symlog", linthresh=10.0)
        axes.set_ylim(bottom=min(0.0, *values) - 5)
    axes.set_xlabel("step")
    axes.set_ylabel("mean energy / T")
    axes.legend(frameon=False, fontsize=8, loc="upper right")


def schemes_figure(
    truth: Tensor, data: Tensor, columns: Mapping[str, tuple[Tensor, Tensor]], grid: PlaneGrid
) -> Figure:
    """Fig. 2 of the hybrid paper: two rows, the truth and one column for each scheme.

    Top: kernel-density estimates of samples from noise. Bottom: model densities. All panels of a row
    share the truth's colour scale.

    Arguments:
        truth: true density on the grid, summing to 1.
        data: samples of the truth.
        columns: for each scheme its samples from noise and its density on the grid.
        grid: the grid.
    """
    figure = Figure(figsize=(2.1 * (len(columns) + 1), 4.6), layout="constrained")
    axes = figure.subplots(2, len(columns) + 1, squeeze=False)
    kde = kernel_density(data, grid)
    top_kde, top = float(kde.max()), float(truth.max())
    draw_density(axes[0][0], kde, grid, top_kde)
    draw_density(axes[1][0], truth, grid, top)
    axes[0][0].set_title("truth")
    axes[0][0].set_ylabel("samples from noise (KDE)")
    axes[1][0].set_ylabel("density exp(-E/T)")
    for column, (name, (samples, density)) in zip(axes.T[1:], columns.items(), strict=True):
        draw_density(column[0], kernel_density(samples, grid), grid, top_kde)
        draw_density(column[1], density, grid, top)
        column[0].set_title(name)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Writes a PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
