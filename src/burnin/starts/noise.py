"""Chains that start at noise: short-run MCMC."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from burnin.core import Drawn, InputError
from burnin.starts.stateless import Stateless

Numbers = float | tuple[float, ...]


@dataclass(frozen=True)
class FromNoise(Stateless):
    """Fresh noise, shift + scale·z, with z ~ N(0, 1) or z ~ U(-1, 1) in each coordinate.

    Arguments:
        kind: "gaussian" or "uniform".
        scale: one number, or one for each coordinate of the last axis.
        shift: likewise.

    Example:
        >>> import torch
        >>> start = FromNoise("uniform", scale=2.0, shift=(1.0, -1.0))
        >>> x = start.draw(torch.empty(1000, 2), torch.Generator().manual_seed(0)).position
        >>> x.shape, bool(((x - torch.tensor([1.0, -1.0])).abs() <= 2).all())
        (torch.Size([1000, 2]), True)
    """

    kind: Literal["gaussian", "uniform"] = "gaussian"
    scale: Numbers = 1.0
    shift: Numbers = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ("gaussian", "uniform"):
            raise InputError(f"the noise is {self.kind!r}; it must be 'gaussian' or 'uniform'")
        scales = self.scale if isinstance(self.scale, tuple) else (self.scale,)
        if not all(math.isfinite(value) and value > 0 for value in scales):
            raise InputError(f"the noise's scale is {self.scale}; it must be positive and finite")

    @classmethod
    def matched(cls, data: Tensor) -> FromNoise:
        """Gaussian noise with the mean and the variance of `data` in each coordinate."""
        return cls("gaussian", tuple(data.std(0).tolist()), tuple(data.mean(0).tolist()))

    def draw(self, data: Tensor, generator: torch.Generator) -> Drawn:
        """Noise of the batch's shape and type."""
        return Drawn(self.sample(data.shape, generator, dtype=data.dtype))

    def sample(
        self,
        shape: torch.Size | tuple[int, ...],
        generator: torch.Generator,
        dtype: torch.dtype | None = None,
    ) -> Tensor:
        """Noise of any shape, on the generator's device."""
        if self.kind == "gaussian":
            z = torch.randn(shape, generator=generator, dtype=dtype, device=generator.device)
        else:
            z = 2 * torch.rand(shape, generator=generator, dtype=dtype, device=generator.device) - 1
        return torch.as_tensor(self.shift, dtype=z.dtype, device=z.device) + z * torch.as_tensor(
            self.scale, dtype=z.dtype, device=z.device
        )
