"""What is made small: objectives take negatives as an argument; they own no sampler and no bank."""

from burnin.objectives.contrastive import ArmInfo, Negatives, contrast

__all__ = ["ArmInfo", "Negatives", "contrast"]
