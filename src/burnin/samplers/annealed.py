"""Chains that start hot and cool down to the model's temperature, with or without resampling."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from burnin.core import ChainState, Energy, Feed, InputError, Scheduled, StepInfo
from burnin.samplers.hmc import HMC
from burnin.samplers.langevin import Langevin
from burnin.samplers.mala import MALA
from burnin.samplers.schedules import Schedule

FAR_ALONG = 10**12
"""An iteration by which every schedule has reached its end."""


@dataclass(frozen=True)
class Annealed:
    """Any sampler of the room at temperature T·heat, the heat falling to 1 along the chain.

    Hot chains cross barriers that stop them at T. A cooling chain alone freezes into its modes long
    before T, in shares that hardly depend on the modes' mass at T. The importance weights of annealing
    put that right: when the heat goes from h to h', a chain's weight is multiplied by

        exp(-(1/h' - 1/h) · E(x)/T),

    and when the weights' effective number falls below `resample_below`·n, the chains are drawn anew by
    systematic resampling and the weights are even again (a sequential Monte Carlo sampler; Neal 2001,
    Del Moral et al. 2006). It costs no evaluation: the energy is known at every step. At the end of the
    cooling the chains follow exp(-E/T) as a population, masses of modes included, and go on unweighted.

    Arguments:
        inner: the sampler, whose temperature is T.
        heat: factor of the temperature, a schedule that ends at 1.
        resample_below: threshold in (0, 1]; None only cools.

    Example:
        >>> import torch
        >>> from burnin.samplers import Knots
        >>> sampler = Annealed(Langevin(0.1, 1.0), heat=Knots(((0, 8.0), (50, 1.0))), resample_below=0.5)
        >>> energy = lambda x: 0.5 * x.square().sum(1)
        >>> state = sampler.init(energy, 3 * torch.randn(64, 2, generator=torch.Generator().manual_seed(0)))
        >>> from burnin.samplers import run
        >>> result = run(sampler, energy, state, num_steps=60, generator=torch.Generator().manual_seed(0))
        >>> result.state.position.shape
        torch.Size([64, 2])
    """

    inner: Langevin | MALA | HMC
    heat: Schedule
    resample_below: float | None

    def __post_init__(self) -> None:
        end = self.heat.at(FAR_ALONG)
        if end != 1.0:
            raise InputError(f"the heat ends at {end:g}; it must end at 1, the model's own temperature")
        if self.resample_below is not None and not 0 < self.resample_below <= 1:
            raise InputError(f"resample_below is {self.resample_below}; it must lie in (0, 1]")

    @property
    def temperature(self) -> float:
        """The temperature that the chains cool down to."""
        return self.inner.temperature

    @property
    def independent(self) -> bool:
        """False with resampling, which picks chains by all their weights."""
        return self.resample_below is None and self.inner.independent

    def init(self, energy: Energy, position: Tensor, *, scale: Tensor | None = None) -> ChainState:
        """The state of chains that start at `position`."""
        return self.inner.init(energy, position, scale=scale)

    def tempered(self, share: float) -> Annealed:
        """The sampler of p^share, cooled by the same factors."""
        return replace(self, inner=self.inner.tempered(share))

    def schedule(self, iteration: int, num_steps: int) -> list[Scheduled]:
        """The inner sampler's numbers at the heat of each step, and how the cooling changes the weights."""
        inner = self.inner.schedule(iteration, num_steps)
        heats = [self.heat.at(max(0, i)) for i in range(iteration - 1, iteration + num_steps + 1)]
        return [self._heated(numbers, *heats[i : i + 3]) for i, numbers in enumerate(inner)]

    def step(self, energy: Energy, state: ChainState, feed: Feed) -> tuple[ChainState, StepInfo]:
        """Cools by one notch, resamples if the weights have become uneven, takes one inner step."""
        return self.inner.step(energy, self.reweighted(state, feed), feed)

    def reweighted(self, state: ChainState, feed: Feed) -> ChainState:
        """The chains after the notch of cooling that precedes this step."""
        numbers = feed.numbers
        if numbers.reweight == 0.0 or not bool(state.alive.any()):
            return state
        log_weight = state.log_weight + numbers.reweight * state.energy
        log_weight = torch.where(state.alive, log_weight, -math.inf)
        if effective_number(log_weight) >= numbers.resample_below * len(log_weight):
            return replace(state, log_weight=log_weight)
        chosen = systematic_resample(log_weight, feed.offset)
        return replace(
            state,
            position=state.position[chosen],
            energy=state.energy[chosen],
            gradient=state.gradient[chosen],
            alive=state.alive[chosen],
            log_weight=torch.zeros_like(log_weight),
        )

    def _heated(self, numbers: Scheduled, before: float, heat: float, after: float) -> Scheduled:
        if heat != 1.0:
            numbers = numbers._replace(temperature=self.temperature * heat)
        if self.resample_below is None or before == heat:
            return numbers
        # The last notch always resamples, so that what comes out needs no weights.
        return numbers._replace(
            reweight=-(1 / heat - 1 / before) / self.temperature,
            resample_below=math.inf if after == heat else self.resample_below,
        )


def effective_number(log_weight: Tensor) -> float:
    """(Σw)² / Σw², the number of evenly weighted chains that the weights are worth.

    Example:
        >>> import torch
        >>> effective_number(torch.zeros(10))
        10.0
    """
    return (2 * log_weight.logsumexp(0) - (2 * log_weight).logsumexp(0)).exp().item()


def systematic_resample(log_weight: Tensor, offset: Tensor) -> Tensor:
    """Indices of n chains, each drawn n·w times on average, rounded up or down by one shared uniform.

    Example:
        >>> import torch
        >>> weights = torch.tensor([0.5, 0.0, 0.25, 0.25])
        >>> systematic_resample(weights.log(), torch.tensor(0.5)).tolist()
        [0, 0, 2, 3]
    """
    n = len(log_weight)
    cumulative = (log_weight - log_weight.logsumexp(0)).double().exp().cumsum(0)
    points = (torch.arange(n, device=cumulative.device, dtype=torch.float64) + offset.double()) / n
    return torch.searchsorted(cumulative, points * cumulative[-1]).clamp(max=n - 1)
