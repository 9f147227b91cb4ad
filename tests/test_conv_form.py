"""Convolutional energies written out: the tape's numbers, and None wherever they would be others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from burnin import Langevin, run
from burnin.conv_form import conv_form
from burnin.core import energy_and_gradient
from burnin.energies import ConvNet, GaussianFactor, Standardised
from burnin.energies.layers import ACTIVATIONS
from burnin.samplers import Engine


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def net(shape: tuple[int, int, int] = (2, 9, 12), **options: object) -> ConvNet:
    return ConvNet(shape, width=3, generator=stream(), **options)  # type: ignore[arg-type]


def standardised(inner: nn.Module) -> Standardised:
    return Standardised(
        inner, torch.randn(216, generator=stream(1)), torch.rand(216, generator=stream(2)) + 0.5
    )


def factor(inner: nn.Module, learned: bool = False) -> GaussianFactor:
    mean, std = torch.randn(216, generator=stream(3)), torch.rand(216, generator=stream(4)) + 0.5
    return GaussianFactor(inner, mean, std, temperature=0.3, learned=learned)


KNOWN: dict[str, Callable[[], nn.Module]] = {
    **{name: lambda name=name: net(activation=name, slope=0.2) for name in ACTIVATIONS},  # type: ignore[misc]
    "spectral norm": lambda: net(spectral_norm=True),
    "standardised": lambda: standardised(net()),
    "factor": lambda: factor(net()),
    "standardised, learned factor": lambda: factor(standardised(net()), learned=True),
}


def by_tape(energy: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    return energy_and_gradient(lambda y: energy(y), x)


@pytest.mark.parametrize("name", KNOWN)
def test_it_is_what_the_tape_says(name: str) -> None:
    energy = KNOWN[name]().double()
    form = conv_form(energy)
    assert form is not None
    x = torch.randn(5, 216, generator=stream(5), dtype=torch.float64)
    kept = x.clone()
    for ours, tape in zip(form.energy_and_gradient(x), by_tape(energy, x), strict=True):
        assert torch.allclose(ours, tape, rtol=1e-10, atol=1e-12)
    assert torch.equal(x, kept)
    assert torch.equal(form(x), form.energy_and_gradient(x)[0])


@pytest.mark.parametrize("shape", [(1, 14, 14), (3, 32, 32), (1, 5, 7)])
def test_images_keep_their_shape(shape: tuple[int, int, int]) -> None:
    energy = net(shape)
    form = conv_form(energy)
    assert form is not None
    x = torch.randn(3, *shape, generator=stream(5))
    value, gradient = form.energy_and_gradient(x)
    wanted, slope = by_tape(energy, x)
    assert torch.allclose(value, wanted, rtol=1e-5)
    assert gradient.shape == x.shape
    assert torch.allclose(gradient, slope, rtol=1e-4, atol=1e-6 * slope.abs().max().item())


def test_chains_by_it_are_the_chains_of_the_tape() -> None:
    energy = standardised(net()).double()
    sampler, start = Langevin(0.01, temperature=1.0), torch.zeros(4, 216, dtype=torch.float64)
    ends = []
    for one in (energy, lambda y: energy(y)):
        state = sampler.init(one, start)
        made = run(sampler, one, state, num_steps=20, generator=stream(6), engine=Engine("never"))
        ends.append(made.state)
    assert torch.allclose(ends[0].position, ends[1].position, rtol=1e-9)
    assert torch.allclose(ends[0].gradient, ends[1].gradient, rtol=1e-9)


def hooked() -> nn.Module:
    energy = net()
    energy.layers[0].register_forward_hook(lambda *_: None)
    return energy


def replaced(index: int, layer: nn.Module) -> nn.Module:
    energy = net()
    energy.layers[index] = layer
    return energy


def circular() -> nn.Module:
    energy = net()
    assert isinstance(energy.layers[0], nn.Conv2d)
    energy.layers[0].padding_mode = "circular"
    return energy


class Other(ConvNet):
    """A subclass may compute something else."""


UNKNOWN: dict[str, Callable[[], nn.Module]] = {
    "attention": lambda: net(attention=[6]),
    "hook": hooked,
    "another activation": lambda: replaced(1, nn.Tanh()),
    "another slope": lambda: replaced(1, nn.LeakyReLU(0.3)),
    "another layer": lambda: replaced(2, nn.ConvTranspose2d(3, 6, 4)),
    "another padding": circular,
    "subclass": lambda: Other((2, 9, 12), width=3, generator=stream()),
    "standardised twice": lambda: standardised(standardised(net())),
    "standardised factor": lambda: standardised(factor(net())),
    "two factors": lambda: factor(factor(net())),
    "not convolutional": lambda: nn.Linear(216, 1),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_it_does_not_know_it_leaves(name: str) -> None:
    assert conv_form(UNKNOWN[name]()) is None


def test_it_is_made_of_the_weights_as_they_are() -> None:
    energy = net(spectral_norm=True)
    old = conv_form(energy)
    with torch.no_grad():
        energy.layers[0].parametrizations.weight.original[0].mul_(-2.0)
    new, x = conv_form(energy), torch.randn(3, 216, generator=stream(5))
    assert old is not None
    assert new is not None
    assert torch.allclose(new(x), energy(x), rtol=1e-5)
    assert not torch.allclose(old(x), energy(x), rtol=1e-5)
