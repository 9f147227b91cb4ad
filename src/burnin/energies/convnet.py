"""A convolutional energy for images. It normalises nothing: an energy must not depend on the batch."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from itertools import islice

import torch
from torch import Tensor, nn

from burnin.core import InputError, evaluate, tape_gradient
from burnin.energies.attention import SelfAttention
from burnin.energies.layers import (
    LEAKY_SLOPE,
    images_of,
    make_activation,
    seeded_conv,
    seeded_linear,
    shrink,
)
from burnin.energies.spectral import Resting
from burnin.energies.spectral import spectral_norm as normalised

DOUBLINGS = 3
"""How often the channels double: the last convolution has 8 times the first one's."""
LONGEST = 7
"""Sides that are still longer after that are halved on, with as many channels."""
MOST_COLOURS = 4
"""Channels of images up to which `colour_gradient` is the faster way."""


class ConvNet(Resting):
    """A convolutional network from images, (n, channels, height, width) or flat rows, to energies (n,).

    The network of the short-run paper (Nijkamp et al. 2019), whose n_f is `width`: a 3×3 convolution to n_f
    channels; three 4×4 convolutions of stride 2, each of which halves the sides and doubles the channels, to
    2, 4 and 8·n_f; and one linear map of all that is left to the energy (32 → 16 → 8 → 4, where it is that
    paper's 4×4 convolution to 1). Each convolution is followed by the activation. Other sizes:

    - an odd side is halved downwards, and every pixel is still seen (28 → 14 → 7 → 3);
    - large images are halved on, at 8·n_f channels, until no side is longer than 7 (64 → 32 → 16 → 8 → 4);
    - a side of 1 is halved no more: the convolution is then 3 wide there, with stride 1 (5 → 2 → 1 → 1).

    Weights and biases start uniform in ±1/sqrt(fan-in), drawn from `generator`.

    Arguments:
        shape: (channels, height, width) of an image.
        width: n_f, channels after the first convolution.
        generator: draws the first weights.
        activation: "silu", "gelu", "leaky" or "softplus".
        slope: of the leaky activation below 0; 0.2 in the short-run paper, 0.05 in the convergent one.
        attention: where to attend: after the activations at which the longer side of the map is one of these.
        spectral_norm: divides the weights of every convolution, those of attention included, by their largest
            singular value (`burnin.energies.spectral`); the last linear map keeps its own scale.
        first_scale: factor of the last map's first weights, and so of the first energies and forces.
        outputs: more than one make a classifier, whose logits are (n, outputs).

    Example:
        >>> import torch
        >>> net = ConvNet((1, 28, 28), width=4, generator=torch.Generator().manual_seed(0), attention=[14])
        >>> net(torch.zeros(3, 1, 28, 28)).shape
        torch.Size([3])
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        *,
        width: int,
        generator: torch.Generator,
        activation: str = "silu",
        slope: float = LEAKY_SLOPE,
        attention: Collection[int] = (),
        spectral_norm: bool = False,
        first_scale: float = 1.0,
        outputs: int = 1,
    ) -> None:
        super().__init__()
        if len(shape) != 3 or min(shape) < 1:
            wanted = "(channels, height, width), each at least 1"
            raise InputError(f"the ConvNet's shape is {tuple(shape)}; it must be {wanted}")
        if width < 1:
            raise InputError(f"the ConvNet's width is {width}; it must be at least 1")
        self.shape = (shape[0], shape[1], shape[2])
        maps = feature_maps(self.shape, width)
        sides = [max(height, breadth) for _, height, breadth in maps]
        if unknown := sorted(set(attention) - set(sides)):
            known = ", ".join(map(str, sorted(set(sides), reverse=True)))
            raise InputError(
                f"attention at maps of side {unknown[0]} is asked for; this ConvNet's maps have sides {known}"
            )
        inputs, height, breadth = self.shape
        layers: list[nn.Module] = [seeded_conv(inputs, width, 3, generator, padding=1)]
        for index, (channels, rows, columns) in enumerate(maps):
            if index > 0:
                axes = [_axis(height), _axis(breadth)]
                kernel, stride = (axes[0][0], axes[1][0]), (axes[0][1], axes[1][1])
                layers.append(seeded_conv(inputs, channels, kernel, generator, stride=stride, padding=1))
            layers.append(make_activation(activation, slope))
            if sides[index] in attention:
                layers.append(SelfAttention(channels, generator))
            inputs, height, breadth = channels, rows, columns
        last = seeded_linear(inputs * height * breadth, outputs, generator)
        shrink(last, first_scale)
        body = nn.Sequential(*layers, nn.Flatten(), last)
        if spectral_norm:
            for layer in list(body.modules()):
                if isinstance(layer, nn.Conv2d):
                    normalised(layer, generator)
        # Channels last: convolutions on a processor are up to 1.4 times as fast, with the same numbers.
        self.layers = body.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor, leaves: list[Tensor] | None = None) -> Tensor:
        """E(x), (n,); or logits, (n, outputs). Gradients end at what is put into `leaves`, the first maps."""
        first = self.layers[0](images_of(x, self.shape))
        if leaves is not None:
            first = first.detach().requires_grad_(True)
            leaves.append(first)
        value: Tensor = first
        for layer in islice(self.layers, 1, None):
            value = layer(value)
        return value.squeeze(1)

    def energy_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """E(x) and ∇E(x), without a graph.

        Libraries for convolutions are slow in the last part of the way back, from many maps to one or three
        colours; `colour_gradient` takes a half to a quarter of their time on a processor.
        """
        compiling = torch.compiler.is_compiling()  # nine shifts would be nine graphs within each other
        if compiling or x.device.type != "cpu" or self.shape[0] > MOST_COLOURS:
            return tape_gradient(self, x)
        leaves: list[Tensor] = []
        with torch.enable_grad():  # by way of __call__, which puts weights that are laid out together
            value = evaluate(partial(self, leaves=leaves), x)
            pull = torch.autograd.grad(value.sum(), leaves[0])[0]
        with torch.no_grad():
            first = self.layers[0]
            assert isinstance(first, nn.Conv2d)
            return value.detach(), colour_gradient(pull, first.weight).reshape(x.shape)


def colour_gradient(pull: Tensor, weight: Tensor) -> Tensor:
    """What a 3×3 convolution with a padding of 1 hands back to its input, (n, colours, height, width).

    One product has all nine taps for every place, and each is added where it belongs:
    out[p] += w[i, j]·x[p + (i - 1, j - 1)], so the gradient of x at q has w[i, j]·pull[q - (i - 1, j - 1)].

    Arguments:
        pull: gradient of the output, (n, channels, height, width).
        weight: of the convolution, (channels, colours, 3, 3).
    """
    n, channels, height, width = pull.shape
    colours = weight.shape[1]
    taps = weight.permute(2, 3, 1, 0).reshape(9 * colours, channels)
    places = pull.permute(0, 2, 3, 1).reshape(-1, channels)  # no copy where channels are last
    products = (taps @ places.t()).view(3, 3, colours, n, height, width)
    total = pull.new_zeros(colours, n, height + 2, width + 2)
    for i in range(3):
        for j in range(3):
            total[:, :, i : i + height, j : j + width] += products[i, j]
    return total[:, :, 1:-1, 1:-1].transpose(0, 1)


def feature_maps(shape: tuple[int, int, int], width: int) -> list[tuple[int, int, int]]:
    """(channels, height, width) after each convolution.

    Example:
        >>> feature_maps((3, 32, 32), 16)
        [(16, 32, 32), (32, 16, 16), (64, 8, 8), (128, 4, 4)]
        >>> feature_maps((1, 28, 28), 16)[1:]
        [(32, 14, 14), (64, 7, 7), (128, 3, 3)]
    """
    _, height, breadth = shape
    maps = [(width, height, breadth)]
    while len(maps) <= DOUBLINGS or max(height, breadth) > LONGEST:
        height, breadth = max(1, height // 2), max(1, breadth // 2)
        maps.append((width * 2 ** min(len(maps), DOUBLINGS), height, breadth))
    return maps


def _axis(side: int) -> tuple[int, int]:
    """Kernel and stride along a side, for a padding of 1: they halve it, or leave it at 1."""
    return (4, 2) if side > 1 else (3, 1)
