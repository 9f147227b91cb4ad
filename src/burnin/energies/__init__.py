"""Energies: networks, densities that are known, and wrappers around either."""

from burnin.energies.convnet import ConvNet
from burnin.energies.ica import ICAEnergy
from burnin.energies.known import FromLogProb, GaussianEnergy
from burnin.energies.mixture import MixtureFactor
from burnin.energies.networks import MLP, FourierFeatures
from burnin.energies.rbm import GaussianBernoulliRBM
from burnin.energies.wrappers import GaussianFactor, Standardised

__all__ = [
    "MLP",
    "ConvNet",
    "FourierFeatures",
    "FromLogProb",
    "GaussianBernoulliRBM",
    "GaussianEnergy",
    "GaussianFactor",
    "ICAEnergy",
    "MixtureFactor",
    "Standardised",
]
