"""Energies: networks, densities that are known, and wrappers around either."""

from burnin.energies.convnet import ConvNet
from burnin.energies.known import FromLogProb, GaussianEnergy
from burnin.energies.networks import MLP, FourierFeatures
from burnin.energies.wrappers import GaussianFactor, Standardised

__all__ = [
    "MLP",
    "ConvNet",
    "FourierFeatures",
    "FromLogProb",
    "GaussianEnergy",
    "GaussianFactor",
    "Standardised",
]
