"""What is done to data on its way into training: noise, drawn anew at every use."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from burnin.core import Density
from burnin.data.pictures import Pictures
from burnin.data.rows import EncodedRows


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


def clean(data: Density) -> Density:
    """The data without its noise."""
    return data.inner if isinstance(data, NoisyDensity) else data


def held_out(data: Density) -> Density:
    """What a model of this data is judged on: its held-out part, where it has one.

    Example:
        >>> import torch
        >>> test = Pictures(torch.zeros(3, 1, 2, 2, dtype=torch.uint8))
        >>> training = Pictures(torch.zeros(9, 1, 2, 2, dtype=torch.uint8), held_out=test)
        >>> len(held_out(NoisyDensity(training, 0.1)).inner)
        3
    """
    if isinstance(data, NoisyDensity):
        return NoisyDensity(held_out(data.inner), data.noise)
    if isinstance(data, Pictures | EncodedRows) and data.held_out is not None:
        return data.held_out
    if isinstance(data, Pictures) and data.flip:  # judged as it is, not mirrored
        return replace(data, flip=False)
    return data
