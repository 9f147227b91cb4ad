"""Whether the force of the chains is balanced with their noise (convergent, sections A and D)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from burnin.diagnostics.correlation import Values

State = Literal["balanced", "the noise dominates", "the drift dominates"]
ORDER = 10.0
"""Balanced is within this factor of 1: the same order of magnitude."""


@dataclass(frozen=True)
class ChainNoise:
    """What sets the length of a chain's noise.

    A step x - s·∇E + sqrt(2 s T)·z drifts by s·‖∇E‖ and is thrown by sqrt(2 s T dim) on average. Both
    are as long when r = ‖∇E‖ is

        r* = sqrt(2 T dim / s).

    The convergent paper's form has s = 1 and ε = sqrt(2 T), so r* = ε·sqrt(dim).

    Attributes:
        temperature: T of the chain.
        dim: the number of dimensions.
        inverse_scale: the mean of 1/sᵢ where each dimension has its own step s·sᵢ, with sᵢ fitted to the
            forces (⟨(∂E/∂xᵢ)²⟩ ∝ 1/sᵢ). Then r* = sqrt(2 T Σ(1/sᵢ) / s) has the same meaning.
        leapfrog: the chain is Hamiltonian; its step h drifts by h²/2·‖∇E‖, as Langevin with s = h²/2.
    """

    temperature: float
    dim: int
    inverse_scale: float = 1.0
    leapfrog: bool = False

    def level(self, step_size: Values) -> Values:
        """r* for each step size."""
        s = step_size**2 / 2 if self.leapfrog else step_size
        level: Values = np.sqrt(2 * self.temperature * self.dim * self.inverse_scale / s)
        return level


@dataclass(frozen=True)
class Balance:
    """The drift of a step against its noise.

    Attributes:
        ratio: s·r / sqrt(2 s T dim), the median over the window.
        ratio_to_one: s·r / sqrt(2 s T), against the noise of a single dimension: r/ε in the convergent
            paper's form, 5 to 10 in its section A.
        level: r*, at which the ratio is 1, at the last update.
        state: "balanced" where the ratio is between 1/10 and 10. In many dimensions a drift as long as the
            noise of a single one is balanced too: the paper holds r against ε, not against ε·sqrt(dim).
    """

    ratio: float
    ratio_to_one: float
    level: float
    state: State


def balance(r: Values, step_size: Values, noise: ChainNoise) -> Balance:
    """Compares r with the noise.

    Example:
        >>> r, step = np.array([0.1, 0.1]), np.ones(2)
        >>> images = ChainNoise(temperature=0.015**2 / 2, dim=3 * 32 * 32)  # ε = 0.015
        >>> found = balance(r, step, images)
        >>> found.state, round(found.ratio, 2), round(found.ratio_to_one, 1)
        ('balanced', 0.12, 6.7)
    """
    level = noise.level(step_size)
    ratio = float(np.median(r / level))
    to_one = ratio * float(np.sqrt(noise.dim))
    state: State = "balanced"
    if ratio < 1 / ORDER and to_one < 1:
        state = "the noise dominates"
    elif ratio > ORDER:
        state = "the drift dominates"
    return Balance(ratio, to_one, float(level[-1]), state)
