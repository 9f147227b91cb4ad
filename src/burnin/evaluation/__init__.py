"""Judging a trained model: its density, its samples, its long-run chains."""

from burnin.evaluation.bridge import MixtureBase
from burnin.evaluation.conditional import Completed, complete
from burnin.evaluation.distance import DistanceScale, energy_distance
from burnin.evaluation.gaps import Gaps, Guide
from burnin.evaluation.grid import PlaneGrid, band_kl, band_masses, grid_kl
from burnin.evaluation.likelihood import Likelihood, LogNormaliser, likelihood, log_normaliser
from burnin.evaluation.model import Model
from burnin.evaluation.rings import count_rings, ring_bands
from burnin.evaluation.verdict import Evidence, Seen, Standing, Verdict, judge

__all__ = [
    "Completed",
    "DistanceScale",
    "Evidence",
    "Gaps",
    "Guide",
    "Likelihood",
    "LogNormaliser",
    "MixtureBase",
    "Model",
    "PlaneGrid",
    "Seen",
    "Standing",
    "Verdict",
    "band_kl",
    "band_masses",
    "complete",
    "count_rings",
    "energy_distance",
    "grid_kl",
    "judge",
    "likelihood",
    "log_normaliser",
    "ring_bands",
]
