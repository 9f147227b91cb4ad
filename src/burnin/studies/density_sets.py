"""The tables and toys that densities are compared on: rows that have a density, cut into parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from burnin.core import InputError, KnownDensity
from burnin.data import Frame, GaussianMixture, LinearICA, make_known_density
from burnin.data.columns import Numeric, infer_columns

TABLES = {"digits": 64, "breast-cancer": 30, "wine": 13, "diabetes": 10, "iris": 4}
TOYS = {"rings10": 10, "ica10": 10, "mixture10": 10, "mixture8-unequal": 2, "checkerboard": 2}
CLASSES = {"iris": 3, "wine": 3, "breast-cancer": 2, "digits": 10}
DIMS = {**TABLES, **TOYS}
"""Dimensions of each."""
NOISE_SEED, TOY_SEED = 0, 0
MIXED = 6
"""Components of `mixture10`."""
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """Rows of a table or a toy.

    Attributes:
        x: the rows, (n, dim), spread over the cells of their steps.
        labels: the class of each, where there are classes.
        log_truth: the exact log-density of each, where it is known.
    """

    x: Array
    labels: NDArray[np.int64] | None = None
    log_truth: Array | None = None


@dataclass(frozen=True)
class Parts:
    """Rows to learn from and rows to judge on, standardised by the former.

    Attributes:
        train, test: the rows.
        log_unit: what is to be added to a log-density of the standardised rows so that it is one in units in
            which every column of the whole table has a standard deviation of 1.
        outlier: which of the test rows are outliers.
        truth: the mean exact log-density of the test rows in those units, where it is known.
    """

    train: Array
    test: Array
    log_unit: float
    outlier: NDArray[np.bool_]
    truth: float | None


def load_rows(name: str, toy_rows: int) -> Rows:
    """The rows of this name.

    Columns of whole numbers or few decimals get uniform noise over one step, drawn once: otherwise the more
    a density concentrates on the values that occur, the higher its likelihood, without end. So also the
    digits' pixels that are always 0 become a column that is uniform over one step, and the sex of the
    diabetes table two such cells side by side.
    """
    if name in TABLES:
        return _table(name)
    if name not in TOYS:
        raise InputError(f"there is no data set {name!r}; known: {', '.join(DIMS)}")
    generator = torch.Generator().manual_seed(TOY_SEED)
    density = _toy(name, generator)
    x = density.sample(toy_rows, generator)
    return Rows(x.double().numpy(), log_truth=density.log_prob(x).double().numpy())


def cut(rows: Rows, split: int, test_share: float, outlier: int | None = None) -> Parts:
    """A random part to learn from, the rest to judge on; a class of outliers is taken out and added there.

    Arguments:
        rows: all of them.
        split: the seed of the cut.
        test_share: of the rows that are no outliers.
        outlier: the class; None for none, and the density of all rows.
    """
    strange = np.zeros(len(rows.x), dtype=bool)
    if outlier is not None:
        if rows.labels is None or outlier not in rows.labels:
            raise InputError(f"there is no class {outlier} to take for outliers")
        strange = rows.labels == outlier
    usual = np.random.default_rng([1, split]).permutation(np.flatnonzero(~strange))
    held = round(test_share * len(usual))
    test = np.concatenate([usual[:held], np.flatnonzero(strange)])
    train = rows.x[usual[held:]]
    mean, sd = train.mean(0), train.std(0)
    truth = None
    if rows.log_truth is not None and outlier is None:
        truth = float(rows.log_truth[test].mean() + np.log(rows.x.std(0)).sum())
    return Parts(
        train=(train - mean) / sd,
        test=(rows.x[test] - mean) / sd,
        log_unit=float(np.log(rows.x.std(0) / sd).sum()),
        outlier=strange[test],
        truth=truth,
    )


def _table(name: str) -> Rows:
    # scikit-learn takes a while to import; the tables come with it.
    from sklearn import datasets

    loaders = {
        "digits": datasets.load_digits,
        "breast-cancer": datasets.load_breast_cancer,
        "wine": datasets.load_wine,
        "diabetes": lambda: datasets.load_diabetes(scaled=False),
        "iris": datasets.load_iris,
    }
    loaded = loaders[name]()
    x = dequantised(np.asarray(loaded.data, dtype=np.float64), np.random.default_rng(NOISE_SEED))
    return Rows(x, np.asarray(loaded.target, dtype=np.int64) if name in CLASSES else None)


def dequantised(x: Array, generator: np.random.Generator) -> Array:
    """The rows with uniform noise over one step in every column that has steps; those of a constant are 1.

    Example:
        >>> x = np.array([[1.0, 0.25], [2.0, 1 / 3]])
        >>> (dequantised(x, np.random.default_rng(0)) != x).any(0)
        array([ True, False])
    """
    columns = infer_columns(Frame.of_numbers(x))
    steps = [
        column.step if isinstance(column, Numeric) else float(column.kind == "constant") for column in columns
    ]
    spread: Array = x + (generator.random(x.shape) - 0.5) * np.array(steps)
    return spread


def _toy(name: str, generator: torch.Generator) -> KnownDensity:
    if name == "ica10":
        return LinearICA.random(TOYS[name], "laplace", generator)
    if name == "mixture10":
        means = 1.5 * torch.randn(MIXED, TOYS[name], generator=generator)
        sds = torch.linspace(0.4, 1.2, MIXED)
        return GaussianMixture(
            tuple(map(tuple, means.tolist())), tuple(sds.tolist()), tuple(range(1, MIXED + 1))
        )
    return make_known_density(name)
