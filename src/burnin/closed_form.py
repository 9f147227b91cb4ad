"""Energies whose input gradient is written out by hand: what the stock networks are made of.

    E(x) = mlp(φ(z)) + ½ Σ cᵢ (xᵢ - μᵢ)²,   z = (x - mean) / std,   φ(z) = [z, sin(f z), cos(f z)]

A tape records every operation and walks it back; for a small network that costs more than the
arithmetic. Here the forward pass keeps what the way back needs, and nothing else happens. The same
description is what the native chains compute from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor

ACTIVATIONS = ("silu", "gelu", "leaky", "softplus")
"""Activations whose derivative is known here."""


@dataclass(frozen=True)
class ClosedForm:
    """A multi-layer perceptron of the (standardised, expanded) input, plus a Gaussian factor.

    It shares storage with the network that it was made from, so it follows that network's training.

    Attributes:
        weights: one matrix for each layer, (outputs, inputs); the last has one row.
        biases: one vector for each layer.
        activation: one of `ACTIVATIONS`, after every layer but the last.
        slope: of the leaky activation below 0.
        mean, std: how the input is standardised; None leaves it.
        frequencies: f of the sines and cosines; None for none.
        centre, stiffness: μ and c of the factor; None for no factor.

    Example:
        >>> import torch
        >>> form = ClosedForm((torch.ones(2, 2), torch.ones(1, 2)), (torch.zeros(2), torch.zeros(1)), "silu")
        >>> x = torch.zeros(3, 2)
        >>> form.energy_and_gradient(x)[1]
        tensor([[1., 1.],
                [1., 1.],
                [1., 1.]])
    """

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]
    activation: str
    slope: float = 0.05
    mean: Tensor | None = None
    std: Tensor | None = None
    frequencies: Tensor | None = None
    centre: Tensor | None = None
    stiffness: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """E(x), (n,)."""
        return self.energy_and_gradient(x)[0]

    @torch.no_grad()
    def energy_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """E(x), (n,), and ∇E(x)."""
        z = x if self.mean is None or self.std is None else (x - self.mean) / self.std
        features, sines = self._features(z)
        before: list[Tensor] = []
        hidden = [features]
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            before.append(torch.addmm(bias, hidden[-1], weight.t()))
            hidden.append(self._activate(before[-1]))
        value = torch.addmv(self.biases[-1], hidden.pop(), self.weights[-1][0])
        back = self.weights[-1].expand(x.shape[0], -1)
        for weight in reversed(self.weights[:-1]):
            pulled, free = self._pull(back, before.pop()), hidden.pop()
            # The way back writes where the way forth has been: memory that is in the cache already.
            back = torch.mm(pulled, weight, out=free) if hidden else torch.mm(pulled, weight)
        gradient = self._pull_features(back, sines, z.shape[1])
        if self.std is not None:
            gradient = gradient / self.std
        if self.centre is not None and self.stiffness is not None:
            away = x - self.centre
            force = self.stiffness * away
            value = value + 0.5 * (force * away).sum(1)
            gradient = gradient + force
        return value, gradient

    def standardised(self, mean: Tensor, std: Tensor) -> ClosedForm:
        """The form of x ↦ self((x - mean) / std); mean and std are (dim,)."""
        if self.mean is not None and self.std is not None:
            inner_mean, inner_std = mean + std * self.mean, std * self.std
        else:
            inner_mean, inner_std = mean, std
        form = replace(self, mean=inner_mean, std=inner_std)
        if self.centre is not None and self.stiffness is not None:
            form = replace(form, centre=mean + std * self.centre, stiffness=self.stiffness / std.square())
        return form

    def _features(self, z: Tensor) -> tuple[Tensor, Tensor | None]:
        if self.frequencies is None:
            return z, None
        angle = (z.unsqueeze(-1) * self.frequencies).flatten(1)
        both = torch.cat([angle.sin(), angle.cos()], 1)
        return torch.cat([z, both], 1), both

    def _pull_features(self, back: Tensor, sines: Tensor | None, dim: int) -> Tensor:
        if sines is None or self.frequencies is None:
            return back
        half = sines.shape[1] // 2
        direct, to_sine, to_cosine = torch.split(back, [dim, half, half], 1)
        sine, cosine = sines.chunk(2, 1)
        turned = (to_sine * cosine - to_cosine * sine).reshape(-1, dim, len(self.frequencies))
        pulled: Tensor = direct + (turned * self.frequencies).sum(2)
        return pulled

    def _activate(self, x: Tensor) -> Tensor:
        if self.activation == "silu":
            return F.silu(x)
        if self.activation == "gelu":
            return F.gelu(x)
        if self.activation == "softplus":
            return F.softplus(x)
        return F.leaky_relu(x, self.slope)

    def _pull(self, back: Tensor, x: Tensor) -> Tensor:
        """`back` times the activation's derivative at x, by torch's own fused operations, in place of x."""
        aten = torch.ops.aten
        if self.activation == "silu":
            aten.silu_backward.grad_input(back, x, grad_input=x)
        elif self.activation == "gelu":
            aten.gelu_backward.grad_input(back, x, grad_input=x)
        elif self.activation == "softplus":
            aten.softplus_backward.grad_input(back, x, 1, 20, grad_input=x)
        else:
            aten.leaky_relu_backward.grad_input(back, x, self.slope, False, grad_input=x)
        return x


@runtime_checkable
class HasClosedForm(Protocol):
    """An energy that can say what it is made of."""

    def closed_form(self) -> ClosedForm | None:
        """The form, or None where it has none (an unknown part, a hook, a parametrised weight)."""
        ...


def closed_form(energy: Callable[[Tensor], Tensor]) -> ClosedForm | None:
    """The closed form of an energy that has one.

    Example:
        >>> closed_form(lambda x: x.square().sum(1)) is None
        True
    """
    if isinstance(energy, ClosedForm):
        return energy
    return energy.closed_form() if isinstance(energy, HasClosedForm) else None
