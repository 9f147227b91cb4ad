"""The held-out likelihood while a model is being trained: annealed importance sampling along its own way."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from burnin.core import Energy, evaluate
from burnin.evaluation.bridge import MixtureBase
from burnin.samplers import MALA, Engine, TargetAcceptance, run

RESAMPLE_BELOW = 0.5
MOVES, SETTLING = 10, 100


class LikelihoodTrack:
    """Follows the mean log-density of held-out points from one look at a training energy to the next.

    A population starts at a Gaussian fitted to the data, whose normaliser is known. At each look it is
    weighted by exp(-(E_now - E_before)/T), whose mean is the ratio of the two normalisers, drawn anew where
    the weights have become uneven, and moved on by Metropolis-adjusted Langevin steps under the new energy.
    So log Z is followed for the price of a few steps, where finding it anew would take thousands; the laws on
    the way are those that training passes. It is as good as the population mixes, which is enough to
    see when the likelihood stops rising; what is told in the end is `normalise`d afresh.

    Arguments:
        temperature: T.
        held_out: the points, (n, dim).
        base: a Gaussian near the energy that training starts from.
        generator: the population's stream.
        particles: their number.
        engine: how the steps are computed.

    Example:
        >>> stream = torch.Generator().manual_seed(0)
        >>> points = torch.randn(4000, 2, generator=stream)
        >>> track = LikelihoodTrack(1.0, points, MixtureBase.fit(points), stream, particles=1000)
        >>> wide, narrow = (lambda x, s=s: 0.5 * (x / s).square().sum(1) for s in (1.3, 0.8))
        >>> [round(track.look(energy), 1) for energy in (wide, narrow)]  # -log 2π - log s² - 1/s²
        [-3.0, -3.0]
    """

    def __init__(
        self,
        temperature: float,
        held_out: Tensor,
        base: MixtureBase,
        generator: torch.Generator,
        *,
        particles: int = 256,
        engine: Engine | None = None,
    ) -> None:
        self._temperature = temperature
        self._held_out = held_out
        self._generator = generator
        self._engine = engine or Engine()
        self._position = base.sample(particles, generator)
        self._before = base.log_prob(self._position)
        self._log_weight = torch.zeros(particles, dtype=torch.float64)
        self._log_z = 0.0
        self._step_size = 0.1

    def restart(self, energy: Energy, position: Tensor) -> None:
        """Takes draws that are near an energy which was trained before; from here on log Z counts from 0."""
        self._position = position
        self._move(energy, SETTLING)
        self._log_weight, self._log_z = torch.zeros(len(position), dtype=torch.float64), 0.0

    def state(self) -> dict[str, Tensor]:
        """Everything that the next look depends on."""
        return {
            "position": self._position,
            "before": self._before,
            "log_weight": self._log_weight,
            "numbers": torch.tensor([self._log_z, self._step_size], dtype=torch.float64),
            "stream": self._generator.get_state(),
        }

    def restore(self, state: dict[str, Tensor]) -> None:
        """The inverse of `state`."""
        self._position, self._before = state["position"].clone(), state["before"].clone()
        self._log_weight = state["log_weight"].clone()
        self._log_z, self._step_size = state["numbers"].tolist()
        self._generator.set_state(state["stream"])

    def look(self, energy: Energy) -> float:
        """The held-out points' mean log-density under the energy as it is now."""
        with torch.no_grad():
            now = -evaluate(energy, self._position).double() / self._temperature
            held = -evaluate(energy, self._held_out).double().mean().item() / self._temperature
        self._log_weight = self._log_weight + now - self._before
        n = len(self._log_weight)
        log_z = self._log_z + self._log_weight.logsumexp(0).item() - math.log(n)
        share = self._log_weight.softmax(0)
        if (1 / share.square().sum()).item() < RESAMPLE_BELOW * n:
            picked = torch.multinomial(share, n, replacement=True, generator=self._generator)
            self._position, self._log_z = self._position[picked], log_z
            self._log_weight = torch.zeros_like(self._log_weight)
        self._move(energy, MOVES)
        return held - log_z

    def _move(self, energy: Energy, num_steps: int) -> None:
        sampler = MALA(self._step_size, self._temperature, TargetAcceptance.optimal(until=None))
        state = sampler.init(energy, self._position)
        moved = run(
            sampler, energy, state, num_steps=num_steps, generator=self._generator, engine=self._engine
        )
        self._position, self._step_size = moved.state.position, float(moved.state.step_size)
        self._before = -moved.state.energy.double() / self._temperature
