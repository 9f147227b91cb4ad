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
from burnin.data.whitening import whitening_of
from burnin.evaluation.bridge import MixtureBase

Shape = Literal["full", "white", "columns"]
COMPONENTS: dict[Shape, tuple[int, ...]] = {
    "full": (1, 2, 3, 5, 8),
    "white": (3, 8, 20),
    "columns": (3, 8, 20, 50),
}
"""What is tried: full covariances; diagonal ones in whitened coordinates; diagonal ones along the columns."""
FOLDS = 5
SHRINKAGES = (0.0, 0.03, 0.1, 0.3, 0.6)
AVERAGED = 3
"""Mixtures from different starts of EM whose mean is judged where shapes are compared: what is used is a
mean, and diagonal covariances gain more by it."""
MOST_CHOOSING, MOST_FITTED = 2000, 20_000
"""Rows that the choice is made on, and that the chosen mixture is fitted to, at most."""
ROWS_EACH = 4
"""Rows for each component, at least."""
LEAST_HELD = 5.0
"""Rows that a component of several must hold: one around a row or two would call an outlier usual."""
MOST_FULL = 1024
"""Dimensions up to which a full covariance is tried: beyond, its factors alone take minutes."""
MOST_NUMBERS = 100_000
"""In all the covariances together: what a step of a chain costs."""
RIDGE = 1e-4
WORDS: dict[Shape, str] = {
    "full": "full covariances",
    "white": "covariances that are diagonal in whitened coordinates",
    "columns": "covariances that are diagonal along the columns",
}


@dataclass(frozen=True)
class BaseChoice:
    """Which mixture.

    Attributes:
        shape: of the covariances.
        components: of each of the mixtures, one for each fold, that are averaged.
        shrinkage: share of their mean in the covariances (of its own diagonal in that of one component).
        log_density: mean over rows of the log-density by mixtures that have not seen them, each the mean of
            `AVERAGED`.
        tried: how many pairs of a shape and a number of components were.
    """

    shape: Shape
    components: int
    shrinkage: float
    log_density: float
    tried: int

    def describe(self) -> str:
        """The choice in words."""
        return (
            f"base: {FOLDS} mixtures of {self.components} Gaussians with {WORDS[self.shape]}, shrunk by "
            f"{self.shrinkage:g} ({self.tried} kinds tried)"
        )


@dataclass(frozen=True)
class _Fitted:
    """Mixtures of one setting, one for each fold, and the rows' log-densities by those that lack them."""

    mixtures: list[MixtureBase]
    left_out: Tensor


def choose_base(
    rows: Tensor, seed: int, report: Report | None = None, *, components: int | None = None
) -> tuple[MixtureBase, BaseChoice]:
    """The mixture of the highest cross-validated likelihood, averaged over the folds.

    For each shape of covariances, mixtures of several numbers of components are fitted to all folds but one
    and shrunk by as much as serves the fold that was left out. Whitening is a part of the fit: that of all
    rows would tell a fold of the one left out. The shapes' best are compared by the mean of `AVERAGED`
    mixtures. The five folds' mixtures of the winner are averaged: a mean of densities has at least the mean
    of their log-likelihoods, and few rows make single fits erratic.

    Arguments:
        rows: coordinates along the columns, (n, dim), each of unit scale.
        seed: of the folds and of EM's starts.
        report: told how far it is.
        components: of each mixture, where they are told rather than chosen.

    Returns:
        the mixture, of standard deviations where the shape is `columns`, and the choice.

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
    kinds = [
        (shape, size)
        for shape in COMPONENTS
        if (rows.shape[1] <= MOST_FULL if shape == "full" else rows.shape[1] > 1)
        for size in (_sizes(shape, *few.shape) if components is None else [components])
    ]
    best: dict[Shape, tuple[int, float, _Fitted]] = {}
    for index, (shape, size) in enumerate(kinds):
        told("base", index, len(kinds) + 1)
        for shrinkage, fitted in _cross_fitted(few, shape, size, seed).items():
            if shape not in best or fitted.left_out.mean() > best[shape][2].left_out.mean():
                best[shape] = (size, shrinkage, fitted)
    told("base", len(kinds), len(kinds) + 1)
    scores = {shape: _averaged_score(few, shape, *one, seed) for shape, one in best.items()}
    shape = max(scores, key=lambda one: scores[one])
    size, shrinkage, fitted = best[shape]
    if len(values) > len(few):
        fitted = _cross_fitted(values, shape, size, seed)[shrinkage]
    told("base", 1, 1)
    return _averaged(fitted.mixtures), BaseChoice(shape, size, shrinkage, scores[shape], len(kinds))


def _sizes(shape: Shape, n: int, dim: int) -> Iterator[int]:
    """Numbers of components that so many rows allow; the smallest always, of full covariances."""
    kept = n - math.ceil(n / _folds(n))
    for components in COMPONENTS[shape]:
        numbers = components * FOLDS * (dim if shape == "columns" else dim * dim)
        if components == 1 or (ROWS_EACH * components <= kept and numbers <= MOST_NUMBERS):
            yield components


def _folds(n: int) -> int:
    return min(FOLDS, n)


def _cross_fitted(
    values: NDArray[np.float64], shape: Shape, components: int, seed: int, start: int = 0
) -> dict[float, _Fitted]:
    """For each shrinkage the folds' mixtures, by EM from the start of this number."""
    parts = np.array_split(np.random.default_rng(seed).permutation(len(values)), _folds(len(values)))
    found = {share: _Fitted([], torch.empty(len(values), dtype=torch.float64)) for share in SHRINKAGES}
    for index, left_out in enumerate(parts):
        kept = values[np.concatenate([part for other, part in enumerate(parts) if other != index])]
        mean, matrix = whitening_of(kept, np.zeros(kept.shape[1]), scales_only=shape == "columns")
        inner = "full" if shape == "full" else "diag"
        mixture = GaussianMixture(
            components, covariance_type=inner, reg_covar=RIDGE, random_state=(seed + start) % 2**32
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            mixture.fit((kept - mean) @ matrix)
        held = torch.from_numpy(values[left_out])
        back = torch.from_numpy(np.linalg.inv(matrix))
        for shrinkage, one in found.items():
            shrunk = _shrunk(mixture, inner, shrinkage, LEAST_HELD / len(kept))
            moved = shrunk.moved(back, torch.from_numpy(mean), along_axes=shape == "columns")
            one.mixtures.append(moved)
            one.left_out[left_out] = moved.log_prob(held)
    return found


def _averaged_score(
    values: NDArray[np.float64], shape: Shape, size: int, shrinkage: float, fitted: _Fitted, seed: int
) -> float:
    """The mean over rows of the log of the mean of `AVERAGED` densities that have not seen them."""
    each = [fitted.left_out]
    for start in range(1, AVERAGED):
        each.append(_cross_fitted(values, shape, size, seed, start)[shrinkage].left_out)
    return (torch.stack(each).logsumexp(0) - math.log(AVERAGED)).mean().item()


def _shrunk(fitted: GaussianMixture, shape: str, shrinkage: float, least: float) -> MixtureBase:
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
