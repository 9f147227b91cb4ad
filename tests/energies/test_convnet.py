"""The convolutional energy: shapes, its own random stream, no dependence on the batch, clear refusals."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from burnin import Langevin, run
from burnin.core import InputError
from burnin.energies import ConvNet


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("shape", "features"),
    [((1, 28, 28), 16 * 7 * 7), ((3, 32, 32), 32 * 4 * 4), ((2, 5, 7), 4 * 5 * 7), ((1, 9, 17), 16 * 2 * 4)],
)
def test_shapes(shape: tuple[int, int, int], features: int) -> None:
    net = ConvNet(shape, width=4, generator=stream())
    assert net(torch.zeros(3, *shape)).shape == (3,)
    last = net.layers[-1]
    assert isinstance(last, nn.Linear)
    assert last.in_features == features


def test_weights_come_from_the_given_stream_alone() -> None:
    before = torch.get_rng_state()
    first, same = (ConvNet((1, 12, 12), width=3, generator=stream(5)) for _ in range(2))
    other = ConvNet((1, 12, 12), width=3, generator=stream(6))
    assert torch.equal(torch.get_rng_state(), before)
    for (name, a), b in zip(first.state_dict().items(), same.state_dict().values(), strict=True):
        assert torch.equal(a, b), name
    assert not torch.equal(first.layers[0].weight, other.layers[0].weight)


def test_first_weights_fill_the_interval_of_their_fan_in() -> None:
    net = ConvNet((2, 16, 16), width=8, generator=stream())
    for layer in net.layers:
        if isinstance(layer, nn.Conv2d):
            bound = layer.weight[0].numel() ** -0.5
            assert 0.9 * bound < layer.weight.abs().max().item() <= bound
            assert abs(layer.weight.var().item() * 3 / bound**2 - 1) < 0.2  # of a uniform: bound²/3


def test_an_energy_does_not_depend_on_the_rest_of_the_batch() -> None:
    net = ConvNet((3, 16, 16), width=4, generator=stream()).double()
    x = torch.randn(6, 3, 16, 16, generator=stream(1), dtype=torch.float64)
    alone = torch.cat([net(x[i : i + 1]) for i in range(6)])
    assert torch.allclose(net(x), alone, rtol=1e-10)
    assert torch.allclose(net(x.flip(0)), alone.flip(0), rtol=1e-10)


def test_chains_run_on_images() -> None:
    net = ConvNet((1, 8, 8), width=2, generator=stream())
    sampler = Langevin(0.01, temperature=1.0)
    state = sampler.init(net, torch.zeros(4, 1, 8, 8))
    end = run(sampler, net, state, num_steps=5, generator=stream(2)).state
    assert end.position.shape == (4, 1, 8, 8)
    assert bool(end.alive.all())


@pytest.mark.parametrize(
    ("shape", "width", "activation", "words"),
    [
        ((1, 8, 8), 0, "silu", "width is 0"),
        ((1, 8, 8), 2, "selu", "known are silu"),
        ((0, 8, 8), 2, "silu", "each at least 1"),
        ((8, 8), 2, "silu", r"\(channels, height, width\)"),
        ((1, 1, 64), 2, "silu", "too short"),
    ],
)
def test_bad_settings_are_refused(
    shape: tuple[int, int, int], width: int, activation: str, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        ConvNet(shape, width=width, generator=stream(), activation=activation)


@pytest.mark.parametrize("shape", [(3, 1, 8, 9), (1, 8, 8), (3, 63), (3, 3, 8, 8)])
def test_images_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    net = ConvNet((1, 8, 8), width=2, generator=stream())
    with pytest.raises(InputError, match=r"takes \(n, 1, 8, 8\)"):
        net(torch.zeros(shape))


def test_flat_rows_are_the_same_images() -> None:
    net = ConvNet((1, 8, 8), width=2, generator=stream())
    x = torch.randn(3, 1, 8, 8, generator=stream())
    assert torch.equal(net(x.flatten(1)), net(x))
