"""burnin with its neighbours: arviz, torch modules, torch.distributions, pytorch-ood, safetensors folders."""

from burnin.interop.arviz import to_arviz
from burnin.interop.distribution import EnergyDistribution
from burnin.interop.modules import as_model, check_model
from burnin.interop.outliers import EnergyDetector
from burnin.interop.pretrained import from_pretrained, save_pretrained

__all__ = [
    "EnergyDetector",
    "EnergyDistribution",
    "as_model",
    "check_model",
    "from_pretrained",
    "save_pretrained",
    "to_arviz",
]
