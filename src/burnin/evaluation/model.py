"""A trained energy with all that is needed to use and to judge it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from burnin.core import Density, KnownDensity, Sampler
from burnin.starts import FromNoise


@dataclass(frozen=True)
class Model:
    """A trained energy and what is needed to use it.

    Attributes:
        energy: E, its weights averaged where the run averaged them.
        temperature: T.
        data: what it was trained on.
        noise: what its chains start from.
        sampler: the chains from data, as in training, and their length `num_steps`.
        noise_sampler: the chains from noise, as in training, and their length `noise_num_steps`.
        scale: per-dimension step, where it was fitted.
        scheme: how it was trained.
        num_updates: for how long.
    """

    energy: nn.Module
    temperature: float
    data: Density
    noise: FromNoise
    sampler: Sampler
    num_steps: int
    noise_sampler: Sampler
    noise_num_steps: int
    scale: Tensor | None
    scheme: str
    num_updates: int

    @property
    def truth(self) -> KnownDensity | None:
        """The exact density of the data, where it is known."""
        return self.data if isinstance(self.data, KnownDensity) else None
