"""log Z of a model, by a grid in one and two dimensions and by annealed importance sampling beyond."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import Energy, Report, evaluate
from burnin.evaluation.bridge import MixtureBase
from burnin.evaluation.grid import PlaneGrid
from burnin.evaluation.likelihood import log_normaliser
from burnin.objectives import Corrected

BEYOND = 1.5
"""How much further than the data the grid reaches, as a factor."""
SPACING = 0.03
"""Of the grid, in standard deviations of the data along its own axes."""
MOST_LAWS = 4000
"""On the way from the base to the model: a fit is done once, and is nothing without its normaliser."""
BATCH = 512
ENOUGH = 100.0
"""Effective draws of a base below which a normaliser is not to be trusted."""
MOST_POINTS = 1201
"""Along each axis of a plane; where that is not fine enough, the data has a tail that no grid suits."""


@dataclass(frozen=True)
class Normaliser:
    """log Z, where it lies, and how it was had.

    Attributes:
        value: the estimate.
        low, high: an interval that holds it; one point for a grid.
        by: "a grid", "annealed importance sampling" or "draws of the base".
        trusted: False when too few draws carry it, or it could not be had at all.
    """

    value: float
    low: float
    high: float
    by: str
    trusted: bool = True


def normalise(
    energy: Energy,
    temperature: float,
    data: Tensor,
    *,
    generator: torch.Generator,
    particles: int = 256,
    base: MixtureBase | None = None,
    report: Report | None = None,
) -> Normaliser:
    """log Z = log ∫ exp(-E(x)/T) dx of a model of `data`, (n, dim), from a `base` near it where one is known.

    Raises:
        NotReachedError: beyond two dimensions, where the model is no density around the data.

    Example:
        >>> points = torch.randn(100, 1, generator=torch.Generator().manual_seed(0))
        >>> z = normalise(lambda x: 0.5 * x.square().sum(1), 1.0, points, generator=torch.Generator())
        >>> round(z.value, 3), round(0.5 * math.log(2 * math.pi), 3), z.by
        (0.919, 0.919, 'a grid')
    """
    value = by_grid(energy, temperature, data) if data.shape[1] <= 2 else None
    if value is not None:
        return Normaliser(value, value, value, "a grid")
    base = base or MixtureBase.choose(data)
    z = log_normaliser(
        energy,
        temperature,
        base,
        generator=generator,
        particles=particles,
        most_laws=MOST_LAWS,
        report=report,
    )
    low, high = z.interval
    return Normaliser(z.middle, low, high, "annealed importance sampling", z.trusted)


def by_draws(
    energy: Corrected, temperature: float, base: MixtureBase, generator: torch.Generator, draws: int
) -> Normaliser:
    """log Z of p(x) ∝ q(x) exp(-f(x)/T) as the log of the mean of exp(-f/T) over draws of q.

    The interval is of 1.96 standard errors, by the delta method; on average the value is too low, by half
    their square. Good where p has not gone far from q, which the effective number of draws tells.

    Example:
        >>> base = MixtureBase(torch.zeros(1), torch.zeros(1, 3).double(), torch.ones(1, 3).double())
        >>> class Lifted:  # f = 1 everywhere: Z = exp(-1)
        ...     def correction(self, x): return torch.ones(len(x))
        >>> by_draws(Lifted(), 1.0, base, torch.Generator().manual_seed(0), 100).value
        -1.0
    """
    with torch.no_grad():
        parts = [
            energy.correction(base.sample(len(part), generator)).double()
            for part in torch.split(torch.empty(draws), BATCH)
        ]
    log_weight = torch.cat(parts) / -temperature
    value = log_weight.logsumexp(0).item() - math.log(draws)
    effective = 1 / log_weight.softmax(0).square().sum().item()
    error = 1.96 * math.sqrt(max(0.0, 1 / effective - 1 / draws))
    return Normaliser(value, value - error, value + error, "draws of the base", effective >= ENOUGH)


def by_grid(energy: Energy, temperature: float, data: Tensor) -> float | None:
    """log Z on a line or in a plane that reaches beyond the data; None where that takes too many points.

    The grid is one of whitened coordinates, x = μ + L z, so log |det L| is added.
    """
    units = MixtureBase.fit(data)
    reach = BEYOND * units.whiten(data.double()).abs().max().item() + 2
    points = math.ceil(2 * reach / SPACING) + 1
    if points > (MOST_POINTS if data.shape[1] == 2 else MOST_POINTS**2):
        return None
    volume = units.root.diagonal().log().sum().item()

    def white(z: Tensor) -> Tensor:
        return energy(units.unwhiten(z))

    if data.shape[1] == 2:
        return PlaneGrid(reach, points, 2).log_normaliser(white, temperature) + volume
    line = torch.linspace(-reach, reach, points, dtype=data.dtype)[:, None]
    with torch.no_grad():
        values = -evaluate(white, line).double() / temperature
    return values.logsumexp(0).item() + math.log(2 * reach / (points - 1)) + volume
