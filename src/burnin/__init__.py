"""burnin: train, sample and judge energy-based models.

An EBM gives each input an energy E(x), low where data is, and so a density p(x) ∝ exp(-E(x)/T).
Importing burnin loads no plotting, no command line and no scikit-learn.
"""

from typing import TYPE_CHECKING

from burnin.core import (
    BurninError,
    ChainState,
    CheckpointError,
    DivergedError,
    Energy,
    Feed,
    InputError,
    Outcome,
    Sampler,
    Scheduled,
    StepInfo,
    energy_and_gradient,
    evaluate,
)
from burnin.rng import Streams
from burnin.samplers import HMC, MALA, Annealed, Engine, Knots, Langevin, TargetAcceptance, run
from burnin.starts import Bank, FromData, FromNoise

if TYPE_CHECKING:
    from burnin.estimator import EnergyDensity

__version__ = "0.1.0"

__all__ = [
    "HMC",
    "MALA",
    "Annealed",
    "Bank",
    "BurninError",
    "ChainState",
    "CheckpointError",
    "DivergedError",
    "Energy",
    "EnergyDensity",
    "Engine",
    "Feed",
    "FromData",
    "FromNoise",
    "InputError",
    "Knots",
    "Langevin",
    "Outcome",
    "Sampler",
    "Scheduled",
    "StepInfo",
    "Streams",
    "TargetAcceptance",
    "energy_and_gradient",
    "evaluate",
    "run",
]


def __getattr__(name: str) -> object:
    """`EnergyDensity` is loaded when it is first asked for: scikit-learn takes a while."""
    if name == "EnergyDensity":
        from burnin.estimator import EnergyDensity

        return EnergyDensity
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
