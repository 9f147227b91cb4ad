"""Spectral norm: the norm is 1, the vectors rest until they are told to move, and come from the stream."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils import parametrizations

from burnin import Langevin, run
from burnin.energies import ConvNet
from burnin.energies.spectral import advance, rest, spectral_norm


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def net() -> ConvNet:
    return ConvNet((1, 8, 8), width=3, generator=stream(), spectral_norm=True, attention=[4])


def norms(module: nn.Module) -> list[float]:
    """The largest singular value of every convolution's weight."""
    layers = [layer for layer in module.modules() if isinstance(layer, nn.Conv2d)]
    return [torch.linalg.matrix_norm(layer.weight.flatten(1), 2).item() for layer in layers]


def vectors(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in module.named_buffers() if name.endswith(("_u", "_v"))}


def test_norms_are_one_from_the_start() -> None:
    assert len(norms(net())) == 7
    assert all(abs(norm - 1) < 0.05 for norm in norms(net()))


def test_power_iterations_find_the_largest_singular_value() -> None:
    module = net()
    with torch.no_grad():
        for value in module.parameters():
            value.mul_(3.0).add_(torch.randn(value.shape, generator=stream(1)))
    assert max(norms(module)) > 1.05  # the vectors are still those of the old weights
    advance(module, 200)
    assert all(abs(norm - 1) < 1e-3 for norm in norms(module))


def test_chains_do_not_move_the_vectors() -> None:
    module = net()
    before = vectors(module)
    sampler = Langevin(0.01, temperature=1.0)
    state = sampler.init(module, torch.zeros(2, 64))
    run(sampler, module, state, num_steps=5, generator=stream(2))
    assert len(before) == 14
    assert all(torch.equal(before[name], value) for name, value in vectors(module).items())
    with torch.no_grad():
        for value in module.parameters():
            value.add_(torch.randn(value.shape, generator=stream(1)))
    advance(module)
    moved = [name for name, value in vectors(module).items() if not torch.equal(before[name], value)]
    assert len(moved) >= 12  # the query and the key of one channel have u = ±1


def test_a_network_of_ones_own_rests_too() -> None:
    torch_net = parametrizations.spectral_norm(nn.Linear(40, 30)).train()
    with torch.no_grad():
        for value in torch_net.parameters():
            value.normal_(generator=stream())
    x = torch.ones(2, 40)
    assert not torch.equal(torch_net(x), torch_net(x))  # what training mode does otherwise
    rest(torch_net)
    assert torch.equal(torch_net(x), torch_net(x))


def test_the_vectors_come_from_the_stream() -> None:
    weight = torch.randn(4, 5, generator=stream(1))

    def layer(seed: int) -> nn.Module:
        linear = nn.Linear(5, 4)
        with torch.no_grad():
            linear.weight.copy_(weight)
        return spectral_norm(linear, stream(seed))

    first, same, other = vectors(layer(2)), vectors(layer(2)), vectors(layer(3))
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first)
