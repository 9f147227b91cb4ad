"""A way from a density that is known to a model's: the laws that annealed importance sampling passes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from burnin.core import Energy, InputError, energy_and_gradient, evaluate
from burnin.data.kept import read_kept
from burnin.energies.mixture import component_terms, inverted

RIDGE = 1e-6
"""Added to a covariance, as a share of each variance: data may lie on a plane."""
MOST_FITTED = 20_000
"""Rows that a base is fitted to, at most."""
SIZES = (2, 4, 8, 16)
"""Numbers of components that are tried beside one."""
CHOSEN_BY = 5000
"""Rows that the choice among them is made by, at most: a fifth of them is held out."""
WIDE_SHARE = 0.1
"""Of a mixture: one Gaussian over all data, so that what lies between and beyond its parts is reached."""
FLOOR = 1e-4
"""Least variance of a component, as a share of the data's."""


@dataclass(frozen=True)
class MixtureBase:
    """A Gaussian, or a mixture of them, that is drawn from and whose density is known.

    Attributes:
        log_weights: (k,).
        means: (k, dim).
        factors: lower Cholesky factors of the covariances, (k, dim, dim), or standard deviations, (k, dim).

    Example:
        >>> import torch
        >>> stream = torch.Generator().manual_seed(0)
        >>> base = MixtureBase.fit(3 + 2 * torch.randn(5000, 1, generator=stream))
        >>> round(base.log_prob(torch.tensor([[3.0]])).item(), 1)  # -log(2 sqrt(2 pi)) = -1.61
        -1.6
    """

    log_weights: Tensor
    means: Tensor
    factors: Tensor

    @classmethod
    def fit(cls, data: Tensor, components: int = 1, seed: int = 0) -> MixtureBase:
        """Fitted to data, (n, dim): by its moments, or by EM where there are several components.

        A mixture has one Gaussian more, that of the moments, with a tenth of the weight.
        """
        n, dim = data.shape
        if n < 2 or components < 1 or components > n:
            raise InputError(f"a base of {components} components cannot be fitted to {n} rows")
        rows = data[:MOST_FITTED].double()
        mean, covariance = rows.mean(0), torch.cov(rows.T).reshape(dim, dim)
        ridge = RIDGE * covariance.diagonal().clamp(min=1e-30)
        factor = torch.linalg.cholesky(covariance + ridge.diag())
        wide = cls(torch.zeros(1, dtype=torch.float64), mean[None], factor[None])
        if components == 1:
            return wide
        # scikit-learn takes a while to import, and a single Gaussian does not need it.
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.mixture import GaussianMixture

        mixture = GaussianMixture(components, reg_covar=FLOOR, random_state=np.random.RandomState(seed))
        with warnings.catch_warnings():
            # EM that was cut short has found a density all the same.
            warnings.simplefilter("ignore", ConvergenceWarning)
            mixture.fit(wide.whiten(rows).numpy())
        weights, means, covariances = (
            torch.as_tensor(np.asarray(part), dtype=torch.float64)
            for part in (mixture.weights_, mixture.means_, mixture.covariances_)
        )
        return cls(
            torch.cat([(1 - WIDE_SHARE) * weights, torch.tensor([WIDE_SHARE], dtype=torch.float64)]).log(),
            torch.cat([wide.unwhiten(means), wide.means]),
            torch.cat([factor @ torch.linalg.cholesky(covariances), wide.factors]),
        )

    @classmethod
    def choose(cls, data: Tensor, seed: int = 0) -> MixtureBase:
        """Fitted to four fifths of the data, with the number of components that the last fifth likes best.

        A larger number must gain two standard errors of the mean log-density over the best before it.
        """
        rows = data[:CHOSEN_BY]
        held = torch.arange(len(rows)) % 5 == 4
        if len(rows) < 10:
            return cls.fit(rows)
        best, failures = cls.fit(rows[~held]), 0
        for components in SIZES:
            if failures == 2 or components * (rows.shape[1] + 3) > int((~held).sum()):
                break
            found = cls.fit(rows[~held], components, seed)
            gain = found.log_prob(rows[held]) - best.log_prob(rows[held])
            if gain.mean() > 2 * gain.std() / math.sqrt(len(gain)):
                best, failures = found, 0
            else:
                failures += 1
        return best

    def save(self, path: Path) -> None:
        """Writes it as .npz."""
        np.savez(
            path,
            log_weights=self.log_weights.numpy(),
            means=self.means.numpy(),
            factors=self.factors.numpy(),
        )

    @classmethod
    def load(cls, path: Path) -> MixtureBase:
        """Reads what `save` wrote.

        Raises:
            InputError: when the file is missing or damaged.
        """
        return cls.checked(read_kept(path, "log_weights", "means", "factors"), str(path))

    @classmethod
    def checked(cls, parts: Sequence[NDArray[Any] | Tensor], where: str) -> MixtureBase:
        """The mixture of weights, means and factors.

        Raises:
            InputError: when they are of no mixture, naming `where` they were read.
        """
        weights, means, factors = map(torch.as_tensor, parts)
        fits = weights.dim() == 1 and means.dim() == 2 and len(means) == len(weights) > 0 < means.shape[1]
        if not fits or factors.shape not in (means.shape, (*means.shape, means.shape[1])):
            raise InputError(f"{where}: the parts of its mixture do not fit each other: it is damaged")
        scales = factors if factors.dim() == 2 else factors.diagonal(dim1=1, dim2=2)
        sound = [
            part.is_floating_point() and bool(part.isfinite().all()) for part in (weights, means, factors)
        ]
        if not all(sound) or not bool((scales > 0).all()):
            raise InputError(f"{where}: its mixture is none of Gaussians: it is damaged")
        return cls(weights, means, factors)

    @property
    def num_components(self) -> int:
        """Of which one, where `fit` found several, is the Gaussian over all."""
        return len(self.log_weights)

    @property
    def variance(self) -> Tensor:
        """Of each dimension, over the whole mixture, (dim,)."""
        return self._moments[1].diagonal()

    def whiten(self, x: Tensor) -> Tensor:
        """Coordinates in which the mixture as a whole has mean 0 and covariance 1."""
        mean, _, factor = self._moments
        white: Tensor = torch.linalg.solve_triangular(factor.to(x), (x - mean.to(x)).T, upper=False)
        return white.T

    def unwhiten(self, z: Tensor) -> Tensor:
        """The inverse of `whiten`."""
        mean, _, factor = self._moments
        return mean.to(z) + z @ factor.to(z).T

    def moved(self, matrix: Tensor, offset: Tensor, *, along_axes: bool = False) -> MixtureBase:
        """The law of y = z · matrix + offset when z has this one.

        Arguments:
            matrix: (dim, dim).
            offset: (dim,).
            along_axes: whether the matrix is diagonal, so that standard deviations stay standard deviations.
        """
        means = self.means @ matrix + offset
        if along_axes and self.factors.dim() == 2:
            return MixtureBase(self.log_weights, means, self.factors * matrix.diagonal())
        factors = self.factors if self.factors.dim() == 3 else self.factors.diag_embed()
        sides = matrix.T @ factors
        return MixtureBase(self.log_weights, means, torch.linalg.cholesky(sides @ sides.mT))

    @property
    def root(self) -> Tensor:
        """L of x = μ + L z, the whitened coordinates' z; lower triangular, (dim, dim)."""
        return self._moments[2]

    @property
    def moments(self) -> tuple[Tensor, Tensor]:
        """Mean, (dim,), and covariance, (dim, dim), of the whole mixture."""
        return self._moments[:2]

    @cached_property
    def _moments(self) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, covariance and its Cholesky factor of the whole mixture."""
        weights = self.log_weights.exp()
        mean = weights @ self.means
        away = self.means - mean
        covariance = away.T @ (weights[:, None] * away)
        if self.factors.dim() == 2:  # without a matrix for each of many components
            covariance.diagonal().add_(weights @ self.factors.square())
        else:
            covariance += torch.einsum("k,kij,klj->il", weights, self.factors, self.factors)
        return mean, covariance, torch.linalg.cholesky(covariance)

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n draws, (n, dim), of torch's default precision."""
        _, dim = self.means.shape
        which = torch.multinomial(self.log_weights.exp(), n, replacement=True, generator=generator)
        noise = torch.randn(n, dim, generator=generator, dtype=torch.float64)
        if self.factors.dim() == 2:
            x = self.means[which] + self.factors[which] * noise
        else:
            x = self.means[which]
            for component in set(which.tolist()):
                drawn = which == component
                x[drawn] += noise[drawn] @ self.factors[component].T
        return x.to(torch.get_default_dtype())

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalised log-density, (n,), in double precision."""
        return component_terms(x.double(), self.log_weights, self.means, self._inverse)[0].logsumexp(1)

    def log_prob_and_score(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """log q and ∇ log q, (n,) and (n, dim), in double precision."""
        inverse, exact = self._inverse, x.double()
        each, white = component_terms(exact, self.log_weights, self.means, inverse)
        value, shares = each.logsumexp(1), each.softmax(1)
        if white is None:
            precision = inverse.square()
            return value, shares @ (self.means * precision) - exact * (shares @ precision)
        k, dim, _ = inverse.shape
        return value, -(shares[:, :, None] * white).reshape(len(x), k * dim) @ inverse.reshape(k * dim, dim)

    @cached_property
    def _inverse(self) -> Tensor:
        return inverted(self.factors)


@dataclass(frozen=True)
class Bridge:
    """U_b(x) = b E(x)/T - (1 - b) log q(x), at temperature 1: the base at b = 0, the model at b = 1."""

    energy: Energy
    temperature: float
    base: MixtureBase
    share: float

    def __call__(self, x: Tensor) -> Tensor:
        """U_b(x), (n,)."""
        return self.energy_and_gradient(x)[0]

    def energy_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """U_b(x) and its gradient."""
        value, gradient = energy_and_gradient(self.energy, x)
        log_base, score = self.base.log_prob_and_score(x)
        b, t = self.share, self.temperature
        both = b / t * value.double() - (1 - b) * log_base
        return both.to(x.dtype), (b / t * gradient.double() - (1 - b) * score).to(x.dtype)

    def log_ratio(self, x: Tensor) -> Tensor:
        """-E(x)/T - log q(x), (n,), in double precision: what a step along the bridge weighs."""
        with torch.no_grad():
            value = evaluate(self.energy, x)
        return -value.double() / self.temperature - self.base.log_prob(x)


@dataclass(frozen=True)
class WhiteBridge:
    """The bridge as an energy of the base's whitened coordinates: one step size suits all of them.

    A ratio of densities is the same in all coordinates, so nothing but the moves sees them.
    """

    bridge: Bridge

    def __call__(self, z: Tensor) -> Tensor:
        """U_b, (n,)."""
        return self.energy_and_gradient(z)[0]

    def energy_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """U_b and its gradient by z: Lᵀ ∇U_b, for x = μ + L z."""
        base = self.bridge.base
        value, gradient = self.bridge.energy_and_gradient(base.unwhiten(z))
        return value, gradient @ base.root.to(gradient)
