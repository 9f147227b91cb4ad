"""Energies of densities that are known: for tests, for checks of samplers, for teaching."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class FromLogProb:
    """E(x) = -T · log p(x): the energy whose density at temperature T is exactly p.

    Example:
        >>> import torch
        >>> energy = FromLogProb(lambda x: -0.5 * x.square().sum(1), temperature=2.0)
        >>> energy(torch.ones(1, 2))
        tensor([2.])
    """

    log_prob: Callable[[Tensor], Tensor]
    temperature: float = 1.0

    def __call__(self, x: Tensor) -> Tensor:
        """-T · log p(x)."""
        return -self.temperature * self.log_prob(x)


@dataclass(frozen=True)
class GaussianEnergy:
    """E(x) = ½ (x - μ)ᵀ Λ (x - μ), a Gaussian of precision Λ/T.

    Example:
        >>> import torch
        >>> GaussianEnergy(torch.zeros(2), 2 * torch.eye(2))(torch.ones(1, 2))
        tensor([2.])
    """

    mean: Tensor
    precision: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """½ (x - μ)ᵀ Λ (x - μ), (n,)."""
        z = x - self.mean
        return 0.5 * torch.einsum("ni,ij,nj->n", z, self.precision, z)
