"""One small run and one small table, made once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from burnin import EnergyDensity
from burnin.config import load_config
from burnin.runs import train_in

SMALL = [
    "run.batch_size=16",
    "run.updates=3",
    "run.tensorboard=false",
    "model.width=8",
    "model.depth=1",
    "sampler.num_steps=5",
    "sampler_from_noise={num_chains=8}",
]


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the 10-D rings: features, standardised coordinates, a learned factor, a Fisher scale."""
    path = tmp_path_factory.mktemp("interop") / "run"
    train_in(path, load_config("rings", SMALL), resume=False)
    return path


@pytest.fixture(scope="session")
def density() -> EnergyDensity:
    rows = np.random.default_rng(0).normal(size=(120, 2)) * [1.0, 3.0] + [0.0, 10.0]
    return EnergyDensity(max_updates=25, width=8, bounds={1: (0.0, None)}, random_state=0).fit(rows)
