"""Wide residual networks without normalisation: the classifiers that joint energies are made of."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from burnin.core import InputError
from burnin.energies.layers import images_of, make_activation, seeded_conv, seeded_linear

STEM = 16
"""Channels before the first stage; the stages have 16, 32 and 64 times the width."""
SLOPE = 0.2
"""Of JEM's leaky activation."""


class WideResNet(nn.Module):
    """WRN-depth-width (Zagoruyko & Komodakis 2016) as JEM has it: no normalisation, biases everywhere.

    A 3×3 convolution to 16 channels; three stages of (depth - 4) / 6 blocks with 16, 32 and 64 times `width`
    channels, the second and third of which halve the sides; the mean over what is left of the picture, and a
    linear map. With ten classes, WRN-28-10 has 36,471,338 parameters and WRN-28-2 1,466,026. An energy must
    not depend on its batch, so no layer normalises over it.

    Weights and biases start uniform in ±1/sqrt(fan-in), drawn from `generator`.

    Arguments:
        shape: (channels, height, width) of a picture.
        depth: 10, 16, 22, 28, …
        width: k, the factor of all channels.
        outputs: classes, whose logits it gives as (n, outputs); 1 for an energy, (n,).
        generator: draws the first weights.
        activation: "leaky" in JEM; "silu", "gelu" and "softplus" are smooth.
        slope: of the leaky activation below 0.

    Example:
        >>> import torch
        >>> net = WideResNet((1, 8, 8), depth=10, width=1, outputs=10, generator=torch.Generator())
        >>> net(torch.zeros(3, 64)).shape
        torch.Size([3, 10])
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        *,
        depth: int,
        width: int,
        outputs: int,
        generator: torch.Generator,
        activation: str = "leaky",
        slope: float = SLOPE,
    ) -> None:
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise InputError(f"the wide residual network's depth is {depth}; it must be 10, 16, 22, 28, …")
        if width < 1 or outputs < 1:
            raise InputError(
                f"the wide residual network has width {width} and {outputs} outputs; both must be at least 1"
            )
        self.shape = (shape[0], shape[1], shape[2])
        channels = STEM
        layers: list[nn.Module] = [seeded_conv(self.shape[0], channels, 3, generator, padding=1)]
        for stage in range(3):
            for block in range((depth - 4) // 6):
                stride = 2 if stage > 0 and block == 0 else 1
                wider = STEM * width * 2**stage
                layers.append(Block(channels, wider, stride, generator, make_activation(activation, slope)))
                channels = wider
        layers += [make_activation(activation, slope), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        body = nn.Sequential(*layers, seeded_linear(channels, outputs, generator))
        # Channels last: convolutions on a processor are faster so, with the same numbers.
        self.layers = body.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor) -> Tensor:
        """Logits, (n, outputs), of pictures or of flat rows; an energy, (n,), where there is one output."""
        value: Tensor = self.layers(images_of(x, self.shape))
        return value.squeeze(1)


class Block(nn.Module):
    """x + conv(act(conv(act(x)))), the second convolution with the stride; a 1×1 one where shapes differ."""

    def __init__(
        self, inputs: int, outputs: int, stride: int, generator: torch.Generator, activation: nn.Module
    ) -> None:
        super().__init__()
        self.activation = activation
        self.first = seeded_conv(inputs, outputs, 3, generator, padding=1)
        self.second = seeded_conv(outputs, outputs, 3, generator, stride=stride, padding=1)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = seeded_conv(inputs, outputs, 1, generator, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        """The block's output."""
        inner = self.second(self.activation(self.first(self.activation(x))))
        value: Tensor = inner + self.shortcut(x)
        return value
