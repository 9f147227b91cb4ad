"""A convolutional energy whose input gradient is written out by hand, as `closed_form` does for perceptrons.

    E(x) = linear(flat(conv…conv(z))) + ½ Σ cᵢ (xᵢ - μᵢ)²,   z = (x - mean) / std

The way forth keeps what the way back needs, and the way back writes where the way forth has been; no tape.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from burnin.closed_form import activate, pull


@dataclass(frozen=True)
class Convolution:
    """One convolution with zero padding: weights, (outputs, inputs, height, width), biases and strides."""

    weight: Tensor
    bias: Tensor
    stride: tuple[int, int]
    padding: tuple[int, int]

    def forth(self, x: Tensor) -> Tensor:
        """Its output."""
        return F.conv2d(x, self.weight, self.bias, self.stride, self.padding)

    def back(self, gradient: Tensor, x: Tensor) -> Tensor:
        """The gradient of its input, of which only the shape counts."""
        mask = [True, False, False]  # of input, weight and bias
        found: tuple[Tensor, ...] = torch.ops.aten.convolution_backward(
            gradient, x, self.weight, None, self.stride, self.padding, (1, 1), False, (0, 0), 1, mask
        )
        return found[0]


@dataclass(frozen=True)
class ConvForm:
    """Convolutions with one activation after each, a linear map to the energy, a Gaussian factor beside it.

    It holds the weights as they are when it is made: chains ask for one anew.

    Attributes:
        shape: (channels, height, width) of an image.
        convolutions: in their order.
        weight: of the last linear map, (1, features).
        bias: of it, (1,).
        activation: one of `burnin.closed_form.ACTIVATIONS`.
        slope: of the leaky one.
        mean, std: how flat rows are standardised; None leaves them.
        centre, stiffness: μ and c of the factor, of flat rows; None for no factor.

    Example:
        >>> import torch
        >>> layer = Convolution(torch.ones(1, 1, 1, 1), torch.zeros(1), (1, 1), (0, 0))
        >>> form = ConvForm((1, 1, 2), (layer,), torch.tensor([[1.0, 3.0]]), torch.zeros(1), "leaky", 0.5)
        >>> form.energy_and_gradient(torch.tensor([[2.0, -2.0]]))
        (tensor([-1.]), tensor([[1.0000, 1.5000]]))
    """

    shape: tuple[int, int, int]
    convolutions: tuple[Convolution, ...]
    weight: Tensor
    bias: Tensor
    activation: str
    slope: float
    mean: Tensor | None = None
    std: Tensor | None = None
    centre: Tensor | None = None
    stiffness: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """E(x), (n,)."""
        return self.energy_and_gradient(x)[0]

    @torch.no_grad()
    def energy_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """E(x), (n,), and ∇E(x), of images or of flat rows."""
        z = x if self.mean is None or self.std is None else (x - self.mean) / self.std
        inputs, before = [z.reshape(len(x), *self.shape)], []
        for convolution in self.convolutions:
            before.append(convolution.forth(inputs[-1]))
            inputs.append(activate(self.activation, before[-1], self.slope))
        last = inputs.pop()
        value = F.linear(last.flatten(1), self.weight, self.bias).squeeze(1)
        back = self.weight.reshape(1, *last.shape[1:]).expand_as(last)
        for convolution in reversed(self.convolutions):
            free = before.pop()
            back = convolution.back(pull(self.activation, back, free, self.slope, out=free), inputs.pop())
        gradient = back.reshape(x.shape)
        if self.std is not None:
            gradient = gradient / self.std
        if self.centre is not None and self.stiffness is not None:
            away = x - self.centre
            force = self.stiffness * away
            value = value + 0.5 * (force * away).flatten(1).sum(1)
            gradient = gradient + force
        return value, gradient

    def standardised(self, mean: Tensor, std: Tensor) -> ConvForm | None:
        """The form of x ↦ self((x - mean) / std), of flat rows; None where there is one inside already."""
        if self.mean is not None or self.centre is not None:
            return None
        return replace(self, mean=mean, std=std)


def conv_form(energy: Callable[[Tensor], Tensor]) -> ConvForm | None:
    """The written-out form of an energy that has one: of one whose method of this name gives it.

    Example:
        >>> conv_form(lambda x: x.square().sum(1)) is None
        True
    """
    if isinstance(energy, ConvForm):
        return energy
    own: Callable[[], ConvForm | None] | None = getattr(energy, "conv_form", None)
    return None if own is None else own()
