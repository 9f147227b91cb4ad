"""Pictures of one kind as pictures of another: size, colour, and the byte that stands for the brightest."""

from __future__ import annotations

import torch
from torch import Tensor

from burnin.core import InputError
from burnin.data.pictures import Pictures

BLOCK = 4096
BRIGHTEST = 255
LUMA = (0.299, 0.587, 0.114)
"""How bright red, green and blue are to an eye (ITU-R BT.601), as Pillow makes pictures grey."""


def full_bytes(pictures: Pictures) -> Tensor:
    """The bytes of pictures, 255 being the brightest, (n, channels, height, width).

    Example:
        >>> import torch
        >>> full_bytes(Pictures(torch.tensor([[[[0, 8, 16]]]], dtype=torch.uint8), levels=16)).tolist()
        [[[[0, 128, 255]]]]
    """
    return rescaled(pictures.pixels, pictures.levels, BRIGHTEST)


def rescaled(pixels: Tensor, levels: int, wanted: int) -> Tensor:
    """Bytes whose brightest is `levels`, as bytes whose brightest is `wanted`."""
    if levels == wanted:
        return pixels
    parts = [(part.float() * (wanted / levels)).round() for part in torch.split(pixels, BLOCK)]
    return torch.cat(parts).clamp(0, wanted).to(torch.uint8)


def reshaped(pixels: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """Pictures of bytes, (n, channels, height, width), in another (channels, height, width).

    Where a picture becomes smaller each new pixel is the mean of its area, as `Pictures.resized` makes them;
    else it is interpolated bilinearly. Grey is repeated for three colours; colours become grey by their luma.

    Raises:
        InputError: when the channels are neither 1 nor 3.

    Example:
        >>> import torch
        >>> reshaped(torch.zeros(2, 1, 28, 28, dtype=torch.uint8), (3, 14, 14)).shape
        torch.Size([2, 3, 14, 14])
    """
    if pixels.dim() != 4 or pixels.dtype != torch.uint8:
        raise InputError(
            f"pictures must be bytes, (n, channels, height, width); got {pixels.dtype} {tuple(pixels.shape)}"
        )
    if tuple(pixels.shape[1:]) == shape:
        return pixels
    if len(pixels) == 0:
        return pixels.new_zeros(0, *shape)
    return torch.cat([_reshaped(part, shape) for part in torch.split(pixels, BLOCK)])


def like(pictures: Pictures, other: Pictures) -> Tensor:
    """The bytes of `pictures` at the shape and the levels of `other`, so that a model of it takes them."""
    return reshaped(rescaled(pictures.pixels, pictures.levels, other.levels), other.shape)


def _reshaped(pixels: Tensor, shape: tuple[int, int, int]) -> Tensor:
    channels, height, width = shape
    x = _coloured(pixels.float(), channels)
    if height <= x.shape[2] and width <= x.shape[3]:
        x = torch.nn.functional.adaptive_avg_pool2d(x, (height, width))
    else:
        x = torch.nn.functional.interpolate(x, size=(height, width), mode="bilinear", antialias=True)
    return x.round().clamp(0, BRIGHTEST).to(torch.uint8)


def _coloured(x: Tensor, channels: int) -> Tensor:
    given = x.shape[1]
    if given == channels:
        return x
    if (given, channels) == (1, 3):
        return x.expand(-1, 3, -1, -1)
    if (given, channels) == (3, 1):
        return (x * torch.tensor(LUMA).view(1, 3, 1, 1)).sum(1, keepdim=True)
    raise InputError(f"pictures of {given} channels cannot be given {channels}; known are 1 (grey) and 3")
