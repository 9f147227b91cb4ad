"""Gradients written by hand against the tape, for every network that has a closed form."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from burnin.closed_form import ACTIVATIONS, ClosedForm, closed_form, energy_of_weights
from burnin.core import energy_and_gradient
from burnin.energies import MLP, FourierFeatures, GaussianFactor, JointEnergy, Standardised
from burnin.energies.layers import ACTIVATIONS as NETWORK_ACTIVATIONS

DIM = 3
FREQUENCIES = (0.7, 2.0)


def stream() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def positive(generator: torch.Generator) -> Tensor:
    return 0.5 + torch.rand(DIM, generator=generator)


def mlp(inputs: int = DIM, activation: str = "silu", depth: int = 2, outputs: int = 1) -> MLP:
    return MLP(inputs, width=7, depth=depth, generator=stream(), activation=activation, outputs=outputs)


def fourier() -> FourierFeatures:
    return FourierFeatures(mlp(FourierFeatures.size(DIM, FREQUENCIES)), FREQUENCIES)


def standardised(net: nn.Module) -> Standardised:
    generator = stream()
    return Standardised(net, torch.randn(DIM, generator=generator), positive(generator))


def factor(net: nn.Module, *, learned: bool = False) -> GaussianFactor:
    generator = stream()
    mean = torch.randn(DIM, generator=generator)
    return GaussianFactor(net, mean, positive(generator), temperature=0.3, learned=learned)


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    **{f"mlp {name}": lambda name=name: mlp(activation=name) for name in ACTIVATIONS},  # type: ignore[misc]
    "one layer": lambda: mlp(depth=1),
    "fourier": fourier,
    "standardised": lambda: standardised(mlp()),
    "standardised fourier": lambda: standardised(fourier()),
    "standardised twice": lambda: standardised(standardised(mlp())),
    "factor": lambda: factor(mlp()),
    "learned factor": lambda: factor(mlp(), learned=True),
    "factor outside": lambda: factor(standardised(fourier())),
    "joint": lambda: JointEnergy(mlp(outputs=4)),
    "joint standardised": lambda: factor(JointEnergy(standardised(mlp(outputs=4)))),
    "factor inside": lambda: standardised(factor(standardised(mlp()))),
}


BY_TAPE = ("learned factor", "joint", "joint standardised")
"""Networks whose weights are learned with torch's tape."""


def test_every_activation_has_its_derivative() -> None:
    assert set(ACTIVATIONS) == set(NETWORK_ACTIVATIONS)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_form_is_the_network(name: str) -> None:
    net = NETWORKS[name]().double()
    form = closed_form(net)
    assert form is not None
    x = 3 * torch.randn(11, DIM, generator=stream(), dtype=torch.float64)
    y = x.clone().requires_grad_(True)
    value = net(y)
    gradient = torch.autograd.grad(value.sum(), y)[0]
    torch.testing.assert_close(form(x), value.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(
        energy_and_gradient(form, x), (value.detach(), gradient), rtol=1e-12, atol=1e-12
    )


def test_the_form_follows_training() -> None:
    net = mlp()
    form = closed_form(net)
    assert form is not None
    x = torch.randn(4, DIM, generator=stream())
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(1.5)
    torch.testing.assert_close(form(x), net(x).detach())


class Own(MLP):
    """A subclass may compute anything."""


def hooked() -> nn.Module:
    net = mlp()
    net.layers[0].register_forward_hook(lambda *_: None)
    return net


def parametrised() -> nn.Module:
    net = mlp()
    nn.utils.parametrizations.weight_norm(net.layers[0])
    return net


def exchanged() -> nn.Module:
    net = mlp()
    net.layers[1] = nn.GELU()
    return net


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Linear(DIM, 1),
        lambda: standardised(nn.Linear(DIM, 1)),
        lambda: factor(nn.Linear(DIM, 1)),
        lambda: factor(factor(mlp())),
        lambda: mlp(outputs=4),
        lambda: JointEnergy(nn.Linear(DIM, 4)),
        lambda: JointEnergy(fourier()),
        lambda: Own(DIM, width=4, depth=1, generator=stream()),
        lambda: FourierFeatures(standardised(mlp()), FREQUENCIES),
        hooked,
        parametrised,
        exchanged,
    ],
)
def test_what_is_not_stock_has_no_form(make: Callable[[], nn.Module]) -> None:
    assert closed_form(make()) is None


def test_a_form_is_its_own_form() -> None:
    form = closed_form(mlp())
    assert isinstance(form, ClosedForm)
    assert closed_form(form) is form


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_of_weights_are_the_tapes(name: str) -> None:
    net = NETWORKS[name]().double()
    x = 3 * torch.randn(11, DIM, generator=stream(), dtype=torch.float64)
    outer = torch.randn(11, generator=stream(), dtype=torch.float64)
    parameters = list(net.parameters())
    wanted = torch.autograd.grad(net(x), parameters, outer)
    energy = energy_of_weights(net)
    assert (energy is net) == (name in BY_TAPE)
    value = energy(x)
    torch.testing.assert_close(value, net(x), rtol=1e-12, atol=1e-12)
    for retain in (True, False):  # the first pass must not spoil the second
        found = torch.autograd.grad(value, parameters, outer, retain_graph=retain)
        torch.testing.assert_close(found, wanted, rtol=1e-11, atol=1e-12)


def test_frozen_weights_keep_the_module() -> None:
    net = mlp()
    next(net.parameters()).requires_grad_(False)
    assert energy_of_weights(net) is net


def test_a_learned_factor_is_taken_as_it_is_now() -> None:
    """Its μ and σ are learned by the tape, and each form made after a step is that of the new ones."""
    net = factor(mlp(), learned=True).double()
    x = 2 * torch.randn(9, DIM, generator=stream(), dtype=torch.float64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    before = {name: value.detach().clone() for name, value in net.named_parameters()}
    first = closed_form(net)
    assert first is not None
    assert energy_of_weights(net) is net, "the written-out loss knows the layers' weights only"
    for _ in range(2):
        optimizer.zero_grad()
        energy_of_weights(net)(x).mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert all(
        not value.equal(before[name]) for name, value in net.named_parameters() if "layers" not in name
    )
    form, y = closed_form(net), x.clone().requires_grad_(True)
    assert form is not None
    value = net(y)
    (gradient,) = torch.autograd.grad(value.sum(), y)
    torch.testing.assert_close(
        form.energy_and_gradient(x), (value.detach(), gradient), rtol=1e-12, atol=1e-12
    )
