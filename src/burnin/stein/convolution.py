"""A critic of pictures: the same small convolutions everywhere, and its Jacobian's trace exactly."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

from burnin.core import InputError


class PictureCritic(nn.Module):
    r"""f(x) = W₂ * tanh(W₁ * x + b₁) + b₂, convolutions with a bias for every pixel.

    What a density of pictures has wrong, it mostly has wrong in the same way at many pixels. A perceptron
    must learn that pixel by pixel, and learns its training pictures by heart instead; here a few hundred
    weights are shared by all. The Jacobian's trace is linear in the slopes D = 1 - tanh² of the hidden maps,

        Tr ∇f(x) = Σ_p Σ_k Σ_o K_k(o) D_k(p + o),   K_k(o) = Σ_c W₂[c, k, o] W₁[k, c, -o],

    one more convolution, exact for the price of a forward pass.

    Arguments:
        shape: channels, height and width of the pictures; points are rows of so many numbers.
        channels: hidden maps.
        side: of the kernels, odd.
        generator: draws the first weights.

    Example:
        >>> from burnin.stein import value_and_trace
        >>> critic = PictureCritic((1, 4, 4), channels=3, generator=torch.Generator().manual_seed(0))
        >>> value, trace = value_and_trace(critic, torch.zeros(5, 16))
        >>> value.shape, trace.shape
        (torch.Size([5, 16]), torch.Size([5]))
    """

    def __init__(
        self, shape: tuple[int, int, int], *, channels: int = 32, side: int = 3, generator: torch.Generator
    ) -> None:
        super().__init__()
        if min(*shape, channels, side) < 1 or side % 2 == 0:
            raise InputError(
                f"a critic of pictures {shape} with {channels} channels and kernels of side {side}: "
                "all must be at least 1, and the side odd"
            )
        self.shape, self.side = shape, side
        device = generator.device

        def normal(*size: int, sd: float) -> nn.Parameter:
            return nn.Parameter(sd * torch.randn(*size, generator=generator, device=device))

        colours, height, width = shape
        self.first = normal(channels, colours, side, side, sd=1 / (side * math.sqrt(colours)))
        # Units that bend at different values from the start: what is to be seen is where a pixel's law ends.
        self.bends = normal(1, channels, 1, 1, sd=1.0)
        self.bends_at = nn.Parameter(torch.zeros(1, channels, height, width, device=device))
        self.last = normal(colours, channels, side, side, sd=0.1 / (side * math.sqrt(channels)))
        self.shift = nn.Parameter(torch.zeros(1, colours, height, width, device=device))

    def forward(self, x: Tensor) -> Tensor:
        """f(x), (n, dim)."""
        return self._out(self._hidden(x)).flatten(1)

    def value_and_trace(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """f(x) and Tr ∇f(x)."""
        hidden = self._hidden(x)
        kernel = (self.last.transpose(0, 1) * self.first.flip(-1, -2)).sum(1).unsqueeze(0)
        trace = conv2d(1 - hidden * hidden, kernel, padding=self.side // 2)
        return self._out(hidden).flatten(1), trace.flatten(1).sum(1)

    def _hidden(self, x: Tensor) -> Tensor:
        pictures = x.reshape(len(x), *self.shape)
        return (conv2d(pictures, self.first, padding=self.side // 2) + self.bends + self.bends_at).tanh()

    def _out(self, hidden: Tensor) -> Tensor:
        return conv2d(hidden, self.last, padding=self.side // 2) + self.shift
