"""Energies and log-densities that were made elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from burnin import Annealed, Knots, Langevin
from burnin.core import InputError
from burnin.discrepancies import test as goodness_of_fit
from burnin.evaluation.assess import Effort
from burnin.evaluation.chains import from_noise
from burnin.interop import as_model, check_model

EFFORT = Effort(
    samples=200,
    distance_sets=5,
    long_chains=100,
    long_steps=200,
    data_chains=100,
    data_steps=300,
    grid_points=41,
    cooling_steps=100,
    likelihood_particles=0,
)


class Bowl(nn.Module):
    """A network of somebody else, with an output of (n, 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.stiffness = nn.Parameter(torch.tensor([1.0, 4.0]))

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * (self.stiffness * x.square()).sum(1, keepdim=True)


def rows(n: int = 400) -> Tensor:
    """Of exp(-Bowl/½): standard deviations sqrt(½) and sqrt(⅛)."""
    noise = torch.randn(n, 2, generator=torch.Generator().manual_seed(0))
    return noise * torch.tensor([0.5, 0.125]).sqrt()


def test_a_module_is_sampled_at_the_samplers_temperature() -> None:
    model = as_model(Bowl(), rows(), sampler=Langevin(0.02, 0.5), num_steps=200)
    assert model.temperature == 0.5
    assert [name for name, _ in model.energy.named_parameters()] == ["function.stiffness"]
    drawn = from_noise(model, 4000, torch.Generator().manual_seed(1)).position
    # A variance of n draws is off by sqrt(2/n); a Langevin step of 0.02 widens the stiff one by 1/(1 - 0.04).
    assert (drawn.var(0) / torch.tensor([0.5, 0.125]) - 1).abs().max().item() < 4.5 * (
        2 / 4000
    ) ** 0.5 + 0.042


def test_a_log_density_is_an_energy() -> None:
    normal = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
    sampler = Annealed(Langevin(0.1, 0.25), Knots(((0, 2.0), (5, 1.0))), None)
    model = as_model(normal.log_prob, rows().numpy(), sampler=sampler, num_steps=10, log_density=True)
    x = rows(5)
    truth: Any = normal
    assert torch.allclose(model.energy(x), -0.25 * truth.log_prob(x))
    assert model.annealed.sampler is sampler
    assert model.plain.sampler is sampler.inner


def test_it_is_judged_and_tested_as_a_run_is() -> None:
    model = as_model(Bowl(), rows(), sampler=Langevin(0.05, 0.5), num_steps=100)
    found = check_model(model, effort=EFFORT)
    assert str(found.verdict.standing) == "a density and a generator"
    right = goodness_of_fit(model, rows(), "ksd", generator=torch.Generator().manual_seed(2))
    wrong = goodness_of_fit(model, 2 * rows(), "ksd", generator=torch.Generator().manual_seed(2))
    assert right.p_value > 0.01 > wrong.p_value


def test_what_is_no_energy_is_refused() -> None:
    sampler = Langevin(0.1, 1.0)
    with pytest.raises(InputError, match=r"shape \(4, 2\) for a batch of 4"):
        as_model(lambda x: x, rows(), sampler=sampler, num_steps=1)
    with pytest.raises(InputError, match="must be finite"):
        as_model(lambda x: x.sum(1) / 0, rows(), sampler=sampler, num_steps=1)
    with pytest.raises(InputError, match="2-D"):
        as_model(Bowl(), torch.zeros(5), sampler=sampler, num_steps=1)
    with pytest.raises(InputError, match="num_steps is 0"):
        as_model(Bowl(), rows(), sampler=sampler, num_steps=0)
