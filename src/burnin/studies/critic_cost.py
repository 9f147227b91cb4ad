"""What an update of LSD's critic costs by points and by dimensions: linear in both (stein, section 4)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median
from typing import Any, Literal

import torch

from burnin.core import Report
from burnin.discrepancies import CriticSettings, Points, train_critics
from burnin.rng import Streams
from burnin.settings import Count, Part
from burnin.studies.measured import MeasuredRecipe, MeasuredStudy
from burnin.studies.table import Rows
from burnin.studies.trial_settings import CriticPart

DIMS = (10, 50, 200, 784, 1536, 3072)
POINTS = (100, 200, 400, 800, 1600)
DIM_OF_POINTS, POINTS_OF_DIMS = 200, 200
TRACES: tuple[Literal["gaussian", "exact"], ...] = ("gaussian", "exact")


class CostPart(Part):
    """What is measured: so many updates on so many points, as often as `repeats`; the median counts."""

    points: Count = 200
    dim: Count = 200
    updates: Count = 10
    repeats: Count = 5


class CostRecipe(MeasuredRecipe):
    """The size of the data and the critic."""

    size: CostPart = CostPart()
    critic: CriticPart = CriticPart()


def measure(recipe: CostRecipe, report: Report) -> dict[str, Any]:
    """Processor milliseconds of an update with Hutchinson's trace and with the exact one."""
    size, streams = recipe.size, Streams(recipe.run.seed)
    x = torch.randn(1, size.points, size.dim, generator=streams["data"])
    points = Points(x, -x)
    metrics: dict[str, Any] = {"points": size.points, "dim": size.dim}
    for trace in TRACES:
        settings = recipe.critic.model_copy(update={"trace": trace}).settings()
        times = []
        for repeat in range(size.repeats + 1):
            report(trace, repeat, size.repeats + 1)
            times.append(milliseconds(points, settings, size.updates, streams["critics"]))
        metrics[trace] = median(times[1:])  # the first warms caches
    return metrics


def milliseconds(points: Points, settings: CriticSettings, updates: int, generator: torch.Generator) -> float:
    """Processor time of one update: that of twice as many less that of `updates`, over `updates`.

    So what is done once (first weights, the look at the validation points) does not count.
    """
    spent = []
    few = points.rows(0, 2)
    for count in (updates, 2 * updates):
        wanted = CriticSettings(**{**vars(settings), "iterations": count, "validate_every": count})
        start = time.process_time()
        train_critics(points, few, wanted, generator, objective="power")
        spent.append(time.process_time() - start)
    return 1000 * (spent[1] - spent[0]) / updates


def pool(rows: Rows) -> dict[str, dict[str, Any]]:
    """The measured rows, and for each line of them how far they are from the best straight line.

    `dims` and `points` have `off_gaussian` and `off_exact`: the largest distance from the line a + b·size, in
    shares of the line's value, and `growth_…`, the last time over the first in shares of what the size grew.
    """
    pooled: dict[str, dict[str, Any]] = {name: dict(metrics) for name, metrics in rows.items()}
    for name, axis, wanted in (("dims", "dim", DIMS), ("points", "points", POINTS)):
        names = [row_name(*(_sizes(axis, size))) for size in wanted]
        line = [rows[row] for row in names if row in rows]
        if len(line) < 3:
            continue
        pooled[name] = {}
        for trace in TRACES:
            off, growth = straightness([row[axis] for row in line], [row[trace] for row in line])
            pooled[name] |= {f"off_{trace}": off, f"growth_{trace}": growth}
    return pooled


def straightness(sizes: Sequence[float], times: Sequence[float]) -> tuple[float, float]:
    """How far times are from a line a + b·size, a ≥ 0, and how much of the growth of the size they show.

    The line is fitted to relative distances, so that the small sizes count as the large ones do.

    Example:
        >>> off, growth = straightness([1, 2, 4], [3.0, 5.0, 9.0])
        >>> round(off, 6), growth
        (0.0, 0.75)
        >>> straightness([1, 2, 4], [1.0, 4.0, 16.0])[0] > 0.3  # a parabola is no line
        True
    """
    weight = 1 / torch.tensor(times, dtype=torch.float64)
    columns = torch.stack([weight, weight * torch.tensor(sizes, dtype=torch.float64)], dim=1)
    line = torch.linalg.lstsq(columns, torch.ones(len(times), 1, dtype=torch.float64)).solution
    if line[0] < 0:
        slope = torch.linalg.lstsq(columns[:, 1:], torch.ones(len(times), 1, dtype=torch.float64)).solution
        line = torch.cat([torch.zeros(1, 1, dtype=torch.float64), slope])
    off = float((columns @ line - 1).abs().max())
    return off, (times[-1] / times[0]) / (sizes[-1] / sizes[0])


def row_name(points: int, dim: int) -> str:
    """The name of a row.

    Example:
        >>> row_name(200, 784)
        'n200-d784'
    """
    return f"n{points}-d{dim}"


def _sizes(axis: str, size: int) -> tuple[int, int]:
    return (POINTS_OF_DIMS, size) if axis == "dim" else (size, DIM_OF_POINTS)


def _rows() -> dict[str, list[str]]:
    sizes = [_sizes("dim", dim) for dim in DIMS] + [_sizes("points", points) for points in POINTS]
    return {
        row_name(points, dim): [f"size.points={points}", f"size.dim={dim}"]
        for points, dim in dict.fromkeys(sizes)
    }


def summary(rows: Rows) -> str:
    """Milliseconds of an update, by dimensions and by points."""
    pooled = pool(rows)
    lines = []
    for name, axis, head in (
        ("dims", "dim", f"{POINTS_OF_DIMS} points, dimensions"),
        ("points", "points", f"{DIM_OF_POINTS} dimensions, points"),
    ):
        wanted = DIMS if axis == "dim" else POINTS
        shown = [row for size in wanted if (row := rows.get(row_name(*_sizes(axis, size)))) is not None]
        lines += [f"| {head} | " + " | ".join(f"{row[axis]:,}" for row in shown) + " | off a line |"]
        lines += ["|---" * (len(shown) + 2) + "|"]
        for trace, words in (("gaussian", "Hutchinson's trace"), ("exact", "exact trace")):
            off = pooled.get(name, {}).get(f"off_{trace}")
            cells = [f"{row[trace]:.3g} ms" for row in shown]
            lines += [f"| {words} | " + " | ".join(cells) + f" | {'' if off is None else f'{off:.0%}'} |"]
        lines += [""]
    return "\n".join(lines)


CRITIC_COST = MeasuredStudy(
    name="critic-cost",
    about="what an update of LSD's critic costs from 10 to 3,072 dimensions and from 100 to 1,600 points",
    recipe="measured/critic-cost",
    quick_recipe=None,
    settings=CostRecipe,
    rows=_rows(),
    quick_rows=(),
    metrics=("gaussian", "exact", "off_gaussian", "off_exact", "growth_gaussian", "growth_exact"),
    measure=measure,
    pool=pool,
    pooled=(*_rows(), "dims", "points"),
    draw=None,
    tabulate=summary,
)
