"""What is made small: objectives take negatives as an argument; they own no sampler and no bank."""

from burnin.objectives.beta import VARIANTS, BetaInfo, Variant, beta_loss
from burnin.objectives.contrastive import ArmInfo, Negatives, contrast, pools_of

__all__ = ["VARIANTS", "ArmInfo", "BetaInfo", "Negatives", "Variant", "beta_loss", "contrast", "pools_of"]
