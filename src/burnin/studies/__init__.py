"""Reproductions of the papers' experiments: rows that resume, a table, a figure, a check."""

from burnin.studies.convergent import CONVERGENT_TOY
from burnin.studies.ica import ICA
from burnin.studies.oscillation import OSCILLATION
from burnin.studies.pictures import CONVERGENT_MNIST
from burnin.studies.rings import RINGS, RINGS_BETA, RINGS_CHANGES
from burnin.studies.robust import ROBUST_TOY
from burnin.studies.rows import Study, run_study
from burnin.studies.samplers import TWO_SAMPLERS
from burnin.studies.stein_toy import STEIN_TOY
from burnin.studies.verdicts import VERDICTS

_ALL = (
    RINGS,
    RINGS_CHANGES,
    RINGS_BETA,
    ROBUST_TOY,
    TWO_SAMPLERS,
    CONVERGENT_TOY,
    CONVERGENT_MNIST,
    OSCILLATION,
    VERDICTS,
    STEIN_TOY,
    ICA,
)
STUDIES: dict[str, Study] = {study.name: study for study in _ALL}

__all__ = ["STUDIES", "Study", "run_study"]
