"""The contract of objectives without chains: a loss of the energy, the data and random numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from burnin.core import Energy, InputError

Draw = Callable[[], Tensor]
"""Gives a fresh batch of data."""


class DirectObjective(nn.Module, ABC):
    """What is made small without negatives. It owns no sampler and no chains.

    All that it learns beside the energy (a critic, a normaliser) and all that it was fitted with are its
    parameters and buffers, so that a checkpoint of its `state_dict` and of its `optimizers` is whole.

    Arguments:
        temperature: the one T: scores are -∇E/T and log-densities -E/T up to a constant.
    """

    def __init__(self, temperature: float) -> None:
        super().__init__()
        if not temperature > 0:
            raise InputError(f"the temperature is {temperature}; it must be positive")
        self.temperature = temperature

    @abstractmethod
    def loss(
        self, energy: Energy, data: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, float]]:
        """The loss of a batch, with its graph to the weights, and numbers worth logging."""
        ...

    def before_update(self, energy: Energy, draw: Draw, generator: torch.Generator) -> None:
        """What is learned against the energy before each of its updates, on batches of its own.

        Nothing, but for an objective with an adversary.
        """

    def companions(self) -> Sequence[nn.Parameter]:
        """Parameters of the objective that the energy's own optimiser learns along with the energy's."""
        return ()

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """The objective's own optimisers, by name, for checkpoints and for the guard."""
        return {}


def require_above_zero(owner: str, **numbers: float) -> None:
    """Refuses settings that must be positive and are not.

    Example:
        >>> require_above_zero("denoising", noise_sd=0.0)
        Traceback (most recent call last):
        burnin.core.InputError: denoising: noise_sd is 0.0; it must be above 0
    """
    for name, value in numbers.items():
        if not value > 0:
            raise InputError(f"{owner}: {name} is {value}; it must be above 0")
