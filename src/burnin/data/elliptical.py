"""Gaussians of any covariance and Student's t: densities with one centre, in any number of dimensions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import InputError
from burnin.data.checks import require_at_least, require_points, require_positive


@dataclass(frozen=True, eq=False)
class Gaussian:
    r"""N(0, A Aᵀ): x = A z with z standard normal.

        log p(x) = -½ |A⁻¹x|² - log |det A| - dim/2 · log 2π

    Arguments:
        root: A, (dim, dim), invertible; kept in double precision.

    Example:
        >>> import torch
        >>> Gaussian(torch.eye(2)).log_prob(torch.zeros(1, 2)).round(decimals=3)  # -log 2π
        tensor([-1.8380])
    """

    root: Tensor

    def __post_init__(self) -> None:
        shape = tuple(self.root.shape)
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
            raise InputError(f"Gaussian: the root has shape {shape}; it must be square")
        root = self.root.detach().double()
        if not bool(torch.linalg.slogdet(root).logabsdet.isfinite()):
            raise InputError("Gaussian: the root is singular or not finite")
        object.__setattr__(self, "root", root)

    @classmethod
    def conditioned(cls, dim: int, condition: float, generator: torch.Generator) -> Gaussian:
        """One whose variances fall evenly from 1 to 1/condition along random directions.

        Example:
            >>> import torch
            >>> root = Gaussian.conditioned(5, 100.0, torch.Generator().manual_seed(0)).root
            >>> round(torch.linalg.cond(root @ root.T).item(), 6)
            100.0
        """
        require_at_least("Gaussian", 1, dim=dim)
        require_positive("Gaussian", condition=condition)
        directions, _ = torch.linalg.qr(torch.randn(dim, dim, generator=generator, dtype=torch.float64))
        return cls(directions * torch.logspace(0, -0.5 * math.log10(condition), dim, dtype=torch.float64))

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return self.root.shape[0]

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n independent draws, (n, dim), on the generator's device."""
        require_at_least("Gaussian", 0, n=n)
        noise = torch.randn(n, self.dim, generator=generator, device=generator.device)
        return noise @ self.root.to(noise).T

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalised log-density, (n,), in the precision of x."""
        require_points("Gaussian", x, self.dim)
        z = x @ torch.linalg.inv(self.root).to(x).T
        volume: Tensor = torch.linalg.slogdet(self.root).logabsdet.to(x)
        log_prob: Tensor = -0.5 * z.square().sum(1) - volume - 0.5 * self.dim * math.log(2 * math.pi)
        return log_prob


@dataclass(frozen=True)
class StudentT:
    r"""Student's t: x = z / sqrt(c/ν), z standard normal, c chi-squared with ν degrees of freedom.

        log p(x) = log Γ((ν + dim)/2) - log Γ(ν/2) - dim/2 · log νπ - (ν + dim)/2 · log(1 + |x|²/ν)

    Arguments:
        dim: number of dimensions.
        freedom: ν, a whole number.

    Example:
        >>> import math, torch
        >>> round(math.pi * StudentT(1, 1).log_prob(torch.zeros(1, 1)).exp().item(), 6)  # Cauchy's
        1.0
    """

    dim: int
    freedom: int

    def __post_init__(self) -> None:
        require_at_least("StudentT", 1, dim=self.dim, freedom=self.freedom)

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n independent draws, (n, dim), on the generator's device."""
        require_at_least("StudentT", 0, n=n)
        normal = torch.randn(n, self.dim + self.freedom, generator=generator, device=generator.device)
        squares = normal[:, self.dim :].square().mean(1, keepdim=True)
        return normal[:, : self.dim] / squares.sqrt()

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalised log-density, (n,), in the precision of x."""
        require_points("StudentT", x, self.dim)
        power = 0.5 * (self.freedom + self.dim)
        constant = math.lgamma(power) - math.lgamma(0.5 * self.freedom)
        constant -= 0.5 * self.dim * math.log(self.freedom * math.pi)
        return constant - power * (x.square().sum(1) / self.freedom).log1p()
