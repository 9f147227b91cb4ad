"""What is made small: objectives take negatives as an argument, or none; they own no sampler and no bank."""

from burnin.objectives.beta import VARIANTS, BetaInfo, Variant, beta_loss
from burnin.objectives.classification import Classification
from burnin.objectives.contrastive import ArmInfo, Negatives, contrast, pools_of
from burnin.objectives.direct import DirectObjective, Draw
from burnin.objectives.learned_stein import LearnedStein
from burnin.objectives.likelihood import HasNormaliser, Likelihood, log_likelihood
from burnin.objectives.noise import BaseContrast, ConditionalNoiseContrast, Corrected, NoiseContrast
from burnin.objectives.scores import DenoisingScoreMatching, Probes, ScoreMatching, score_matching_terms

__all__ = [
    "VARIANTS",
    "ArmInfo",
    "BaseContrast",
    "BetaInfo",
    "Classification",
    "ConditionalNoiseContrast",
    "Corrected",
    "DenoisingScoreMatching",
    "DirectObjective",
    "Draw",
    "HasNormaliser",
    "LearnedStein",
    "Likelihood",
    "Negatives",
    "NoiseContrast",
    "Probes",
    "ScoreMatching",
    "Variant",
    "beta_loss",
    "contrast",
    "log_likelihood",
    "pools_of",
    "score_matching_terms",
]
