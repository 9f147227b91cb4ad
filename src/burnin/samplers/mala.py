"""Metropolis-adjusted Langevin: the same proposal, with a check that makes the law exact."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from burnin.core import (
    ChainState,
    Energy,
    Feed,
    Scheduled,
    StepInfo,
    energy_and_gradient,
    flat_norm,
    per_chain,
)
from burnin.samplers.adaptation import TargetAcceptance
from burnin.samplers.langevin import (
    propose,
    require_share,
    require_step_size,
    require_temperature,
    start_state,
)


@dataclass(frozen=True)
class MALA:
    """Langevin proposals accepted with probability

        min(1, exp(-(E(x') - E(x))/T) · q(x | x') / q(x' | x)),

    so exp(-E/T) is exactly stationary (hybrid, section 4.2.5). A non-finite proposal is rejected and
    counted. The accepted state's energy and gradient are carried over: one evaluation a step.

    Arguments:
        step_size: the first step size.
        temperature: T.
        adaptation: makes the step follow a target acceptance; None keeps it fixed.

    Example:
        >>> import torch
        >>> sampler = MALA(0.1, 1.0, TargetAcceptance.hybrid_paper(until=100))
        >>> energy = lambda x: 0.5 * x.square().sum(1)
        >>> state = sampler.init(energy, torch.zeros(4, 2))
        >>> from burnin.samplers import run
        >>> result = run(sampler, energy, state, num_steps=3, generator=torch.Generator().manual_seed(0))
        >>> result.acceptance > 0.9
        True
    """

    step_size: float
    temperature: float
    adaptation: TargetAcceptance | None = None

    def __post_init__(self) -> None:
        require_temperature(self.temperature)
        require_step_size(self.step_size)

    @property
    def independent(self) -> bool:
        """False while the step follows the acceptance of all chains."""
        return self.adaptation is None

    def init(self, energy: Energy, position: Tensor, *, scale: Tensor | None = None) -> ChainState:
        """The state of chains that start at `position`."""
        return start_state(energy, position, scale, self.step_size)

    def tempered(self, share: float) -> MALA:
        """The sampler of p^share: step × share at temperature T / share."""
        require_share(share)
        return MALA(share * self.step_size, self.temperature / share, self.adaptation)

    def schedule(self, iteration: int, num_steps: int) -> list[Scheduled]:
        """T throughout; the gain while the step adapts."""
        return adapting_schedule(self.temperature, self.adaptation, iteration, num_steps)

    def step(self, energy: Energy, state: ChainState, feed: Feed) -> tuple[ChainState, StepInfo]:
        """One proposal and its acceptance, for every chain."""
        temperature = feed.numbers.temperature
        proposal = propose(state, feed)
        value, gradient = energy_and_gradient(energy, proposal)
        step = (state.step_size * state.scale).to(value.dtype)
        back = (state.position - proposal + step * gradient).square() / (4 * temperature * step)
        log_backward = -back.flatten(1).sum(1)
        log_forward = -0.5 * feed.normal.square().flatten(1).sum(1)
        log_ratio = -(value - state.energy) / temperature + log_backward - log_forward
        return metropolis(state, proposal, value, gradient, log_ratio, self.adaptation, feed)


def adapting_schedule(
    temperature: float, adaptation: TargetAcceptance | None, iteration: int, num_steps: int
) -> list[Scheduled]:
    """The schedule of a sampler at one temperature whose step may follow its acceptance."""
    if adaptation is None:
        return [Scheduled(temperature)] * num_steps
    steps = range(iteration, iteration + num_steps)
    return [Scheduled(temperature, gain=adaptation.gain(i)) for i in steps]


def metropolis(
    state: ChainState,
    proposal: Tensor,
    value: Tensor,
    gradient: Tensor,
    log_ratio: Tensor,
    adaptation: TargetAcceptance | None,
    feed: Feed,
) -> tuple[ChainState, StepInfo]:
    """Accepts each proposal with probability min(1, exp(log_ratio)); rejects and counts non-finite ones."""
    finite = torch.isfinite(value) & torch.isfinite(flat_norm(gradient)) & torch.isfinite(log_ratio)
    acceptance = torch.where(finite, log_ratio.clamp(max=0).exp(), torch.zeros_like(log_ratio))
    accept = state.alive & (feed.uniform < acceptance)
    moved = per_chain(accept, proposal)
    gradient = torch.where(moved, gradient, state.gradient)
    step_size = state.step_size
    if adaptation is not None:
        step_size = adaptation.next_step(step_size, acceptance, state.alive, feed.numbers.gain)
    new = replace(
        state,
        position=torch.where(moved, proposal, state.position),
        energy=torch.where(accept, value, state.energy),
        gradient=gradient,
        step_size=step_size,
        iteration=state.iteration + 1,
    )
    return new, StepInfo(acceptance, flat_norm(gradient), (state.alive & ~finite).sum())
