"""Maximum likelihood, where the normaliser is known."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from burnin.core import Energy, InputError, evaluate
from burnin.objectives.direct import DirectObjective


@runtime_checkable
class HasNormaliser(Protocol):
    """An energy that knows log ∫ exp(-E/T) at the temperature it was made for."""

    def log_normaliser(self) -> Tensor:
        """log Z, 0-d, with a graph to the weights."""
        ...


def log_likelihood(energy: Energy, x: Tensor, temperature: float) -> Tensor:
    """log p(x) = -E(x)/T - log Z of each point.

    Raises:
        InputError: when the energy does not know its normaliser.

    Example:
        >>> log_likelihood(lambda x: x.square().sum(1), torch.zeros(1, 2), 1.0)
        Traceback (most recent call last):
        burnin.core.InputError: likelihood: the energy does not know its normaliser (it has no \
log_normaliser()); use an objective that does not need it
    """
    if not isinstance(energy, HasNormaliser):
        raise InputError(
            "likelihood: the energy does not know its normaliser (it has no log_normaliser()); use an "
            "objective that does not need it"
        )
    return evaluate(energy, x) / -temperature - energy.log_normaliser()


class Likelihood(DirectObjective):
    """-⟨log p(x)⟩ = ⟨E(x)⟩/T + log Z, for energies with a `log_normaliser`: linear ICA, a small RBM.

    The bound that objectives without a normaliser are held against (stein, section 8.1).

    Arguments:
        temperature: T.
    """

    def loss(
        self, energy: Energy, data: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, float]]:
        """The loss, and the batch's mean log-likelihood, which is minus the loss."""
        loss = -log_likelihood(energy, data, self.temperature).mean()
        return loss, {"log_likelihood": -loss.item()}
