"""Unadjusted Langevin dynamics, the one update that every paper writes in its own way."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from burnin.core import (
    ChainState,
    Energy,
    Feed,
    InputError,
    Scheduled,
    StepInfo,
    energy_and_gradient,
    flat_norm,
    per_chain,
)
from burnin.samplers.schedules import Schedule, StepSize, Times


@dataclass(frozen=True)
class Langevin:
    """x ← x - step·∇E(x) + sqrt(2·step·T)·z, whose law is exp(-E/T) up to a bias of order step.

    Arguments:
        step_size: a number, a `Schedule` along the chain, or a rule that adapts to the chains' start.
        temperature: T.

    With a per-dimension `scale` s in the state, step becomes step·s: the same law, other speeds.

    Example:
        >>> import torch
        >>> sampler = Langevin(step_size=0.1, temperature=1.0)
        >>> energy = lambda x: 0.5 * x.square().sum(1)
        >>> state = sampler.init(energy, torch.zeros(4, 2))
        >>> from burnin.samplers import run
        >>> result = run(sampler, energy, state, num_steps=3, generator=torch.Generator().manual_seed(0))
        >>> result.state.position.shape, result.state.iteration
        (torch.Size([4, 2]), 3)
    """

    step_size: float | Schedule | StepSize
    temperature: float

    def __post_init__(self) -> None:
        require_temperature(self.temperature)
        if isinstance(self.step_size, int | float):
            require_step_size(self.step_size)

    @classmethod
    def hybrid(cls, epsilon: float, temperature: float) -> Langevin:
        """hybrid (9) and Algorithm 1: x - ε∇E + sqrt(2εT) z. Step ε, temperature T."""
        return cls(epsilon, temperature)

    @classmethod
    def convergent(cls, epsilon: float) -> Langevin:
        """convergent (2A): x - F′(x) + εz. Step 1, T = ε²/2; the energy is F."""
        return cls(1.0, epsilon**2 / 2)

    @classmethod
    def stein(cls, epsilon: float) -> Langevin:
        """stein (18): x + (ε/2)∇log q + N(0, ε). Step ε/2, T = 1; the energy is -log q."""
        return cls(epsilon / 2, 1.0)

    @classmethod
    def stein_untied(cls, epsilon: float, sigma: float) -> Langevin:
        """stein (19): x + ε∇log q + N(0, σ²), step and noise untied. Step ε, T = σ²/(2ε)."""
        return cls(epsilon, sigma**2 / (2 * epsilon))

    @classmethod
    def robust(cls, alpha: float) -> Langevin:
        """robust (4): x + (α/2)∇f + N(0, α). Step α/2, T = 1; the energy is -f."""
        return cls(alpha / 2, 1.0)

    @classmethod
    def jem(cls, step: float = 1.0, noise: float = 0.01) -> Langevin:
        """JEM: x + step·∇f + noise·z. T = noise²/(2·step): 5e-5 for JEM's own 1 and 0.01."""
        return cls(step, noise**2 / (2 * step))

    @property
    def independent(self) -> bool:
        """False for a step that adapts to all the chains' starts."""
        return isinstance(self.step_size, int | float) or not isinstance(self.step_size, StepSize)

    def init(self, energy: Energy, position: Tensor, *, scale: Tensor | None = None) -> ChainState:
        """The state of chains that start at `position`."""
        return start_state(energy, position, scale, self.step_size)

    def tempered(self, share: float) -> Langevin:
        """The sampler of p^share: step × share at temperature T / share.

        A step that adapts to the chains' start adapts to them here too.
        """
        require_share(share)
        step_size = self.step_size
        if isinstance(step_size, int | float):
            step_size = share * step_size
        elif isinstance(step_size, Schedule):
            step_size = Times(step_size, share)
        return Langevin(step_size, self.temperature / share)

    def schedule(self, iteration: int, num_steps: int) -> list[Scheduled]:
        """T throughout; the step where it follows a schedule."""
        if isinstance(self.step_size, int | float) or not isinstance(self.step_size, Schedule):
            return [Scheduled(self.temperature)] * num_steps
        rule = self.step_size
        return [Scheduled(self.temperature, rule.at(i)) for i in range(iteration, iteration + num_steps)]

    def step(self, energy: Energy, state: ChainState, feed: Feed) -> tuple[ChainState, StepInfo]:
        """One step of every living chain; one that leaves the finite numbers stays where it was, stopped."""
        state = with_step_size(state, feed)
        proposal = propose(state, feed)
        value, gradient = energy_and_gradient(energy, proposal)
        norm = flat_norm(gradient)
        alive = state.alive & torch.isfinite(value + norm)
        stopped = state.alive & ~alive
        # A compiled graph must not ask; the loop asks, as the answer nearly always saves four operations.
        if torch.compiler.is_compiling() or not bool(alive.all()):
            moved = per_chain(alive, proposal)
            proposal = torch.where(moved, proposal, state.position)
            value = torch.where(alive, value, state.energy)
            gradient = torch.where(moved, gradient, state.gradient)
            norm = flat_norm(gradient)
        new = replace(
            state,
            position=proposal,
            energy=value,
            gradient=gradient,
            alive=alive,
            iteration=state.iteration + 1,
        )
        return new, StepInfo(alive.to(value.dtype), norm, stopped.sum())


def start_state(
    energy: Energy, position: Tensor, scale: Tensor | None, step_size: float | Schedule | StepSize
) -> ChainState:
    """The state at the start of a chain, for every sampler of the room."""
    value, gradient = energy_and_gradient(energy, position)
    alive = torch.isfinite(value + flat_norm(gradient))
    if isinstance(step_size, int | float):
        first = float(step_size)
    elif isinstance(step_size, Schedule):
        first = step_size.at(0)
    else:
        first = step_size.first(value[alive], gradient[alive])
    if scale is None:
        scale = torch.ones(())
    scale = scale.to(position)  # a scale of higher precision would change the chains' own type
    return ChainState(
        position.detach(),
        value,
        gradient,
        torch.tensor(first, dtype=torch.float64),
        scale,
        alive,
        log_weight=torch.zeros_like(value),
    )


def with_step_size(state: ChainState, feed: Feed) -> ChainState:
    """The state with the step that a schedule sets, if one does."""
    step_size = feed.numbers.step_size
    if step_size is None:
        return state
    return replace(state, step_size=torch.as_tensor(step_size, dtype=torch.float64))


def propose(state: ChainState, feed: Feed) -> Tensor:
    """The Langevin move x - step·∇E + sqrt(2·step·T)·z."""
    step = (state.step_size * state.scale).to(state.position.dtype)
    spread = (2 * feed.numbers.temperature * step).sqrt()
    return torch.addcmul(state.position, step, state.gradient, value=-1).addcmul_(spread, feed.normal)


def require_temperature(temperature: float) -> None:
    """A temperature is positive and finite."""
    if not (math.isfinite(temperature) and temperature > 0):
        raise InputError(f"the temperature is {temperature}; it must be positive and finite")


def require_share(share: float) -> None:
    """A share of the energy is positive and finite."""
    if not (math.isfinite(share) and share > 0):
        raise InputError(
            f"chains on {share:g} of the energy are asked for (1 - β); β must be below 1, "
            "as p^0 has no density to sample"
        )


def require_step_size(step_size: float) -> None:
    """A step size is positive and finite."""
    if not (math.isfinite(step_size) and step_size > 0):
        raise InputError(f"step_size is {step_size}; it must be positive and finite")
