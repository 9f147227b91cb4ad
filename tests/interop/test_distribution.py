"""Trained densities with the face of torch.distributions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Distribution

from burnin import MALA, EnergyDensity
from burnin.core import InputError
from burnin.data import Frame
from burnin.evaluation.normaliser import Normaliser
from burnin.interop import EnergyDistribution, as_model


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def energy(x: Tensor) -> Tensor:
    return 0.25 * (x - 1).square().sum(1)


@pytest.fixture(scope="module")
def normal() -> EnergyDistribution:
    """exp(-E/½) is N(1, I) in two dimensions."""
    model = as_model(
        energy, 1 + torch.randn(500, 2, generator=stream()), sampler=MALA(0.5, 0.5), num_steps=60
    )
    return EnergyDistribution.of(model, generator=stream(1))


def test_it_is_a_distribution_of_torch(normal: EnergyDistribution) -> None:
    truth: Any = torch.distributions.MultivariateNormal(torch.ones(2), torch.eye(2))
    x = torch.randn(3, 5, 2, generator=stream(2))
    assert isinstance(normal, Distribution)
    assert (normal.event_shape, normal.batch_shape, normal.has_rsample) == ((2,), (), False)
    assert normal.log_prob(x).shape == (3, 5)
    assert torch.allclose(normal.log_prob(x), truth.log_prob(x), atol=1e-3)  # log Z by a grid
    assert torch.allclose(normal.log_prob(x.double()), truth.log_prob(x).double(), atol=1e-3)
    y = x.clone().requires_grad_(True)
    assert torch.allclose(torch.autograd.grad(normal.log_prob(y).sum(), y)[0], 1 - x, atol=1e-5)
    support: Any = normal.support
    assert bool(support.check(x).all())
    with pytest.raises(ValueError, match="support"):
        normal.log_prob(torch.full((2,), math.nan))
    assert "a grid" in repr(normal)


def test_its_samples_follow_it(normal: EnergyDistribution) -> None:
    drawn = normal.sample((2000,), generator=stream(3))
    assert drawn.shape == (2000, 2)
    assert (drawn.mean(0) - 1).abs().max().item() < 4.5 / 2000**0.5
    assert (drawn.var(0) - 1).abs().max().item() < 4.5 * (2 / 2000) ** 0.5
    assert torch.equal(drawn[:3], normal.sample((2000,), generator=stream(3))[:3])
    assert normal.sample(generator=stream()).shape == (2,)
    assert normal.sample((0, 3)).shape == (0, 3, 2)
    copies = normal.expand((4,))
    assert copies.sample((3,), generator=stream()).shape == (3, 4, 2)
    assert copies.log_prob(torch.zeros(2)).shape == (4,)


def test_the_interval_is_that_of_log_z(normal: EnergyDistribution) -> None:
    known = Normaliser(2.0, 1.5, 2.25, "annealed importance sampling", trusted=False)
    model = as_model(energy, torch.randn(50, 2, generator=stream()), sampler=MALA(0.5, 0.5), num_steps=5)
    p = EnergyDistribution.of(model, normaliser=known)
    low, high = p.log_prob_interval(torch.ones(2))
    assert (low.item(), high.item()) == (-2.25, -1.5)
    assert "not to be trusted" in repr(p)


def test_a_fitted_table_is_one_in_its_own_units(density: EnergyDensity) -> None:
    p = EnergyDistribution.of(density)
    rows = np.array([[0.0, 10.0], [1.0, 12.0]])
    assert p.log_prob(torch.from_numpy(rows)).numpy() == pytest.approx(density.score_samples(rows))
    drawn = p.sample((20,), generator=stream())
    assert drawn.shape == (20, 2)
    # The second column is bounded by 0: no sample is below, and there the density has no support.
    assert bool((drawn[:, 1] >= 0).all())
    with pytest.raises(ValueError, match="support"):
        p.log_prob(torch.tensor([0.0, -1.0]))


def test_a_run_is_one(run_folder: Path) -> None:
    known = Normaliser(0.0, 0.0, 0.0, "nobody", trusted=False)
    p = EnergyDistribution.of(run_folder, normaliser=known)
    assert p.sample((3,), generator=stream()).shape == (3, 10)
    assert p.log_prob(torch.zeros(4, 10)).shape == (4,)
    with pytest.raises(InputError, match="give a generator"):
        EnergyDistribution.of(run_folder)


def test_what_cannot_be_one_is_refused(tmp_path: Path) -> None:
    words = Frame({"colour": np.array(["red", "blue"] * 10, dtype=object), "size": np.arange(20.0) ** 1.5})
    fitted = EnergyDensity(max_updates=1, width=4, random_state=0, particles=8).fit(words)
    with pytest.raises(InputError, match="colour holds words"):
        EnergyDistribution.of(fitted)
    wide = as_model(energy, torch.randn(9, 200, generator=stream()), sampler=MALA(0.1, 0.5), num_steps=1)
    with pytest.raises(InputError, match="beyond 100 dimensions"):
        EnergyDistribution.of(wide, generator=stream())
    with pytest.raises(InputError, match="is no run"):
        EnergyDistribution.of(tmp_path)
    with pytest.raises(InputError, match="use as_model"):
        EnergyDistribution.of(energy)  # type: ignore[arg-type]
