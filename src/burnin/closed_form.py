"""Energies whose input gradient is written out by hand: what the stock networks are made of.

    E(x) = mlp(φ(z)) + ½ Σ cᵢ (xᵢ - μᵢ)²,   z = (x - mean) / std,   φ(z) = [z, sin(f z), cos(f z)]

or, of a classifier with several outputs h, -log Σ_y exp(h[y]) in the place of mlp.

A tape records every operation and walks it back; for a small network that costs more than the
arithmetic. Here the forward pass keeps what the way back needs, and nothing else happens. The same
description is what the native chains compute from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

ACTIVATIONS = ("silu", "gelu", "leaky", "softplus")
"""Activations whose derivative is known here."""


@dataclass(frozen=True)
class ClosedForm:
    """A multi-layer perceptron of the (standardised, expanded) input, plus a Gaussian factor.

    It shares storage with the network that it was made from, so it follows that network's training.

    Attributes:
        weights: one matrix for each layer, (outputs, inputs); the last has one row, or one for each logit of
            a joint energy.
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
        value, back = self._out(hidden.pop())
        for weight in reversed(self.weights[:-1]):
            last, free = before.pop(), hidden.pop()
            pulled = self._pull(back, last, out=last)
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

    def energy_of_weights(self, x: Tensor) -> Tensor:
        """E(x), (n,), through which gradients flow to the weights and biases, not to x."""
        value: Tensor = _OfWeights.apply(self, x, *self.weights, *self.biases)  # type: ignore[no-untyped-call]
        return value

    def trains(self, energy: object) -> bool:
        """Whether the form's weights are all that is trained in a network, and it is no classifier: that
        learns from its logits too."""
        if not isinstance(energy, nn.Module) or len(self.weights[-1]) > 1:
            return False
        known = {id(parameter) for parameter in (*self.weights, *self.biases)}
        return known == {id(parameter) for parameter in energy.parameters() if parameter.requires_grad}

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

    def _out(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """The energy of the last hidden layer, and its gradient with respect to that."""
        weight, bias = self.weights[-1], self.biases[-1]
        if len(weight) == 1:
            return torch.addmv(bias, hidden, weight[0]), weight.expand(len(hidden), -1)
        logits = torch.addmm(bias, hidden, weight.t())
        return -logits.logsumexp(1), torch.mm(-logits.softmax(1), weight)

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

    def _pull(self, back: Tensor, x: Tensor, *, out: Tensor) -> Tensor:
        """`back` times the activation's derivative at x, by torch's own fused operations."""
        aten = torch.ops.aten
        if self.activation == "silu":
            aten.silu_backward.grad_input(back, x, grad_input=out)
        elif self.activation == "gelu":
            aten.gelu_backward.grad_input(back, x, grad_input=out)
        elif self.activation == "softplus":
            aten.softplus_backward.grad_input(back, x, 1, 20, grad_input=out)
        else:
            aten.leaky_relu_backward.grad_input(back, x, self.slope, False, grad_input=out)
        return out


class _OfWeights(torch.autograd.Function):
    """The energy as one node of torch's graph instead of one for each operation."""

    @staticmethod
    def forward(ctx: Any, form: ClosedForm, x: Tensor, *parameters: Tensor) -> Tensor:
        z = x if form.mean is None or form.std is None else (x - form.mean) / form.std
        hidden, before = [form._features(z)[0]], []
        for weight, bias in zip(form.weights[:-1], form.biases[:-1], strict=True):
            before.append(torch.addmm(bias, hidden[-1], weight.t()))
            hidden.append(form._activate(before[-1]))
        ctx.form, ctx.hidden, ctx.before = form, hidden, before
        value = torch.addmv(form.biases[-1], hidden[-1], form.weights[-1][0])
        if form.centre is not None and form.stiffness is not None:
            value = value + 0.5 * (form.stiffness * (x - form.centre).square()).sum(1)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
        form: ClosedForm = ctx.form
        hidden, before = list(ctx.hidden), list(ctx.before)
        weights = [torch.mv(hidden.pop().t(), outer).unsqueeze(0)]
        biases = [outer.sum().unsqueeze(0)]
        back = outer.unsqueeze(1) * form.weights[-1]
        for weight in reversed(form.weights[:-1]):
            pulled = form._pull(back, before[-1], out=torch.empty_like(before.pop()))
            weights.append(torch.mm(pulled.t(), hidden.pop()))
            biases.append(pulled.sum(0))
            if hidden:
                back = torch.mm(pulled, weight)
        return (None, None, *reversed(weights), *reversed(biases))


def closed_form(energy: Callable[[Tensor], Tensor]) -> ClosedForm | None:
    """The closed form of an energy that has one: of one whose method of this name gives it.

    Example:
        >>> closed_form(lambda x: x.square().sum(1)) is None
        True
    """
    if isinstance(energy, ClosedForm):
        return energy
    own: Callable[[], ClosedForm | None] | None = getattr(energy, "closed_form", None)
    return None if own is None else own()


def energy_of_weights(energy: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The energy for a loss of its weights, not of its input: written out where it has a closed form.

    A module with trained parameters beside its layers' (a learned factor) is left as it is.

    Example:
        >>> linear = nn.Linear(2, 1)
        >>> energy_of_weights(linear) is linear
        True
    """
    own: Callable[[Tensor], Tensor] | None = getattr(energy, "energy_of_weights", None)
    if own is not None:
        return own
    form = closed_form(energy)
    return form.energy_of_weights if form is not None and form.trains(energy) else energy
