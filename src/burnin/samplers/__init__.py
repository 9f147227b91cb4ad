"""Samplers: Langevin, MALA, HMC: ``init``, ``schedule`` and one pure ``step``. `run` is the only loop."""

from burnin.samplers.adaptation import TargetAcceptance
from burnin.samplers.annealed import Annealed
from burnin.samplers.engine import Compile, Engine
from burnin.samplers.hmc import HMC
from burnin.samplers.keep import RowFile, ToDisk
from burnin.samplers.langevin import Langevin
from burnin.samplers.mala import MALA
from burnin.samplers.prepared import Prepared
from burnin.samplers.run import RunResult, Trace, run
from burnin.samplers.schedules import (
    Knots,
    OverEnergyNorm,
    OverGradientNorm,
    Schedule,
    StepSize,
)

__all__ = [
    "HMC",
    "MALA",
    "Annealed",
    "Compile",
    "Engine",
    "Knots",
    "Langevin",
    "OverEnergyNorm",
    "OverGradientNorm",
    "Prepared",
    "RowFile",
    "RunResult",
    "Schedule",
    "StepSize",
    "TargetAcceptance",
    "ToDisk",
    "Trace",
    "run",
]
