"""What numbers say about training and about chains."""

from burnin.diagnostics.chains import Mixing, mixing, rank_correlation

__all__ = ["Mixing", "mixing", "rank_correlation"]
