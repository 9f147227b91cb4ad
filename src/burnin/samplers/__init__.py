"""Samplers: Langevin, MALA, HMC. Each is ``init`` + one pure ``step``; `run` is the only loop."""

from burnin.samplers.adaptation import TargetAcceptance
from burnin.samplers.annealed import Annealed
from burnin.samplers.hmc import HMC
from burnin.samplers.langevin import Langevin
from burnin.samplers.mala import MALA
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
    "Knots",
    "Langevin",
    "OverEnergyNorm",
    "OverGradientNorm",
    "RunResult",
    "Schedule",
    "StepSize",
    "TargetAcceptance",
    "Trace",
    "run",
]
