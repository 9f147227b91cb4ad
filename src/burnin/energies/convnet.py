"""A convolutional energy for images. It normalises nothing: an energy must not depend on the batch."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from burnin.core import InputError
from burnin.energies.networks import ACTIVATIONS, seeded_linear

SMALLEST = 7
"""Sides longer than this are halved once more."""


class ConvNet(nn.Module):
    """A convolutional network from images, (n, channels, height, width) or flat rows, to energies (n,).

    A 3×3 convolution to `width` channels; then 4×4 convolutions of stride 2, each of which halves the sides
    and doubles the channels, until no side is longer than 7 (28 → 14 → 7, 32 → 16 → 8 → 4); then one linear
    map to the energy. Weights and biases start uniform in ±1/sqrt(fan-in), drawn from `generator`.

    Arguments:
        shape: (channels, height, width) of an image.
        width: channels after the first convolution.
        generator: draws the first weights.
        activation: "silu", "gelu", "leaky" (slope 0.05) or "softplus".

    Example:
        >>> import torch
        >>> net = ConvNet((1, 28, 28), width=4, generator=torch.Generator().manual_seed(0))
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
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise InputError(f"the activation is {activation!r}; known are {', '.join(ACTIVATIONS)}")
        if len(shape) != 3 or min(shape) < 1:
            wanted = "(channels, height, width), each at least 1"
            raise InputError(f"the ConvNet's shape is {tuple(shape)}; it must be {wanted}")
        if width < 1:
            raise InputError(f"the ConvNet's width is {width}; it must be at least 1")
        self.shape = (shape[0], shape[1], shape[2])
        channels, height, breadth = self.shape
        layers: list[nn.Module] = [seeded_conv(channels, width, 3, 1, generator), ACTIVATIONS[activation]()]
        while max(height, breadth) > SMALLEST:
            if min(height, breadth) < 2:
                raise InputError(
                    f"the ConvNet's images are {shape[1]}×{shape[2]}; one side is too short to be halved as "
                    "often as the other"
                )
            layers += [seeded_conv(width, 2 * width, 4, 2, generator), ACTIVATIONS[activation]()]
            height, breadth, width = height // 2, breadth // 2, 2 * width
        layers += [nn.Flatten(), seeded_linear(width * height * breadth, 1, generator)]
        # Channels last: convolutions on a processor are up to 1.4 times as fast, with the same numbers.
        self.layers = nn.Sequential(*layers).to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor) -> Tensor:
        """E(x), (n,)."""
        if x.dim() == 2 and x.shape[1] == math.prod(self.shape):
            x = x.reshape(len(x), *self.shape)
        if tuple(x.shape[1:]) != self.shape:
            wanted = ", ".join(map(str, self.shape))
            raise InputError(f"the images have shape {tuple(x.shape)}; this ConvNet takes (n, {wanted})")
        value: Tensor = self.layers(x)
        return value.squeeze(1)


def seeded_conv(inputs: int, outputs: int, side: int, stride: int, generator: torch.Generator) -> nn.Conv2d:
    """nn.Conv2d with padding 1, weights and biases uniform in ±1/sqrt(fan-in), from the given stream."""
    # skip_init: nn.Conv2d's own initialisation would draw from the global generator.
    layer: nn.Conv2d = nn.utils.skip_init(  # type: ignore[no-untyped-call]
        nn.Conv2d, inputs, outputs, side, stride=stride, padding=1
    )
    bound = 1 / math.sqrt(inputs * side * side)
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        assert layer.bias is not None
        layer.bias.uniform_(-bound, bound, generator=generator)
    return layer
