"""Densities on a grid in a plane, where they can be seen and compared to the truth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import Energy, InputError, KnownDensity, evaluate, flat_norm


@dataclass(frozen=True)
class PlaneGrid:
    """A square grid on the plane of the first two coordinates, all others 0.

    Attributes:
        half_width: the grid covers [-half_width, half_width]².
        points: grid points along each axis.
        dim: number of dimensions of the space around the plane.

    Example:
        >>> PlaneGrid(4.0, 5, dim=10).positions().shape
        torch.Size([25, 10])
    """

    half_width: float
    points: int
    dim: int

    def axis(self) -> Tensor:
        """The coordinates along one axis."""
        return torch.linspace(-self.half_width, self.half_width, self.points)

    def positions(self) -> Tensor:
        """Every grid point as a point of the space, (points², dim), the first coordinate slowest."""
        axis = self.axis()
        plane = torch.cartesian_prod(axis, axis)
        return torch.cat([plane, torch.zeros(len(plane), self.dim - 2)], 1)

    def radius(self) -> Tensor:
        """Distance of each grid point from the origin, (points²,)."""
        return flat_norm(self.positions()[:, :2])

    def log_density(self, energy: Energy, temperature: float, *, chunk: int = 16384) -> Tensor:
        """log p on the grid at the model's temperature, -E/T, normalised over the grid's points."""
        with torch.no_grad():
            values = [evaluate(energy, part) for part in torch.split(self.positions(), chunk)]
        return (-torch.cat(values).double() / temperature).log_softmax(0)

    def log_likelihood(self, energy: Energy, temperature: float, data: Tensor) -> float:
        """Mean log-density of data in the plane, -E/T - log Z, with log Z by the grid."""
        if self.dim != 2:
            raise InputError(f"a grid gives the likelihood in two dimensions; the data has {self.dim}")
        with torch.no_grad():
            of_data = evaluate(energy, data).double() / -temperature
        return of_data.mean().item() - self.log_normaliser(energy, temperature)

    def log_normaliser(self, energy: Energy, temperature: float, *, chunk: int = 16384) -> float:
        """log Z = log of the integral of exp(-E/T) over the grid's square."""
        with torch.no_grad():
            values = [evaluate(energy, part).double() for part in torch.split(self.positions(), chunk)]
        cell = (2 * self.half_width / (self.points - 1)) ** 2
        return (-torch.cat(values) / temperature).logsumexp(0).item() + math.log(cell)

    def log_truth(self, density: KnownDensity) -> Tensor:
        """The log-density of the truth on the grid, normalised over the grid's points."""
        return density.log_prob(self.positions().double()).log_softmax(0)


def grid_kl(log_truth: Tensor, log_model: Tensor) -> float:
    """KL(true ‖ model) = Σ p (log p - log q) in nats, of two densities normalised on the same grid.

    Example:
        >>> import torch
        >>> p, q = torch.tensor([0.5, 0.5]).log(), torch.tensor([0.25, 0.75]).log()
        >>> round(grid_kl(p, q), 6)
        0.143841
    """
    p = log_truth.exp()
    terms = torch.where(p > 0, p * (log_truth - log_model), torch.zeros_like(p))
    return terms.sum().item()


def band_kl(log_truth: Tensor, log_model: Tensor, bands: list[Tensor]) -> float:
    """The same KL with each band of the grid renormalised by itself: shape without mass.

    The mean of the bands' KL, weighted by the truth's mass in each.

    Arguments:
        log_truth: log-density of the truth, normalised on the grid.
        log_model: likewise of the model.
        bands: boolean masks over the grid.
    """
    total = weight = 0.0
    for band in bands:
        mass = log_truth[band].logsumexp(0).exp().item()
        total += mass * grid_kl(log_truth[band].log_softmax(0), log_model[band].log_softmax(0))
        weight += mass
    return total / weight


def band_masses(log_density: Tensor, bands: list[Tensor]) -> list[float]:
    """The mass of a grid density in each band."""
    return [log_density[band].logsumexp(0).exp().item() for band in bands]
