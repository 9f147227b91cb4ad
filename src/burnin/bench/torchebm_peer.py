"""torchebm's LangevinDynamics on the same network."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from burnin.bench.cases import SEEDS, STEP_SIZE, TEMPERATURE, Case, make_default_energy, make_start
from burnin.bench.contestants import Work


def make(case: Case) -> Work:
    """Its sampler as its documentation shows it, from the same start, with a generator of its own."""
    from torchebm.core import BaseModel
    from torchebm.samplers import LangevinDynamics

    class Wrapped(BaseModel):  # type: ignore[misc]
        """What torchebm asks of an energy."""

        def __init__(self) -> None:
            super().__init__()
            self.net = make_default_energy(case)

        def forward(self, x: Tensor) -> Tensor:
            """E(x)."""
            value: Tensor = self.net(x)
            return value

    start, stream = make_start(case), torch.Generator().manual_seed(SEEDS["chains"])
    sampler = LangevinDynamics(Wrapped(), step_size=STEP_SIZE, noise_scale=math.sqrt(TEMPERATURE))

    def take(steps: int) -> None:
        sampler.sample(x=start, n_steps=steps, generator=stream)

    return Work(take)
