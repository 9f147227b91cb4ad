"""A way from a density that is known to a model's: the laws that annealed importance sampling passes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from burnin.core import Energy, InputError, energy_and_gradient, evaluate
from burnin.energies.mixture import component_terms, inverted

RIDGE = 1e-6
"""Added to a covariance, as a share of its mean variance: data may lie on a plane."""
MOST_FITTED = 20_000
"""Rows that a base is fitted to, at most."""


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
        """Fitted to data, (n, dim): by its moments, or by EM where there are several components."""
        n, dim = data.shape
        if n < 2 or components < 1 or components > n:
            raise InputError(f"a base of {components} components cannot be fitted to {n} rows")
        rows = data[:MOST_FITTED].double()
        if components == 1:
            weights, means = torch.ones(1, dtype=torch.float64), rows.mean(0, keepdim=True)
            covariances = torch.cov(rows.T).reshape(1, dim, dim)
        else:
            # scikit-learn takes a while to import, and a single Gaussian does not need it.
            from sklearn.mixture import GaussianMixture

            fitted = GaussianMixture(components, random_state=np.random.RandomState(seed)).fit(rows.numpy())
            weights, means, covariances = (
                torch.as_tensor(np.asarray(part), dtype=torch.float64)
                for part in (fitted.weights_, fitted.means_, fitted.covariances_)
            )
        spread = covariances.diagonal(dim1=1, dim2=2).mean(1).clamp(min=1e-30)
        covariances = covariances + RIDGE * spread[:, None, None] * torch.eye(dim, dtype=torch.float64)
        return cls(weights.log(), means, torch.linalg.cholesky(covariances))

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
        try:
            with np.load(path, allow_pickle=False) as arrays:
                parts = [torch.from_numpy(arrays[name]) for name in ("log_weights", "means", "factors")]
        except Exception as error:  # numpy, zipfile and zlib have no common error for a damaged file
            raise InputError(f"{path} is missing or damaged; the run cannot be used without it") from error
        return cls(*parts)

    @property
    def variance(self) -> Tensor:
        """Of each dimension, over the whole mixture, (dim,)."""
        weights = self.log_weights.exp()[:, None]
        within = self.factors.square()
        within = within if within.dim() == 2 else within.sum(2)
        mean = (weights * self.means).sum(0)
        return (weights * (within + (self.means - mean).square())).sum(0)

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
