"""Self-attention over the places of a feature map: what lets far parts of a picture see each other."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from burnin.energies.layers import seeded_conv

FEWER = 8
"""Queries and keys have this many times fewer channels than the map."""


class SelfAttention(nn.Module):
    """h + γ·A(h): every place adds a mean of what all places say, weighted by their fit (Zhang et al. 2019).

    With queries q, keys k of a share 1/8 of the channels (one at least) and values v of all of them, each a
    1×1 convolution of the map h, A(h)ᵢ = Σⱼ softmaxⱼ(qᵢ·kⱼ/√d) vⱼ. The gain γ is learned and starts at 0, so
    that the network starts as it would without. Its cost grows with the square of the number of places.

    Arguments:
        channels: of the map.
        generator: draws the first weights.

    Example:
        >>> import torch
        >>> layer = SelfAttention(8, torch.Generator().manual_seed(0))
        >>> h = torch.randn(2, 8, 4, 4, generator=torch.Generator().manual_seed(1))
        >>> bool((layer(h) == h).all())
        True
    """

    def __init__(self, channels: int, generator: torch.Generator) -> None:
        super().__init__()
        inner = max(1, channels // FEWER)
        self.query = seeded_conv(channels, inner, 1, generator)
        self.key = seeded_conv(channels, inner, 1, generator)
        self.value = seeded_conv(channels, channels, 1, generator)
        self.gain = nn.Parameter(torch.zeros(()))

    def forward(self, h: Tensor) -> Tensor:
        """The map with what was attended to, of the same shape."""
        query, key, value = (layer(h).flatten(2) for layer in (self.query, self.key, self.value))
        fit = torch.softmax(query.transpose(1, 2) @ key / math.sqrt(key.shape[1]), dim=2)
        seen: Tensor = value @ fit.transpose(1, 2)
        return h + self.gain * seen.reshape(h.shape)
