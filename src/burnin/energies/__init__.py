"""Energies: networks, densities that are known, and wrappers around either."""

from burnin.energies.convnet import ConvNet
from burnin.energies.ica import ICAEnergy
from burnin.energies.joint import ClassEnergy, JointEnergy, joint_of
from burnin.energies.known import FromLogProb, GaussianEnergy
from burnin.energies.mixture import MixtureFactor
from burnin.energies.networks import MLP, FourierFeatures
from burnin.energies.rbm import GaussianBernoulliRBM
from burnin.energies.rbm_units import RBMInUnits
from burnin.energies.wide_resnet import WideResNet
from burnin.energies.wrappers import GaussianFactor, Standardised

__all__ = [
    "MLP",
    "ClassEnergy",
    "ConvNet",
    "FourierFeatures",
    "FromLogProb",
    "GaussianBernoulliRBM",
    "GaussianEnergy",
    "GaussianFactor",
    "ICAEnergy",
    "JointEnergy",
    "MixtureFactor",
    "RBMInUnits",
    "Standardised",
    "WideResNet",
    "joint_of",
]
