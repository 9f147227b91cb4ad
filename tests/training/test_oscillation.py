"""Training whose oscillation is known: weak at a small learning rate, strong at a large one.

Only the magnitude of a Gaussian's energy is learned, E = exp(a)·‖x‖²/2, and negatives are drawn from the
model itself. Then ∂loss/∂a = d, whose mean is (dim/2)·a for small a, so gradient descent with rate γ does
a ← (1 - κ)·a - γ·e with κ = γ·dim/2 and the batch's error e, and

    ρ_k = -(κ/2)·(1 - κ)^(k-1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from burnin.core import Drawn
from burnin.diagnostics import ArmDiagnosis, diagnose
from burnin.rng import Streams
from burnin.samplers import Langevin
from burnin.starts.stateless import Stateless
from burnin.training import Arm, Parts, Trainer
from tests.diagnostics.series import bartlett_error

DIM, BATCH, UPDATES = 10, 200, 2000


class Magnitude(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * self.a.exp() * x.square().sum(1)


@dataclass(frozen=True)
class Exactly(Stateless):
    """Draws from the model, so that no chain is needed."""

    model: Magnitude

    def draw(self, data: Tensor, generator: torch.Generator) -> Drawn:
        return Drawn(torch.randn(data.shape, generator=generator) * math.exp(-self.model.a.item() / 2))


class Normal:
    dim = DIM

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        return torch.randn(n, DIM, generator=generator)


def trained(kappa: float) -> ArmDiagnosis:
    energy = Magnitude()
    trainer = Trainer(
        Parts(
            energy=energy,
            data=Normal(),
            arms=[Arm("exact", Exactly(energy), Langevin(0.1, 1.0), num_steps=0)],
            optimizer=torch.optim.SGD(energy.parameters(), lr=2 * kappa / DIM),
        ),
        batch_size=BATCH,
        streams=Streams(0),
    )
    return diagnose([{"step": t, **trainer.update()} for t in range(1, UPDATES + 1)]).arms[0]


@pytest.mark.parametrize(
    ("kappa", "kind"), [(0.02, "weak"), (0.5, "strong"), (1.0, "strong"), (1.5, "strong")]
)
def test_the_rate_decides_and_lags_are_those_of_theory(kappa: float, kind: str) -> None:
    found = trained(kappa)
    assert found.oscillation.kind == kind
    assert found.correlations is not None

    def rho(k: int) -> float:
        return 1.0 if k == 0 else -(kappa / 2) * (1 - kappa) ** (abs(k) - 1)

    for k in range(1, 6):
        assert abs(found.correlations.d[k] - rho(k)) < 4 * bartlett_error(rho, k, UPDATES), k
