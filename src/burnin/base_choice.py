"""The mixture of Gaussians that a table's density starts from, chosen by cross-validation."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from torch import Tensor

from burnin.core import InputError, Report
from burnin.evaluation.bridge import MixtureBase

Shape = Literal["full", "diag"]
COMPONENTS: dict[Shape, tuple[int, ...]] = {"full": (1, 2, 3, 5, 8, 12), "diag": (2, 3, 5, 8, 16, 30)}
"""What is tried, by the shape of the covariances."""
FOLDS = 5
SHRINKAGES = (0.0, 0.03, 0.1, 0.3)
MOST_CHOOSING, MOST_FITTED = 2000, 20_000
"""Rows that the choice is made on, and that the chosen mixture is fitted to, at most."""
ROWS_EACH = 4
"""Rows for each component, at least."""
LEAST_HELD = 5.0
"""Rows that a component of several must hold: one around a row or two would call an outlier usual."""
MOST_NUMBERS = 100_000
"""In all the covariances together: what a step of a chain costs."""
RIDGE = 1e-4
TRIES = 2
"""Numbers of components without gain before no more are tried."""


@dataclass(frozen=True)
class BaseChoice:
    """Which mixture.

    Attributes:
        shape: of the covariances.
        components: of each of the mixtures, one for each fold, that are averaged.
        shrinkage: share of their mean in the covariances (of its own diagonal in that of one component).
        log_density: mean over rows of the log-density by the mixtures that have not seen them.
        tried: how many pairs of a shape and a number of components were.
    """

    shape: Shape
    components: int
    shrinkage: float
    log_density: float
    tried: int

    def describe(self) -> str:
        """The choice in words."""
        kind = "full" if self.shape == "full" else "diagonal"
        return (
            f"base: {FOLDS} mixtures of {self.components} Gaussians with {kind} covariances, shrunk by "
            f"{self.shrinkage:g} ({self.tried} kinds tried)"
        )


def choose_base(
    rows: Tensor, seed: int, report: Report | None = None, *, components: int | None = None
) -> tuple[MixtureBase, BaseChoice]:
    """The mixture of the highest cross-validated likelihood, averaged over the folds.

    For each shape of covariances, more and more components are fitted to all folds but one; the covariances
    are shrunk towards their mean by as much as serves the fold that was left out. The mixtures of the best
    setting, one for each fold, are averaged: a mean of densities has at least the mean of their
    log-likelihoods, and few rows make single fits erratic.

    Arguments:
        rows: coordinates, about white, (n, dim).
        seed: of the folds and of EM's starts.
        report: told how far it is.
        components: of each mixture, where they are told rather than chosen.

    Example:
        >>> stream = torch.Generator().manual_seed(0)
        >>> side = torch.randint(2, (300, 1), generator=stream) * 2.0 - 1
        >>> base, choice = choose_base(side + 0.2 * torch.randn(300, 1, generator=stream), seed=0)
        >>> choice.components, base.means.shape
        (2, torch.Size([10, 1]))
    """
    told = report or (lambda *_: None)
    fewest = len(rows) - math.ceil(len(rows) / _folds(len(rows)))
    if components is not None and not 1 <= components <= fewest:
        raise InputError(f"components is {components}; it must be at least 1, and {fewest} at most here")
    values = rows.double().numpy()
    values = values[np.random.default_rng(seed).permutation(len(values))[:MOST_FITTED]]
    few = values[:MOST_CHOOSING]
    found: dict[tuple[Shape, int, float], tuple[float, list[MixtureBase]]] = {}
    tried = 0
    shapes: tuple[Shape, ...] = ("full",) if rows.shape[1] == 1 else ("full", "diag")
    most = sum(len(COMPONENTS[shape]) for shape in shapes)
    for shape in shapes:
        highest, without = -math.inf, 0
        for size in _sizes(shape, *few.shape) if components is None else [components]:
            told("base", tried, most)
            of_each = _cross_fitted(few, shape, size, seed)
            found |= {(shape, size, shrinkage): one for shrinkage, one in of_each.items()}
            best = max(score for score, _ in of_each.values())
            tried += 1
            highest, without = (best, 0) if best > highest else (highest, without + 1)
            if without == TRIES:
                break
    shape, size, shrinkage = max(found, key=lambda setting: found[setting][0])
    score, mixtures = found[shape, size, shrinkage]
    if len(values) > len(few):
        told("base", tried, most)
        score, mixtures = _cross_fitted(values, shape, size, seed)[shrinkage]
    told("base", 1, 1)
    choice = BaseChoice(shape, size, shrinkage, score, tried)
    return _averaged(mixtures), choice


def _sizes(shape: Shape, n: int, dim: int) -> Iterator[int]:
    """Numbers of components that so many rows allow."""
    kept = n - math.ceil(n / _folds(n))
    for components in COMPONENTS[shape]:
        numbers = components * FOLDS * (dim * dim if shape == "full" else dim)
        if components == 1 or (ROWS_EACH * components <= kept and numbers <= MOST_NUMBERS):
            yield components


def _folds(n: int) -> int:
    return min(FOLDS, n)


def _cross_fitted(
    values: NDArray[np.float64], shape: Shape, components: int, seed: int
) -> dict[float, tuple[float, list[MixtureBase]]]:
    """For each shrinkage the mean log-density of rows left out, and the folds' mixtures."""
    parts = np.array_split(np.random.default_rng(seed).permutation(len(values)), _folds(len(values)))
    totals = dict.fromkeys(SHRINKAGES, 0.0)
    mixtures: dict[float, list[MixtureBase]] = {shrinkage: [] for shrinkage in SHRINKAGES}
    for index, left_out in enumerate(parts):
        kept = np.concatenate([part for other, part in enumerate(parts) if other != index])
        fitted = GaussianMixture(components, covariance_type=shape, reg_covar=RIDGE, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted.fit(values[kept])
        held = torch.from_numpy(values[left_out])
        for shrinkage in SHRINKAGES:
            mixture = _shrunk(fitted, shape, shrinkage, LEAST_HELD / len(kept))
            mixtures[shrinkage].append(mixture)
            totals[shrinkage] += mixture.log_prob(held).sum().item()
    return {shrinkage: (totals[shrinkage] / len(values), mixtures[shrinkage]) for shrinkage in SHRINKAGES}


def _shrunk(fitted: GaussianMixture, shape: Shape, shrinkage: float, least: float) -> MixtureBase:
    """The mixture without components that weigh less than `least`, its covariances shrunk."""
    weights, means, covariances = (
        torch.as_tensor(np.asarray(part), dtype=torch.float64)
        for part in (fitted.weights_, fitted.means_, fitted.covariances_)
    )
    held = weights >= min(least, weights.max().item())
    weights, means, covariances = weights[held] / weights[held].sum(), means[held], covariances[held]
    target = torch.einsum("k,k...->...", weights, covariances)
    if shape == "full" and len(weights) == 1:
        target = target.diagonal().diag()
    covariances = (1 - shrinkage) * covariances + shrinkage * target
    factors = torch.linalg.cholesky(covariances) if shape == "full" else covariances.sqrt()
    return MixtureBase(weights.log(), means, factors)


def _averaged(mixtures: list[MixtureBase]) -> MixtureBase:
    return MixtureBase(
        torch.cat([one.log_weights for one in mixtures]) - math.log(len(mixtures)),
        torch.cat([one.means for one in mixtures]),
        torch.cat([one.factors for one in mixtures]),
    )
