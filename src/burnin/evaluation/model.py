"""A trained energy with all that is needed to use and to judge it."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Generator, Tensor, nn

from burnin.core import Density, KnownDensity, Sampler
from burnin.data import AbsentData, EncodedRows, Pictures, Table, clean
from burnin.evaluation.bridge import MixtureBase
from burnin.ranks import ALONE, Ranks
from burnin.samplers import Engine
from burnin.starts import FromNoise


@dataclass(frozen=True)
class Chain:
    """A sampler and how many steps it takes."""

    sampler: Sampler
    num_steps: int


@dataclass(frozen=True)
class Model:
    """A trained energy and what is needed to use it.

    Attributes:
        energy: E, its weights averaged where the run averaged them.
        temperature: T.
        data: what it is judged on: what it was trained on, or the part held out.
        noise: what its chains start from.
        plain: the sampler of chains from data and from a bank, and how many steps they take in training.
        annealed: likewise of chains from noise (a plain one, where the configuration has no heat).
        trained_from_noise: whether `annealed` is its way to generate: training itself started chains from
            noise with it, or had no chains at all.
        at_test: the sampler that generates from noise, where it is none of training's.
        base: the mixture that the energy corrects, where it does: its draws are the noise.
        scale: per-dimension step, where it was fitted.
        scheme: how it was trained; with the objective's name where it needs no chains.
        num_updates: for how long.
        engine: how its chains are computed.
        ranks: the processes that share its chains from noise.
    """

    energy: nn.Module
    temperature: float
    data: Density
    noise: FromNoise
    plain: Chain
    annealed: Chain
    trained_from_noise: bool
    scale: Tensor | None
    scheme: str
    num_updates: int
    engine: Engine = field(default_factory=Engine)
    at_test: Chain | None = None
    base: MixtureBase | None = None
    ranks: Ranks = ALONE

    @property
    def own(self) -> Chain:
        """The chain that generates from noise: the one meant for it, or that of training."""
        if self.at_test is not None:
            return self.at_test
        return self.annealed if self.trained_from_noise else self.plain

    def draw_noise(self, n: int, generator: Generator) -> Tensor:
        """n points that its chains start from, (n, dim)."""
        if self.base is not None:
            return self.base.sample(n, generator)
        return self.noise.sample((n, self.data.dim), generator)

    @property
    def columns(self) -> tuple[str, ...]:
        """A name for each dimension: the table's own, or x1, x2, …"""
        rows = clean(self.data)
        if isinstance(rows, Table | Pictures | EncodedRows | AbsentData):
            return rows.columns
        return tuple(f"x{i + 1}" for i in range(self.data.dim))

    @property
    def pictures(self) -> Pictures | None:
        """The pictures that it is a model of, if it is one of pictures."""
        rows = clean(self.data)
        return rows if isinstance(rows, Pictures) else None

    @property
    def rows(self) -> EncodedRows | None:
        """The rows of a table that it is a model of, if it is one of coded rows."""
        rows = clean(self.data)
        return rows if isinstance(rows, EncodedRows) else None

    @property
    def truth(self) -> KnownDensity | None:
        """The exact density of the data, where it is known."""
        return self.data if isinstance(self.data, KnownDensity) else None
