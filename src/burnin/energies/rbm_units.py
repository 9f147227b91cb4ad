"""A Gaussian-Bernoulli RBM of data in units of its spread."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from burnin.energies.rbm import GaussianBernoulliRBM


class RBMInUnits(nn.Module):
    """E(x) = machine((x - mean) / std): visible units that have the data's spread instead of variance 1.

    Arguments:
        machine: a machine of the standardised data.
        mean: of the data, (dim,).
        std: its spread, (dim,).

    Example:
        >>> machine = GaussianBernoulliRBM(torch.zeros(2, 1), torch.zeros(2), torch.zeros(1))
        >>> wide = RBMInUnits(machine, torch.zeros(2), torch.full((2,), 3.0))
        >>> wide.gibbs(torch.zeros(1000, 2), 1, torch.Generator().manual_seed(0)).std().round(decimals=1)
        tensor(3.)
    """

    mean: Tensor
    std: Tensor

    def __init__(self, machine: GaussianBernoulliRBM, mean: Tensor, std: Tensor) -> None:
        super().__init__()
        self.machine = machine
        self.register_buffer("mean", mean.clone())
        self.register_buffer("std", std.clone())

    def forward(self, x: Tensor) -> Tensor:
        """E(x), (n,)."""
        energy: Tensor = self.machine(self._units(x))
        return energy

    def energy_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """E(x) and ∇E(x), without a graph."""
        energy, gradient = self.machine.energy_and_gradient(self._units(x))
        return energy, gradient / self.std

    def log_normaliser(self) -> Tensor:
        """log ∫ exp(-E/T) dx, the machine's and the change of variables'."""
        return self.machine.log_normaliser() + self.std.log().sum()

    def gibbs(self, x: Tensor, num_steps: int, generator: torch.Generator) -> Tensor:
        """`num_steps` block Gibbs steps of every row."""
        return self.mean + self.std * self.machine.gibbs(self._units(x), num_steps, generator)

    def _units(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std
