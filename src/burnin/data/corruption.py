"""What is done to data on its way into training: noise, drawn anew at every use."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import Density


@dataclass(frozen=True)
class NoisyDensity:
    """A density with fresh Gaussian noise on every draw (convergent, 5A)."""

    inner: Density
    noise: float

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return self.inner.dim

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """Draws with noise added."""
        x = self.inner.sample(n, generator)
        return x + self.noise * torch.randn(x.shape, generator=generator, dtype=x.dtype)
