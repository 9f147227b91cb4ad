"""Cells of iris removed at random and filled again: how far off, against simpler ways."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnin.core import Report
from burnin.data import Frame
from burnin.settings import Count, Part, Share
from burnin.studies.measured import MeasuredRecipe, MeasuredStudy
from burnin.studies.table import Rows

NUMBERS = ("sepal_length", "sepal_width", "petal_length", "petal_width")
WORDS = "species"
SEEDS = range(10)
WAYS = ("column_mean", "gaussian", "mean", "draw")
Numbers = NDArray[np.float64]


class GapsPart(Part):
    """How many rows are kept from training, the share of their cells that goes, how many tables are drawn."""

    rows: Count = 50
    share: Share = 0.25
    draws: Count = 20
    max_updates: Count = 2000


class GapsRecipe(MeasuredRecipe):
    """Cells to remove."""

    gaps: GapsPart = GapsPart()


def measure(recipe: GapsRecipe, report: Report) -> dict[str, Any]:
    """Root mean squared errors in standard deviations of the columns, the share of species that are right,
    and how often a removed number lies between the ninth decile of its draws and the first."""
    from sklearn.datasets import load_iris

    from burnin.estimator import EnergyDensity

    wanted, seed = recipe.gaps, recipe.run.seed
    data, generator = load_iris(), np.random.default_rng(seed)
    species = np.array(data.target_names.tolist(), dtype=object)[data.target]
    order = generator.permutation(len(species))
    kept, tested = order[: -wanted.rows], order[-wanted.rows :]
    gone = generator.random((wanted.rows, len(NUMBERS) + 1)) < wanted.share
    gone[gone.all(1), 0] = False
    truth, mean, scale = data.data[tested], data.data[kept].mean(0), data.data[kept].std(0)
    numbers, words = gone[:, :-1], gone[:, -1]
    holed = Frame(
        {
            **{n: np.where(gone[:, i], np.nan, truth[:, i]) for i, n in enumerate(NUMBERS)},
            WORDS: np.array([None if w else s for w, s in zip(words, species[tested], strict=True)]),
        }
    )
    whole = Frame({**dict(zip(NUMBERS, data.data[kept].T, strict=True)), WORDS: species[kept]})
    report("fit", 0, 2)
    density = EnergyDensity(max_updates=wanted.max_updates, random_state=seed).fit(whole)
    report("chains", 1, 2)
    by_mean = density.impute_frames(holed, mean=True)[0]
    drawn = density.impute_frames(holed, draws=wanted.draws)

    def error(values: Numbers) -> float:
        return float(np.sqrt((((values - truth) / scale)[numbers] ** 2).mean()))

    # Values are in steps of 0.1; spread over their cells, ranks have no ties.
    cells = np.stack([_numbers(frame) for frame in drawn])
    below = cells + generator.uniform(-0.05, 0.05, cells.shape)
    rank = (below < truth + generator.uniform(-0.05, 0.05, truth.shape)).mean(0)[numbers]
    return {
        "cells": int(numbers.sum()),
        "words": int(words.sum()),
        "column_mean": error(np.broadcast_to(mean, truth.shape)),
        "gaussian": error(gaussian_mean(data.data[kept], truth, numbers)),
        "mean": error(_numbers(by_mean)),
        "draw": error(cells[0]),
        "right_words": float((by_mean.columns[WORDS][words] == species[tested][words]).mean()),
        "within": float(((rank >= 0.1) & (rank <= 0.9)).mean()),
    }


def gaussian_mean(rows: Numbers, truth: Numbers, gone: NDArray[np.bool_]) -> Numbers:
    """The conditional mean of what is gone under the Gaussian of the rows' mean and covariance.

    Example:
        >>> rows = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]])
        >>> gaussian_mean(rows, np.array([[3.0, 0.0]]), np.array([[False, True]]))
        array([[3., 6.]])
    """
    mean, covariance, found = rows.mean(0), np.cov(rows.T), truth.copy()
    for row, free in zip(found, gone, strict=True):
        known = ~free
        away = np.linalg.lstsq(covariance[np.ix_(known, known)], row[known] - mean[known])[0]
        row[free] = mean[free] + covariance[np.ix_(free, known)] @ away
    return found


def _numbers(frame: Frame) -> Numbers:
    return np.stack([frame.columns[name] for name in NUMBERS], axis=1)


def pool(rows: Rows) -> dict[str, dict[str, Any]]:
    """The mean of every number over the rows, and the standard error of `mean` less each other way."""
    values = {name: np.array([row[name] for row in rows.values()]) for name in next(iter(rows.values()))}
    pooled: dict[str, Any] = {name: float(value.mean()) for name, value in values.items()}
    for way in WAYS:
        gain = values[way] - values["mean"]
        pooled[f"gain_{way}"] = float(gain.mean())
        pooled[f"error_{way}"] = float(gain.std(ddof=1) / math.sqrt(len(gain))) if len(gain) > 1 else math.nan
    # Of the gain over the mean of the column, in its standard errors.
    pooled["surely"] = pooled["gain_column_mean"] / pooled["error_column_mean"] if len(rows) > 1 else math.nan
    return {"all": pooled}


def summary(rows: Rows) -> str:
    """The ways beside each other."""
    one = pool(rows)["all"]
    lines = [
        "| filled in with | error, in standard deviations | more than the conditional mean |",
        "|---|---|---|",
    ]
    titles = {
        "column_mean": "the column's mean",
        "gaussian": "the conditional mean of a Gaussian of the four numbers",
        "mean": "`burnin impute --mean`",
        "draw": "`burnin impute`, a draw",
    }
    for way in WAYS:
        gain = "" if way == "mean" else f"{one[f'gain_{way}']:.2f} ± {one[f'error_{way}']:.2f}"
        lines.append(f"| {titles[way]} | {one[way]:.2f} | {gain} |")
    lines.append("")
    lines.append(
        f"{one['right_words']:.0%} of the missing species are right; {one['within']:.0%} of the missing "
        f"numbers lie between the tenth and the ninetieth percentile of their draws. {len(rows)} splits, "
        f"{one['cells']:.0f} numbers and {one['words']:.0f} species missing in each; ± one standard error."
    )
    return "\n".join(lines) + "\n"


IRIS_GAPS = MeasuredStudy(
    name="iris-gaps",
    about="cells of iris removed at random from rows that training did not see, and filled again",
    recipe="measured/iris-gaps",
    quick_recipe="measured/iris-gaps",
    settings=GapsRecipe,
    rows={f"seed{seed}": [f"run.seed={seed}"] for seed in SEEDS},
    quick_rows=("seed0", "seed1"),
    metrics=(*WAYS, "right_words", "within", "surely", "gain_gaussian"),
    measure=measure,
    pool=pool,
    pooled=("all",),
    draw=None,
    tabulate=summary,
)
