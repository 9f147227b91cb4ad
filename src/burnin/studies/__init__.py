"""Reproductions of the papers' experiments: rows that resume, a table, a figure, a check."""

from typing import Any

from burnin.extras import require_extra

require_extra("matplotlib")  # before the imports that would fail without it

from burnin.studies.bench_density import BENCH_DENSITY
from burnin.studies.calibration import CALIBRATION
from burnin.studies.convergent import CONVERGENT_TOY
from burnin.studies.critic_cost import CRITIC_COST
from burnin.studies.experiment import Experiment, run_study
from burnin.studies.flow_rank import FLOW_RANK
from burnin.studies.ica import ICA, ICA_PAPER
from burnin.studies.images import IMAGES
from burnin.studies.iris_gaps import IRIS_GAPS
from burnin.studies.jem import JEM, JEM_FASHION
from burnin.studies.log_z import LOG_Z
from burnin.studies.measured import MeasuredStudy
from burnin.studies.oscillation import OSCILLATION
from burnin.studies.pictures import CONVERGENT_MNIST
from burnin.studies.rbm_power import RBM_POWER
from burnin.studies.rbm_rank import RBM_RANK
from burnin.studies.rbm_savings import RBM_SAVINGS
from burnin.studies.rings import RINGS, RINGS_BETA, RINGS_CHANGES
from burnin.studies.robust import ROBUST_TOY
from burnin.studies.rows import Study
from burnin.studies.samplers import TWO_SAMPLERS
from burnin.studies.small_beta import SMALL_BETA
from burnin.studies.stein_images import STEIN_IMAGES
from burnin.studies.stein_toy import STEIN_TOY
from burnin.studies.table_schemes import TABLE_SCHEMES
from burnin.studies.verdicts import VERDICTS

_ALL: tuple[Experiment[Any], ...] = (
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
    ICA_PAPER,
    RBM_POWER,
    RBM_SAVINGS,
    RBM_RANK,
    CRITIC_COST,
    FLOW_RANK,
    STEIN_IMAGES,
    LOG_Z,
    CALIBRATION,
    BENCH_DENSITY,
    TABLE_SCHEMES,
    IRIS_GAPS,
    *IMAGES,
    SMALL_BETA,
    JEM,
    JEM_FASHION,
)
STUDIES: dict[str, Experiment[Any]] = {study.name: study for study in _ALL}

__all__ = ["STUDIES", "Experiment", "MeasuredStudy", "Study", "run_study"]
