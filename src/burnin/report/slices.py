"""Density slices: the model's density on planes through its space, where all other columns stand still."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from burnin.core import evaluate
from burnin.data import Encoding, Pictures
from burnin.evaluation.assess import Assessment
from burnin.evaluation.grid import PlaneGrid
from burnin.evaluation.model import Model
from burnin.evaluation.row_density import row_log_density
from burnin.report import figures
from burnin.report.columns import Columns, Rows
from burnin.report.drawn import Panel
from burnin.report.page import Panels
from burnin.report.toys import LOG_RANGE, draw_log_density

POINTS = 81
LINE_POINTS = 400
MOST_PAIRED = 4
"""Columns of numbers whose pairs are sliced: those with the most different values."""
MOST_BARS = 2
DEPTH = 12.0
"""Nats below the highest log-density of a slice at which it turns black."""
BEYOND = 0.6
"""How far a plane of pictures reaches beyond its three corners, as a share of their distance."""


def density_slices(model: Model, result: Assessment, rows: Rows, points: Tensor) -> tuple[Panels, ...]:
    """What the density looks like, as far as a plane can show it.

    Arguments:
        model: the model.
        result: with the plane on which the truth is known, where it is.
        rows: data in the reader's units.
        points: data as points of the model's space.
    """
    if result.grid is not None and result.log_truth is not None and result.log_model is not None:
        densities = {"truth": result.log_truth, "model": result.log_model}
        return (_plane(result.grid, densities, result.density_kl),)
    if model.pictures is not None:
        return (_between_pictures(model, model.pictures, points),)
    return _through_a_row(model, rows)


def _plane(grid: PlaneGrid, densities: dict[str, Tensor], kl: float | None) -> Panels:
    where = "the plane" if grid.dim == 2 else f"the plane of the first two of {grid.dim} coordinates"
    top = float(densities["truth"].exp().max())
    panels = []
    for name, log_density in densities.items():
        figure, axes = figures.square()
        figures.draw_density(axes, log_density.exp(), grid, top)
        alt = f"Image of the density of the {name} on {where}; bright is dense."
        panels.append(Panel(figure, alt, f"density, {name}"))
    for name, log_density in densities.items():
        figure, axes = figures.square()
        draw_log_density(axes, log_density, grid)
        alt = f"Image of the log-density of the {name} on {where}, {LOG_RANGE:g} nats deep."
        panels.append(Panel(figure, alt, f"log-density, {name}"))
    told = "" if kl is None else f" KL(true ‖ model) on the plane is {kl:.3g} nats."
    rest = "" if grid.dim == 2 else " All other coordinates are 0."
    caption = (
        "Model and truth should look alike; they share their colours. Logarithms show what the model says "
        f"where there is no data.{rest}{told}"
    )
    return Panels(tuple(panels), caption, width=10)


def _through_a_row(model: Model, rows: Rows) -> tuple[Panels, ...]:
    """Planes of two columns of numbers each, and the chances of words, all others as in the likeliest row."""
    columns = Columns.of(model)
    codes = rows[:2000]
    log_density = _log_density(model, columns.encoding, codes)
    anchor = codes[int(np.argmax(log_density))]
    panels = []
    numeric = columns.numeric
    if len(columns) == 1 and numeric:
        return (Panels((_line(model, columns, rows, anchor, 0),), "The density of the only column."),)
    if len(numeric) == 1:
        panels.append(_line(model, columns, rows, anchor, numeric[0]))
    spread = sorted(numeric, key=lambda index: -len(np.unique(rows[:, index])))[:MOST_PAIRED]
    for x, y in combinations(sorted(spread), 2):
        panels.append(_pair(model, columns, rows, anchor, x, y))
    words = [index for index, levels in enumerate(columns.levels) if levels is not None]
    panels += [_bars(model, columns, anchor, index) for index in words[:MOST_BARS]]
    if len(columns) == 2 and len(numeric) == 2:
        caption = f"The log-density of the two columns, {DEPTH:g} nats deep; the cross is the likeliest row."
        return (Panels(tuple(panels), caption),)
    held = ", ".join(
        f"{name} {value if isinstance(value, str) else format(value, '.4g')}"
        for name, value in list(zip(columns.names, columns.cells(anchor), strict=True))[:8]
    )
    more = f" and {len(columns) - 8} more" if len(columns) > 8 else ""
    caption = (
        f"Slices through the likeliest row (cross): {held}{more}. On each, the other columns stay as in that "
        f"row. Colours are log-densities, from the highest of a slice to {DEPTH:g} nats below, black."
    )
    return (Panels(tuple(panels), caption, width=15),)


def _pair(model: Model, columns: Columns, rows: Rows, anchor: Rows, x: int, y: int) -> Panel:
    (left, right), (low, high) = figures.range_of(rows[:, x]), figures.range_of(rows[:, y])
    codes = np.tile(anchor, (POINTS * POINTS, 1))
    across, up = np.meshgrid(np.linspace(left, right, POINTS), np.linspace(low, high, POINTS))
    codes[:, x], codes[:, y] = across.ravel(), up.ravel()
    values = _at_points(model, columns.encoding, codes).reshape(POINTS, POINTS)
    figure, axes = figures.wide(3.6, 3.3)
    axes.imshow(
        values - values.max(),
        origin="lower",
        extent=(left, right, low, high),
        aspect="auto",
        cmap=figures.COLORS,
        vmin=-DEPTH,
        vmax=0,
        interpolation="bilinear",
    )
    axes.plot(anchor[x], anchor[y], "+", color="0.1", markersize=9, markeredgewidth=1.6)
    names = columns.names[x], columns.names[y]
    _name(axes, figures.label(names[0], 24), figures.label(names[1], 24))
    peak = np.unravel_index(int(values.argmax()), values.shape)
    alt = (
        f"Image of the log-density of {names[0]} and {names[1]}, all other columns held; it is highest at "
        f"{names[0]} {across[peak]:.3g} and {names[1]} {up[peak]:.3g}."
    )
    return Panel(figure, alt)


def _line(model: Model, columns: Columns, rows: Rows, anchor: Rows, index: int) -> Panel:
    low, high = figures.range_of(rows[:, index], 0.25)
    line = np.linspace(low, high, LINE_POINTS)
    codes = np.tile(anchor, (LINE_POINTS, 1))
    codes[:, index] = line
    values = _at_points(model, columns.encoding, codes)
    density = np.exp(values - values.max())
    density /= density.sum() * (line[1] - line[0])
    figure, axes = figures.wide()
    name = columns.names[index]
    alone = len(columns) == 1
    if alone:
        axes.hist(rows[:, index], bins=40, density=True, color=figures.DATA, alpha=0.45, label="data")
    axes.plot(line, density, color=figures.SAMPLES, label="model")
    figures.key_of(axes)
    _name(axes, figures.label(name, 30), "density")
    axes.set_yticks([])
    held = "" if alone else " with all other columns held"
    return Panel(
        figure, f"Curve of the density of {name}{held}; highest at {line[int(values.argmax())]:.3g}."
    )


def _bars(model: Model, columns: Columns, anchor: Rows, index: int) -> Panel:
    levels = columns.levels[index]
    assert levels is not None
    codes = np.tile(anchor, (len(levels), 1))
    codes[:, index] = np.arange(len(levels))
    values = _log_density(model, columns.encoding, codes)
    chances = np.exp(values - values.max())
    chances /= chances.sum()
    figure, axes = figures.wide(3.6, 3.3)
    axes.barh(range(len(levels)), chances, color=figures.SAMPLES)
    every = max(1, len(levels) // 12)
    shown = [figures.label(level, 14) for level in levels[::every]]
    axes.set_yticks(range(0, len(levels), every), shown)
    axes.set_xlim(0, 1)
    _name(axes, f"chance, {figures.label(columns.names[index], 20)}", "")
    likely = ", ".join(f"{levels[at]} {chances[at]:.0%}" for at in np.argsort(-chances)[:3])
    return Panel(figure, f"Bars of the chances of {columns.names[index]}, all else held: {likely}.")


def _between_pictures(model: Model, pictures: Pictures, points: Tensor) -> Panels:
    """The plane through three pictures: a = origin, b and c one unit along its axes."""
    a, b, c = points[0], points[1], points[2]
    axis = torch.linspace(-BEYOND, 1 + BEYOND, POINTS, dtype=points.dtype)
    u, v = torch.meshgrid(axis, axis, indexing="xy")
    plane = a + u.reshape(-1, 1) * (b - a) + v.reshape(-1, 1) * (c - a)
    with torch.no_grad():
        values = torch.cat([evaluate(model.energy, part) for part in torch.split(plane, 4096)])
    log_density = (-values.double() / model.temperature).reshape(POINTS, POINTS).numpy()
    log_density -= log_density.max()
    figure, axes = figures.wide(4.8, 3.9)
    depth = float(np.quantile(log_density, 0.25))
    image = axes.imshow(
        log_density,
        origin="lower",
        extent=(-BEYOND, 1 + BEYOND, -BEYOND, 1 + BEYOND),
        cmap=figures.COLORS,
        vmin=min(depth, -1.0),
        vmax=0,
    )
    figure.colorbar(image, ax=axes, label="log-density below the highest, nats")
    for name, place in {"a": (0, 0), "b": (1, 0), "c": (0, 1)}.items():
        axes.plot(*place, "o", color="white", markersize=4)
        axes.annotate(name, place, xytext=(5, 4), textcoords="offset points", color="white", fontsize=11)
    axes.set_xticks([])
    axes.set_yticks([])
    alt = (
        "Image of the log-density on the plane through three pictures of the data, a, b and c; at the "
        f"corners it is {_depths(model, points, values)} nats below the highest of the plane."
    )
    thumbs = Figure(figsize=(4.8, 1.8), layout="constrained")
    for title, axes, x in zip("abc", thumbs.subplots(1, 3), (a, b, c), strict=True):
        figures.draw_pictures(axes, pictures.brightness(x.unsqueeze(0)), across=1)
        axes.set_title(title, fontsize=11)
    caption = (
        "The plane through three pictures: mixtures of them, and what lies beyond. A density of pictures is "
        "high at the pictures and low between them, where two are laid over each other."
    )
    return Panels((Panel(figure, alt), Panel(thumbs, "The three pictures a, b and c.")), caption)


def _depths(model: Model, points: Tensor, values: Tensor) -> str:
    with torch.no_grad():
        corners = evaluate(model.energy, points[:3]) - values.min()
    return ", ".join(f"{value:.3g}" for value in (corners / model.temperature).tolist())


def _at_points(model: Model, encoding: Encoding | None, codes: Rows) -> Rows:
    """log p up to a constant at the values themselves, not over their cells: slices are smooth."""
    if encoding is None:
        return _log_density(model, None, codes)
    points = encoding.whiten(encoding.features(codes))
    with torch.no_grad():
        values = torch.cat([evaluate(model.energy, part) for part in torch.split(points, 4096)])
    return np.asarray((-values.double() / model.temperature).numpy())


def _log_density(model: Model, encoding: Encoding | None, codes: Rows) -> Rows:
    """log p of rows up to a constant."""
    if encoding is not None:
        return row_log_density(model.energy, model.temperature, 0.0, encoding, codes)
    points = torch.from_numpy(codes).to(torch.get_default_dtype())
    with torch.no_grad():
        return np.asarray((-evaluate(model.energy, points).double() / model.temperature).numpy())


def _name(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x, fontsize=10)
    axes.set_ylabel(y, fontsize=10)
    axes.tick_params(labelsize=8)
