"""Networks that give an energy. None normalises over the batch: an energy must not depend on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor, nn

from burnin.closed_form import ClosedForm, closed_form
from burnin.core import InputError
from burnin.energies.layers import (
    LEAKY_SLOPE,
    make_activation,
    seeded_linear,
    settings_of,
    shrink,
)
from burnin.energies.spectral import Resting
from burnin.energies.spectral import spectral_norm as normalised

STOCK_LAYERS = (nn.Linear, nn.Sequential, nn.SiLU, nn.GELU, nn.LeakyReLU, nn.Softplus)


class MLP(Resting):
    """A multi-layer perceptron from (n, dim) to (n,).

    Weights and biases start uniform in ±1/sqrt(fan-in), drawn from `generator`.

    Arguments:
        dim: number of inputs.
        width: hidden units, of every layer or one number for each.
        depth: hidden layers, where `width` is one number.
        generator: draws the first weights.
        activation: "silu", "gelu", "leaky" or "softplus".
        first_scale: factor of the last layer's first weights, and so of the first energies and forces
            (convergent, section A).
        slope: of the leaky activation below 0.
        spectral_norm: divides every layer's weights but the last's by their largest singular value
            (`burnin.energies.spectral`).
        outputs: more than one make a classifier, whose logits are (n, outputs).

    Example:
        >>> import torch
        >>> MLP(2, width=8, depth=2, generator=torch.Generator().manual_seed(0))(torch.zeros(3, 2)).shape
        torch.Size([3])
    """

    def __init__(
        self,
        dim: int,
        *,
        width: int | Sequence[int],
        depth: int | None = None,
        generator: torch.Generator,
        activation: str = "silu",
        first_scale: float = 1.0,
        slope: float = LEAKY_SLOPE,
        spectral_norm: bool = False,
        outputs: int = 1,
    ) -> None:
        super().__init__()
        if isinstance(width, int) != (depth is not None):
            raise InputError("the MLP takes one width and a depth, or a list of widths and no depth")
        widths = [width] * (depth or 0) if isinstance(width, int) else list(width)
        if not widths or min(widths) < 1:
            raise InputError(f"the MLP's width is {width} and depth {depth}; both must be at least 1")
        sizes = [dim, *widths]
        layers: list[nn.Module] = []
        for inputs, units in pairwise(sizes):
            layers += [seeded_linear(inputs, units, generator), make_activation(activation, slope)]
        last = seeded_linear(widths[-1], outputs, generator)
        shrink(last, first_scale)
        if spectral_norm:
            for layer in layers[::2]:
                normalised(layer, generator)
        self.layers = nn.Sequential(*layers, last)
        self.activation, self.slope, self.outputs = activation, slope, outputs
        self._made = settings_of(make_activation(activation, slope))

    def forward(self, x: Tensor) -> Tensor:
        """E(x), (n,); or logits, (n, outputs)."""
        value: Tensor = self.layers(x)
        return value.squeeze(1)

    def closed_form(self) -> ClosedForm | None:
        """The same energy with its input gradient written out; None for logits, and once a layer is not as it
        was made."""
        return self.layers_form() if self.outputs == 1 else None

    def layers_form(self) -> ClosedForm | None:
        """The form of its layers: of the energy, or of the joint energy whose logits they give."""
        if type(self) is not MLP or not all(is_as_made(module) for module in self.modules()):
            return None
        layers = list(self.layers)
        if any(settings_of(layer) != self._made for layer in layers[1::2]):
            return None
        linear = [layer for layer in layers[::2] if isinstance(layer, nn.Linear)]
        return ClosedForm(
            weights=tuple(layer.weight for layer in linear),
            biases=tuple(layer.bias for layer in linear),
            activation=self.activation,
            slope=self.slope,
        )


class FourierFeatures(nn.Module):
    """Sines and cosines of every input at several frequencies, in front of a network.

    φ(x) = [x, sin(f x), cos(f x) for f in frequencies], the same for each dimension. Plain
    networks learn smooth functions first; with these inputs sharp ones are as easy
    (Tancik et al. 2020).

    Arguments:
        net: a network that takes ``size(dim, frequencies)`` inputs.
        frequencies: angular frequencies f, in radians per unit of the input.

    Example:
        >>> import torch
        >>> net = MLP(FourierFeatures.size(2, (0.5, 1.0)), width=8, depth=1, generator=torch.Generator())
        >>> FourierFeatures(net, (0.5, 1.0))(torch.zeros(3, 2)).shape
        torch.Size([3])
    """

    frequencies: Tensor

    def __init__(self, net: nn.Module, frequencies: Sequence[float]) -> None:
        super().__init__()
        self.net = net
        self.register_buffer("frequencies", torch.tensor(list(frequencies), dtype=torch.get_default_dtype()))

    @staticmethod
    def size(dim: int, frequencies: Sequence[float]) -> int:
        """How many features `dim` inputs become."""
        return dim * (1 + 2 * len(frequencies))

    def forward(self, x: Tensor) -> Tensor:
        """The network of the features."""
        angle = (x.unsqueeze(-1) * self.frequencies).flatten(1)
        value: Tensor = self.net(torch.cat([x, angle.sin(), angle.cos()], 1))
        return value

    def closed_form(self) -> ClosedForm | None:
        """That of the network on these features, where it has one."""
        form = closed_form(self.net)
        if form is None or form.frequencies is not None or form.mean is not None or form.centre is not None:
            return None
        return replace(form, frequencies=self.frequencies) if is_as_made(self) else None


def is_as_made(module: nn.Module) -> bool:
    """Whether a module computes what its class says: no hooks, no parametrised weights, known layers only."""
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks)
    known = type(module) in STOCK_LAYERS or type(module).__module__.startswith("burnin.energies")
    return known and not any(hooks) and not hasattr(module, "parametrizations")
