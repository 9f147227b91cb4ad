"""What networks are built of: layers whose first weights come from a given stream, and activations."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from burnin.core import InputError

LEAKY_SLOPE = 0.05
ACTIVATIONS: dict[str, Callable[[float], nn.Module]] = {
    "silu": lambda slope: nn.SiLU(),
    "gelu": lambda slope: nn.GELU(),
    "leaky": lambda slope: nn.LeakyReLU(slope),
    "softplus": lambda slope: nn.Softplus(),
}
"""Smooth ones, and one that is leaky: an energy needs a gradient wherever a chain may be."""


def make_activation(name: str, slope: float = LEAKY_SLOPE) -> nn.Module:
    """The activation of this name; `slope` is that of the leaky one below 0.

    Example:
        >>> make_activation("leaky", 0.2)
        LeakyReLU(negative_slope=0.2)
    """
    if name not in ACTIVATIONS:
        raise InputError(f"the activation is {name!r}; known are {', '.join(ACTIVATIONS)}")
    if not 0 < slope < 1:
        raise InputError(f"the leaky activation's slope is {slope:g}; it must lie between 0 and 1")
    return ACTIVATIONS[name](slope)


def settings_of(layer: nn.Module) -> tuple[type, str]:
    """What a layer without weights is and is set to."""
    return type(layer), layer.extra_repr()


def seeded_linear(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    """nn.Linear whose weights and biases are uniform in ±1/sqrt(inputs), from the given stream."""
    # skip_init: nn.Linear's own initialisation would draw from the global generator.
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, inputs, outputs)  # type: ignore[no-untyped-call]
    bound = 1 / math.sqrt(inputs)
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.uniform_(-bound, bound, generator=generator)
    return layer


def seeded_conv(
    inputs: int,
    outputs: int,
    kernel: int | tuple[int, int],
    generator: torch.Generator,
    *,
    stride: int | tuple[int, int] = 1,
    padding: int = 0,
) -> nn.Conv2d:
    """nn.Conv2d whose weights and biases are uniform in ±1/sqrt(fan-in), from the given stream."""
    layer: nn.Conv2d = nn.utils.skip_init(  # type: ignore[no-untyped-call]
        nn.Conv2d, inputs, outputs, kernel, stride=stride, padding=padding
    )
    bound = 1 / math.sqrt(layer.weight[0].numel())
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        assert layer.bias is not None
        layer.bias.uniform_(-bound, bound, generator=generator)
    return layer


def shrink(layer: nn.Linear, factor: float) -> None:
    """Multiplies a layer's first weights and biases."""
    with torch.no_grad():
        layer.weight.mul_(factor)
        layer.bias.mul_(factor)


def images_of(x: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """Images as images: flat rows get the shape of one, and what has another is refused.

    Example:
        >>> import torch
        >>> images_of(torch.zeros(5, 12), (3, 2, 2)).shape
        torch.Size([5, 3, 2, 2])
    """
    if x.dim() == 2 and x.shape[1] == math.prod(shape):
        x = x.reshape(len(x), *shape)
    if tuple(x.shape[1:]) != shape:
        wanted = ", ".join(map(str, shape))
        raise InputError(f"the images have shape {tuple(x.shape)}; this network takes (n, {wanted})")
    return x
