"""The convolutional energy: the paper's layers, its own stream, no dependence on the batch, refusals."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from burnin import Langevin, run
from burnin.core import InputError, energy_and_gradient, evaluate, tape_gradient
from burnin.energies import MLP, ConvNet
from burnin.energies.convnet import colour_gradient, feature_maps
from burnin.energies.layers import ACTIVATIONS


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def count(net: nn.Module) -> int:
    return sum(parameter.numel() for parameter in net.parameters())


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "convnet": lambda: ConvNet((2, 9, 12), width=3, generator=stream()),
    "leaky": lambda: ConvNet((2, 9, 12), width=3, generator=stream(), activation="leaky", slope=0.2),
    "attention": lambda: ConvNet((2, 9, 12), width=3, generator=stream(), attention=[12, 6]),
    "spectral norm": lambda: ConvNet((2, 9, 12), width=3, generator=stream(), spectral_norm=True),
    "both": lambda: ConvNet((2, 9, 12), width=3, generator=stream(), attention=[6], spectral_norm=True),
    "mlp": lambda: nn.Sequential(nn.Flatten(), MLP(216, width=8, depth=2, generator=stream())),
    "mlp, spectral norm": lambda: nn.Sequential(
        nn.Flatten(), MLP(216, width=8, depth=2, generator=stream(), spectral_norm=True)
    ),
}


def made(name: str) -> nn.Module:
    """The network in double, its attention switched on."""
    net = NETWORKS[name]().double()
    with torch.no_grad():
        for key, value in net.named_parameters():
            if key.endswith("gain"):
                value.fill_(0.7)
    return net


def test_the_network_of_the_short_run_paper_at_32() -> None:
    net = ConvNet((3, 32, 32), width=32, generator=stream(), activation="leaky", slope=0.2)
    convolutions = [layer for layer in net.layers if isinstance(layer, nn.Conv2d)]
    sizes = [(layer.out_channels, *layer.kernel_size, *layer.stride) for layer in convolutions]
    assert sizes == [(32, 3, 3, 1, 1), (64, 4, 4, 2, 2), (128, 4, 4, 2, 2), (256, 4, 4, 2, 2)]
    by_hand = (3 * 9 * 32 + 32) + (32 * 64 * 16 + 64) + (64 * 128 * 16 + 128) + (128 * 256 * 16 + 256)
    assert count(net) == by_hand + (256 * 4 * 4 + 1) == 693_569


def test_its_last_map_is_a_convolution_to_one() -> None:
    net = ConvNet((3, 32, 32), width=4, generator=stream()).double()
    x = torch.randn(5, 3, 32, 32, generator=stream(1), dtype=torch.float64)
    last = net.layers[-1]
    assert isinstance(last, nn.Linear)
    as_convolution = torch.nn.functional.conv2d(net.layers[:-2](x), last.weight.view(1, 32, 4, 4), last.bias)
    assert as_convolution.shape == (5, 1, 1, 1)
    assert torch.allclose(as_convolution.flatten(), net(x), rtol=1e-12)


def test_parameters_at_28() -> None:
    net = ConvNet((1, 28, 28), width=32, generator=stream())
    by_hand = (9 * 32 + 32) + (32 * 64 * 16 + 64) + (64 * 128 * 16 + 128) + (128 * 256 * 16 + 256)
    assert count(net) == by_hand + (256 * 3 * 3 + 1) == 691_201


@pytest.mark.parametrize(
    ("shape", "last"),
    [
        ((1, 8, 8), (1, 1)),
        ((1, 14, 14), (1, 1)),
        ((1, 16, 16), (2, 2)),
        ((1, 28, 28), (3, 3)),
        ((3, 32, 32), (4, 4)),
        ((3, 64, 64), (4, 4)),
        ((3, 100, 130), (3, 4)),
        ((2, 5, 7), (1, 1)),
        ((1, 9, 17), (1, 2)),
        ((1, 1, 64), (1, 4)),
    ],
)
def test_the_last_convolution_has_8_times_the_width(
    shape: tuple[int, int, int], last: tuple[int, int]
) -> None:
    net = ConvNet(shape, width=2, generator=stream())
    *_, convolution = [layer for layer in net.layers if isinstance(layer, nn.Conv2d)]
    assert convolution.out_channels == 16
    maps = net.layers[:-2](torch.zeros(3, *shape))
    assert maps.shape == (3, *feature_maps(shape, 2)[-1])
    assert max(maps.shape[2:]) <= 7
    assert maps.shape[2:] == last
    assert net(torch.zeros(3, *shape)).shape == (3,)


@pytest.mark.parametrize("side", [5, 7, 9, 14, 28, 31])
def test_every_pixel_is_seen(side: int) -> None:
    net = ConvNet((1, side, side), width=3, generator=stream()).double()
    x = torch.randn(2, 1, side, side, generator=stream(1), dtype=torch.float64)
    assert bool((energy_and_gradient(net, x)[1] != 0).all())


def test_weights_come_from_the_given_stream_alone() -> None:
    before = torch.get_rng_state()
    options = {"attention": [6], "spectral_norm": True}
    first, same = (ConvNet((1, 12, 12), width=3, generator=stream(5), **options) for _ in range(2))  # type: ignore[arg-type]
    other = ConvNet((1, 12, 12), width=3, generator=stream(6), **options)  # type: ignore[arg-type]
    assert torch.equal(torch.get_rng_state(), before)
    for (name, a), b in zip(first.state_dict().items(), same.state_dict().values(), strict=True):
        assert torch.equal(a, b), name
    for (name, a), b in zip(first.state_dict().items(), other.state_dict().values(), strict=True):
        assert name.endswith("gain") or not torch.equal(a, b), name


def test_first_weights_fill_the_interval_of_their_fan_in() -> None:
    net = ConvNet((2, 16, 16), width=8, generator=stream())
    for layer in net.layers:
        if isinstance(layer, nn.Conv2d):
            bound = layer.weight[0].numel() ** -0.5
            assert 0.9 * bound < layer.weight.abs().max().item() <= bound
            assert abs(layer.weight.var().item() * 3 / bound**2 - 1) < 0.2  # of a uniform: bound²/3


@pytest.mark.parametrize("spectral_norm", [False, True])
def test_first_scale_scales_the_first_energies_and_forces(spectral_norm: bool) -> None:
    def net(scale: float) -> ConvNet:
        return ConvNet(
            (1, 8, 8), width=2, generator=stream(), first_scale=scale, spectral_norm=spectral_norm
        ).double()

    x = torch.randn(4, 64, generator=stream(1), dtype=torch.float64)
    for small, large in zip(energy_and_gradient(net(0.01), x), energy_and_gradient(net(1.0), x), strict=True):
        assert torch.allclose(small, 0.01 * large, rtol=1e-6)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("training", [True, False])
def test_an_energy_does_not_depend_on_the_rest_of_the_batch(name: str, training: bool) -> None:
    net = made(name).train(training)
    x = torch.randn(6, 2, 9, 12, generator=stream(1), dtype=torch.float64)
    whole = net(x)
    alone = torch.cat([net(x[i : i + 1]) for i in range(6)])
    order = torch.randperm(6, generator=stream(2))
    assert torch.allclose(whole, alone, rtol=1e-10)
    assert torch.allclose(net(x[order]), whole[order], rtol=1e-10)
    assert torch.equal(net(x), whole)


@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_normalises_over_the_batch(name: str) -> None:
    norms = nn.modules.batchnorm._BatchNorm, nn.modules.instancenorm._InstanceNorm, nn.Dropout
    assert not [module for module in made(name).modules() if isinstance(module, norms)]


@pytest.mark.parametrize("name", NETWORKS)
def test_input_gradients_equal_finite_differences(name: str) -> None:
    net = made(name).eval()
    x = torch.randn(2, 2, 9, 12, generator=stream(3), dtype=torch.float64)
    direction = torch.randn(x.shape, generator=stream(4), dtype=torch.float64)
    _, gradient = energy_and_gradient(net, x)
    slope = (evaluate(net, x + 1e-6 * direction) - evaluate(net, x - 1e-6 * direction)) / 2e-6
    assert torch.allclose((gradient * direction).flatten(1).sum(1), slope, rtol=1e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_have_a_gradient_everywhere(activation: str) -> None:
    """Smooth or leaky: at no input does an energy lose its gradient, as it would with a ReLU that is dead."""
    x = torch.linspace(-3, 3, 1201, dtype=torch.float64, requires_grad=True)
    layer = ACTIVATIONS[activation](0.2)
    (gradient,) = torch.autograd.grad(layer(x).sum(), x)
    assert (gradient.abs() < 1e-3).double().mean().item() < 0.01
    jump = gradient.diff().abs().max().item()
    assert jump < 0.01 if activation != "leaky" else jump == pytest.approx(0.8)


def test_chains_run_on_images() -> None:
    net = ConvNet((1, 8, 8), width=2, generator=stream())
    sampler = Langevin(0.01, temperature=1.0)
    state = sampler.init(net, torch.zeros(4, 1, 8, 8))
    end = run(sampler, net, state, num_steps=5, generator=stream(2)).state
    assert end.position.shape == (4, 1, 8, 8)
    assert bool(end.alive.all())


@pytest.mark.parametrize("outputs", ["(n,)", "(n, 1)"])
def test_any_network_is_an_energy_of_images(outputs: str) -> None:
    torch_net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Softplus(), nn.Flatten(), nn.Linear(4 * 36, 1))
    if outputs == "(n,)":
        torch_net.append(nn.Flatten(0))
    torch_net.requires_grad_(False)
    sampler = Langevin(0.01, temperature=1.0)
    state = sampler.init(torch_net, torch.zeros(4, 1, 8, 8))
    end = run(sampler, torch_net, state, num_steps=5, generator=stream(2)).state
    assert end.position.shape == (4, 1, 8, 8)
    assert end.energy.shape == (4,)
    assert torch.allclose(end.energy, torch_net(end.position).flatten())


def test_weights_are_channels_last() -> None:
    net = ConvNet((3, 16, 16), width=4, generator=stream(), spectral_norm=True, attention=[8])
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d):
            assert layer.weight.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("shape", "width", "options", "words"),
    [
        ((1, 8, 8), 0, {}, "width is 0"),
        ((1, 8, 8), 2, {"activation": "selu"}, "known are silu"),
        ((1, 8, 8), 2, {"activation": "leaky", "slope": 1.5}, "between 0 and 1"),
        ((0, 8, 8), 2, {}, "each at least 1"),
        ((8, 8), 2, {}, r"\(channels, height, width\)"),
        ((1, 28, 28), 2, {"attention": [14, 16]}, "side 16 is asked for.*sides 28, 14, 7, 3"),
    ],
)
def test_bad_settings_are_refused(
    shape: tuple[int, int, int], width: int, options: dict[str, object], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        ConvNet(shape, width=width, generator=stream(), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(3, 1, 8, 9), (1, 8, 8), (3, 63), (3, 3, 8, 8)])
def test_images_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    net = ConvNet((1, 8, 8), width=2, generator=stream())
    with pytest.raises(InputError, match=r"takes \(n, 1, 8, 8\)"):
        net(torch.zeros(shape))


def test_flat_rows_are_the_same_images() -> None:
    net = ConvNet((1, 8, 8), width=2, generator=stream())
    x = torch.randn(3, 1, 8, 8, generator=stream())
    assert torch.equal(net(x.flatten(1)), net(x))


@pytest.mark.parametrize("shape", [(1, 14, 14), (3, 8, 8), (2, 9, 12), (1, 1, 5), (6, 7, 7)])
def test_its_own_gradient_is_that_of_a_tape(shape: tuple[int, int, int]) -> None:
    net = ConvNet(shape, width=3, generator=stream(), spectral_norm=shape[0] == 2).double()
    x = torch.randn(4, *shape, generator=stream(1), dtype=torch.float64)
    value, gradient = tape_gradient(net, x)
    for points in (x, x.flatten(1)):
        with torch.no_grad():  # as chains do
            found = energy_and_gradient(net, points)
        assert not any(part.requires_grad for part in found)
        torch.testing.assert_close(found[0], value, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(found[1], gradient.reshape(points.shape), rtol=1e-12, atol=1e-14)
    assert all(parameter.grad is None for parameter in net.parameters())


def test_what_a_convolution_hands_back_to_colours() -> None:
    x = torch.randn(2, 3, 5, 4, generator=stream(), dtype=torch.float64, requires_grad=True)
    weight = torch.randn(7, 3, 3, 3, generator=stream(1), dtype=torch.float64)
    out = nn.functional.conv2d(x, weight, padding=1)
    pull = torch.randn(out.shape, generator=stream(2), dtype=torch.float64)
    (wanted,) = torch.autograd.grad(out, x, pull)
    torch.testing.assert_close(colour_gradient(pull, weight), wanted)
