"""Hamiltonian Monte Carlo: several leapfrog steps, then one Metropolis check."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from burnin.core import ChainState, Energy, Feed, InputError, Scheduled, StepInfo, energy_and_gradient
from burnin.samplers.adaptation import TargetAcceptance
from burnin.samplers.langevin import require_share, require_step_size, require_temperature, start_state
from burnin.samplers.mala import adapting_schedule, metropolis


@dataclass(frozen=True)
class HMC:
    """Follows H(x, p) = E(x) + ½ Σ sᵢ pᵢ², p ~ N(0, T/s), by leapfrog; accepts with min(1, exp(-ΔH/T)).

    One leapfrog step of size ε is a Langevin proposal of step ε²/2, so `step_size` here is ε.
    A trajectory that leaves the finite numbers is rejected and counted.

    Arguments:
        step_size: ε of the leapfrog integrator.
        num_leapfrog: leapfrog steps in a trajectory.
        temperature: T.
        adaptation: makes ε follow a target acceptance; None keeps it fixed.

    Example:
        >>> import torch
        >>> sampler = HMC(0.2, num_leapfrog=5, temperature=1.0)
        >>> energy = lambda x: 0.5 * x.square().sum(1)
        >>> state = sampler.init(energy, torch.zeros(4, 2))
        >>> from burnin.samplers import run
        >>> result = run(sampler, energy, state, num_steps=3, generator=torch.Generator().manual_seed(0))
        >>> result.acceptance > 0.9
        True
    """

    step_size: float
    num_leapfrog: int
    temperature: float
    adaptation: TargetAcceptance | None = None

    def __post_init__(self) -> None:
        require_temperature(self.temperature)
        require_step_size(self.step_size)
        if self.num_leapfrog < 1:
            raise InputError(f"num_leapfrog is {self.num_leapfrog}; it must be at least 1")

    @property
    def independent(self) -> bool:
        """False while the step follows the acceptance of all chains."""
        return self.adaptation is None

    def init(self, energy: Energy, position: Tensor, *, scale: Tensor | None = None) -> ChainState:
        """The state of chains that start at `position`."""
        return start_state(energy, position, scale, self.step_size)

    def tempered(self, share: float) -> HMC:
        """The sampler of p^share: ε × √share, as a Langevin step is ε²/2, at temperature T / share."""
        require_share(share)
        step_size = math.sqrt(share) * self.step_size
        return HMC(step_size, self.num_leapfrog, self.temperature / share, self.adaptation)

    def schedule(self, iteration: int, num_steps: int) -> list[Scheduled]:
        """T throughout; the gain while ε adapts."""
        return adapting_schedule(self.temperature, self.adaptation, iteration, num_steps)

    def step(self, energy: Energy, state: ChainState, feed: Feed) -> tuple[ChainState, StepInfo]:
        """One trajectory and its acceptance, for every chain."""
        position, gradient, scale = state.position, state.gradient, state.scale
        epsilon, temperature = state.step_size.to(position.dtype), feed.numbers.temperature
        momentum = feed.normal * (temperature / scale).sqrt()
        kinetic_before = (0.5 * scale * momentum.square()).flatten(1).sum(1)
        value = state.energy
        for _ in range(self.num_leapfrog):
            momentum = momentum - 0.5 * epsilon * gradient
            position = position + epsilon * scale * momentum
            value, gradient = energy_and_gradient(energy, position)
            momentum = momentum - 0.5 * epsilon * gradient
        kinetic_after = (0.5 * scale * momentum.square()).flatten(1).sum(1)
        log_ratio = -(value - state.energy + kinetic_after - kinetic_before) / temperature
        return metropolis(state, position, value, gradient, log_ratio, self.adaptation, feed)
