"""A trained density with the face of torch.distributions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from burnin.core import InputError, evaluate
from burnin.data import Frame
from burnin.data.columns import Numeric
from burnin.drawing import FEWEST_CHAINS
from burnin.evaluation.assess import MOST_DIMENSIONS
from burnin.evaluation.model import Model
from burnin.evaluation.normaliser import Normaliser, normalise
from burnin.fitted import FittedTable, shuffled_from_noise
from burnin.interop.sources import Source, resolve

ROWS = 5000
"""Rows of a model's data that log Z is found around."""
LogDensity = Callable[[Tensor], Tensor]
Draw = Callable[[int, torch.Generator], Tensor]
Shape = torch.Size | list[int] | tuple[int, ...]


class EnergyDistribution(Distribution):
    """p(x) = exp(-E(x)/T) / Z with an *estimated* Z, as a distribution of torch over vectors.

    `log_prob` is normalised as well as log Z is known: `normaliser` holds the estimate, the interval in which
    it lies and how it was had, and every log_prob is off by the same number. `sample` runs chains. There is
    no closed form of mean, variance or entropy, so they are not offered, and no `rsample`.

    Arguments:
        log_density: normalised log p of rows, (n, dim) → (n,).
        draw: n rows with a generator, (n, dim).
        dim: number of dimensions.
        normaliser: log Z.
        support: where the density lives; all vectors by default.
        batch_shape: of identical copies, as `expand` makes them.
        validate_args: see torch.distributions.

    Example:
        >>> import torch
        >>> from burnin import MALA
        >>> from burnin.interop import as_model
        >>> stream = torch.Generator().manual_seed(0)
        >>> rows = torch.randn(500, 2, generator=stream)
        >>> model = as_model(lambda x: 0.5 * x.square().sum(1), rows, sampler=MALA(0.5, 1.0), num_steps=30)
        >>> p = EnergyDistribution.of(model, generator=stream)
        >>> p.log_prob(torch.zeros(2))  # -log 2π
        tensor(-1.8379)
        >>> p.sample((3, 4), generator=stream).shape
        torch.Size([3, 4, 2])
    """

    arg_constraints: dict[str, constraints.Constraint] = {}  # noqa: RUF012  (torch's own attribute)
    has_rsample = False

    def __init__(
        self,
        log_density: LogDensity,
        draw: Draw,
        dim: int,
        normaliser: Normaliser,
        *,
        support: constraints.Constraint | None = None,
        batch_shape: Shape = (),
        validate_args: bool | None = None,
    ) -> None:
        self._log_density, self._draw = log_density, draw
        self._support = constraints.real_vector if support is None else support
        self.normaliser = normaliser
        super().__init__(torch.Size(batch_shape), torch.Size((dim,)), validate_args=validate_args)

    @classmethod
    def of(
        cls,
        source: Source,
        *,
        generator: torch.Generator | None = None,
        particles: int = 256,
        normaliser: Normaliser | None = None,
    ) -> EnergyDistribution:
        """The distribution of a run or exported folder, of an `EnergyDensity`, or of a model (`as_model`).

        Arguments:
            source: which.
            generator: draws what estimates log Z of a model; of a fitted table it is known already.
            particles: chains that estimate it.
            normaliser: log Z of a model, where it is known.

        Raises:
            InputError: for a table with words, beyond 100 dimensions without `normaliser`, or when a model
                carries no data around which log Z could be found.
        """
        held = resolve(source)
        if isinstance(held, FittedTable):
            return cls._of_table(held)
        if normaliser is None:
            if held.data.dim > MOST_DIMENSIONS:
                raise InputError(
                    f"log Z is not estimated beyond {MOST_DIMENSIONS} dimensions, and this model has "
                    f"{held.data.dim}; give the normaliser"
                )
            if generator is None:
                raise InputError("log Z of this model is yet to be estimated: give a generator")
            normaliser = normalise(
                held.energy,
                held.temperature,
                held.data.sample(ROWS, generator),
                generator=generator,
                particles=particles,
            )
        return cls._of_model(held, normaliser)

    @classmethod
    def _of_model(cls, model: Model, normaliser: Normaliser) -> EnergyDistribution:
        dtype = next((weight.dtype for weight in model.energy.parameters()), None)

        def log_density(x: Tensor) -> Tensor:
            value = evaluate(model.energy, x if dtype is None else x.to(dtype))
            return (-value / model.temperature - normaliser.value).to(x.dtype)

        def draw(n: int, generator: torch.Generator) -> Tensor:
            return shuffled_from_noise(model, max(n, FEWEST_CHAINS), generator)[:n]

        return cls(log_density, draw, model.data.dim, normaliser)

    @classmethod
    def _of_table(cls, table: FittedTable) -> EnergyDistribution:
        columns = table.encoding.columns
        words = [column.name for column in table.encoding.modelled if not isinstance(column, Numeric)]
        if words:
            raise InputError(
                f"{', '.join(words)} holds words, not numbers; use score_samples and sample_frame"
            )
        names = [column.name for column in columns]

        def log_density(x: Tensor) -> Tensor:
            frame = Frame.of_numbers(x.detach().double().numpy(), names)
            found = table.log_density(table.encoding.codes(frame), frame)
            return torch.from_numpy(found).to(x.dtype)

        def draw(n: int, generator: torch.Generator) -> Tensor:
            drawn = table.sample(n, generator)
            return torch.from_numpy(np.stack([drawn.columns[name] for name in names], axis=1)).to(
                torch.get_default_dtype()
            )

        return cls(log_density, draw, len(names), table.normaliser, support=_support_of(table))

    @property
    def support(self) -> constraints.Constraint:
        """Where the density lives."""
        return self._support

    def log_prob(self, value: Tensor) -> Tensor:
        """log p, normalised with the estimated log Z; of the shape of `value` less its last axis."""
        if self._validate_args:
            self._validate_sample(value)
        shape = torch.broadcast_shapes(value.shape[:-1], self.batch_shape)  # type: ignore[no-untyped-call]
        flat = self._log_density(value.reshape(-1, *self.event_shape))
        return flat.reshape(value.shape[:-1]).expand(shape)

    def log_prob_interval(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """The lowest and the highest log p that the interval of log Z allows."""
        found, z = self.log_prob(value), self.normaliser
        return found - (z.high - z.value), found + (z.value - z.low)

    def sample(self, sample_shape: Shape = (), *, generator: torch.Generator | None = None) -> Tensor:
        """Draws by chains from noise, sample_shape + batch_shape + event_shape.

        Without a generator torch's global one is used, as every distribution of torch does.
        """
        shape = self._extended_shape(torch.Size(sample_shape))
        number = shape[:-1].numel()
        if number == 0:
            return torch.empty(shape)
        stream = torch.default_generator if generator is None else generator
        with torch.no_grad():
            return self._draw(number, stream).reshape(shape)

    def expand(self, batch_shape: Shape, _instance: EnergyDistribution | None = None) -> EnergyDistribution:
        """Identical copies."""
        return type(self)(
            self._log_density,
            self._draw,
            self.event_shape[0],
            self.normaliser,
            support=self._support,
            batch_shape=batch_shape,
            validate_args=self._validate_args,
        )

    def __repr__(self) -> str:
        z = self.normaliser
        return (
            f"EnergyDistribution({self.event_shape[0]} dimensions, log Z = {z.value:.4g} between {z.low:.4g} "
            f"and {z.high:.4g} by {z.by}{'' if z.trusted else ', not to be trusted'})"
        )


def _support_of(table: FittedTable) -> constraints.Constraint:
    """All vectors, or those within the columns' bounds."""
    if not table.encoding.bounded:
        return constraints.real_vector
    numeric = [column if isinstance(column, Numeric) else None for column in table.encoding.columns]
    low = [-math.inf if c is None or c.low is None else c.low for c in numeric]
    high = [math.inf if c is None or c.high is None else c.high for c in numeric]
    inside = constraints.interval(torch.tensor(low), torch.tensor(high))  # type: ignore[no-untyped-call]
    return constraints.independent(inside, 1)  # type: ignore[no-untyped-call]
