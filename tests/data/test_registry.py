"""The contract of a density, held by every name of the registry."""

from __future__ import annotations

import pytest
import torch

from burnin.core import InputError
from burnin.data import Checkerboard, Moons, Rings, density_names, make_density, make_known_density

NAMES = density_names()
KNOWN = density_names(known=True)
PICTURES = {
    "cifar10": 3072,
    "digits8": 64,
    "fashion-mnist": 784,
    "flowers": 3072,
    "mnist": 784,
    "svhn": 3072,
}


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_names() -> None:
    assert NAMES == (
        "checkerboard",
        "cifar10",
        "circles",
        "digits8",
        "fashion-mnist",
        "flowers",
        "funnel",
        "mixture8",
        "mixture8-unequal",
        "mnist",
        "moons",
        "pinwheel",
        "rings10",
        "rings4",
        "svhn",
        "swissroll",
        "two-scales",
    )
    assert set(NAMES) - set(KNOWN) == {*PICTURES, "moons", "swissroll"}
    assert make_density("rings10") == make_known_density("rings10") == Rings.paper()
    assert make_density("rings4") == Rings.four()
    assert make_density("moons") == Moons()
    assert make_density("checkerboard") == Checkerboard()


@pytest.mark.usefixtures("small_pictures")
@pytest.mark.parametrize("name", NAMES)
def test_draws(name: str) -> None:
    density = make_density(name)
    before = torch.get_rng_state()
    x = density.sample(7, seeded())
    assert x.shape == (7, density.dim)
    assert density.dim == {"rings10": 10, **PICTURES}.get(name, 2)
    assert x.dtype == torch.float32
    assert torch.equal(x, density.sample(7, seeded()))
    assert not torch.equal(x, density.sample(7, seeded(1)))
    generator = seeded()
    assert torch.equal(x, density.sample(7, generator))
    assert not torch.equal(x, density.sample(7, generator))
    assert density.sample(0, seeded()).shape == (0, density.dim)
    assert torch.equal(before, torch.get_rng_state())
    with pytest.raises(InputError, match="n is -1"):
        density.sample(-1, seeded())


@pytest.mark.parametrize("name", KNOWN)
def test_log_prob(name: str) -> None:
    density = make_known_density(name)
    x = density.sample(50, seeded())
    logs = density.log_prob(x)
    assert logs.shape == (50,)
    assert logs.dtype == torch.float32
    assert bool(logs.isfinite().all())
    assert torch.allclose(logs.double(), density.log_prob(x.double()), rtol=1e-4, atol=1e-4)
    assert torch.allclose(logs[3:4], density.log_prob(x[3:4]))
    assert density.log_prob(x[:0]).shape == (0,)
    bad = x.clone()
    bad[1, 0] = torch.nan
    assert density.log_prob(bad).isnan().nonzero().flatten().tolist() == [1]


@pytest.mark.parametrize("name", KNOWN)
def test_score_is_the_slope_of_log_prob(name: str) -> None:
    density = make_known_density(name)
    x = density.sample(20, seeded()).double().requires_grad_(True)
    assert torch.autograd.gradcheck(density.log_prob, (x,), eps=1e-7, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("name", KNOWN)
def test_points_of_wrong_shape(name: str) -> None:
    density = make_known_density(name)
    with pytest.raises(InputError, match=rf"shape \(4, 3\); wanted \(n, {density.dim}\)"):
        density.log_prob(torch.zeros(4, 3))
    with pytest.raises(InputError, match=r"shape \(2,\)"):
        density.log_prob(torch.zeros(2))
    with pytest.raises(InputError, match="floating-point"):
        density.log_prob(torch.zeros(4, density.dim, dtype=torch.int64))


def test_unknown_names() -> None:
    with pytest.raises(
        InputError, match=r"unknown density 'Ring4'; did you mean 'rings4'\? Known: "
    ) as caught:
        make_density("Ring4")
    assert all(name in str(caught.value) for name in NAMES)
    with pytest.raises(InputError, match=r"unknown density '§'\. Known: checkerboard, "):
        make_density("§")
    with pytest.raises(InputError, match="'moons' has no closed form") as caught:
        make_known_density("moons")
    assert all(name in str(caught.value) for name in KNOWN)
    with pytest.raises(InputError, match="did you mean 'funnel'"):
        make_known_density("funel")
