"""Diagnostics of training: d, r, their correlations, oscillation, collapse, balance with the noise."""

from burnin.diagnostics.balance import Balance, ChainNoise, balance
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
    "Oscillation",
    "Updates",
    "balance",
    "chance_quantile",
    "classify",
    "count_updates",
    "diagnose",
    "find_collapses",
    "read_series",
]
