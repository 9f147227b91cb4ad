"""Diagnostics of training (d, r, oscillation, collapse, balance) and of chains (effective size, R-hat)."""

from burnin.diagnostics.balance import Balance, ChainNoise, balance
from burnin.diagnostics.chains import Mixing, mixing, rank_correlation
from burnin.diagnostics.collapse import (
    Collapse,
    CollapseDetector,
    Updates,
    count_updates,
    find_collapses,
)
from burnin.diagnostics.diagnosis import (
    MONITORS,
    ArmDiagnosis,
    ArmSeries,
    Correlations,
    Diagnosis,
    diagnose,
    read_series,
)
from burnin.diagnostics.oscillation import Oscillation, chance_quantile, classify

__all__ = [
    "MONITORS",
    "ArmDiagnosis",
    "ArmSeries",
    "Balance",
    "ChainNoise",
    "Collapse",
    "CollapseDetector",
    "Correlations",
    "Diagnosis",
    "Mixing",
    "Oscillation",
    "Updates",
    "balance",
    "chance_quantile",
    "classify",
    "count_updates",
    "diagnose",
    "find_collapses",
    "mixing",
    "rank_correlation",
    "read_series",
]
