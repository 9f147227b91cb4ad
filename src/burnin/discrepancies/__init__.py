"""Stein discrepancies: test and rank models from data and the models' scores alone, without a sample.

`test` says whether data came from a model, `compare` which of several models is nearest to it. What they are
made of is here too: kernel discrepancies (`ksd`, `linear_ksd`, `fssd`) and the learned one (`learn`,
`learn_with`).
"""

from burnin.discrepancies.critics import CriticSettings, TrainedCritics, train_critics
from burnin.discrepancies.finite_set import FSSD, fit_locations, fssd
from burnin.discrepancies.goodness import METHODS, GoodnessOfFit, Method, test
from burnin.discrepancies.kernel_settings import KernelSettings
from burnin.discrepancies.kernelised import KSD, LinearKSD, ksd, linear_ksd, optimise_bandwidth
from burnin.discrepancies.kernels import RBF, InverseMultiquadric, Kernel, median_bandwidth
from burnin.discrepancies.learned import Learned, learn, optimal_terms
from burnin.discrepancies.models import Model, Points, as_score, evaluate_scores, standardised
from burnin.discrepancies.own_critic import learn_with
from burnin.discrepancies.ranking import RANKING_METHODS, Comparison, Difference, Ranked, compare

__all__ = [
    "FSSD",
    "KSD",
    "METHODS",
    "RANKING_METHODS",
    "RBF",
    "Comparison",
    "CriticSettings",
    "Difference",
    "GoodnessOfFit",
    "InverseMultiquadric",
    "Kernel",
    "KernelSettings",
    "Learned",
    "LinearKSD",
    "Method",
    "Model",
    "Points",
    "Ranked",
    "TrainedCritics",
    "as_score",
    "compare",
    "evaluate_scores",
    "fit_locations",
    "fssd",
    "ksd",
    "learn",
    "learn_with",
    "linear_ksd",
    "median_bandwidth",
    "optimal_terms",
    "optimise_bandwidth",
    "standardised",
    "test",
    "train_critics",
]
