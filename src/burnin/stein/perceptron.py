"""The paper's critic: a perceptron, or many in one, that knows the trace of its Jacobian."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from burnin.core import InputError
from burnin.stein.operator import Critic, value_and_trace

Activation = Literal["silu", "tanh"]
"""Of a critic's hidden units."""


class MLPCritic(nn.Module):
    """A perceptron from points to vectors, one or a batch of them, that knows its Jacobian's trace.

    With two hidden layers the Jacobian is W₃ D₂ W₂ D₁ W₁, D the activations' derivatives, and its trace

        Tr ∇f = Σᵢⱼ D₂ᵢ (W₂ ∘ (W₁W₃)ᵀ)ᵢⱼ D₁ⱼ,

    one more product of the hidden layers' size: exact for the price of a forward pass, whatever the
    dimension. A network of one hidden layer has Σᵢ Dᵢ (W₁W₂)ᵢᵢ; deeper ones take a pass back for each
    dimension. Weights and biases start uniform in ±1/sqrt(fan-in). See `mlp_critic`.
    """

    centre: Tensor
    spread: Tensor

    def __init__(
        self,
        dim: int,
        *,
        width: int,
        layers: int,
        generator: torch.Generator,
        dropout: float,
        trials: int | None,
        activation: Activation,
        centre: Tensor | None,
        spread: Tensor | None,
    ) -> None:
        super().__init__()
        if min(dim, width, layers) < 1 or (trials is not None and trials < 1):
            raise InputError(
                f"a critic of dim {dim}, width {width}, layers {layers}, trials {trials}: "
                "each must be at least 1"
            )
        if not 0 <= dropout < 1:
            raise InputError(f"the critic's dropout is {dropout}; it must be at least 0 and below 1")
        if activation not in ("silu", "tanh"):
            raise InputError(f"the critic's activation is {activation!r}; known are silu and tanh")
        self.dropout, self.width = dropout, width
        self.activation: Activation = activation
        self.register_buffer("centre", torch.zeros(dim) if centre is None else centre.detach().clone())
        self.register_buffer("spread", torch.ones(dim) if spread is None else spread.detach().clone())
        batch = () if trials is None else (trials,)
        sizes = [dim, *[width] * layers, dim]
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for inputs, outputs in pairwise(sizes):
            bound = 1 / math.sqrt(inputs)
            for kind, shape in ((self.weights, (outputs, inputs)), (self.biases, (1, outputs))):
                first = torch.empty(*batch, *shape, device=generator.device)
                kind.append(nn.Parameter(first.uniform_(-bound, bound, generator=generator)))

    def forward(self, x: Tensor) -> Tensor:
        """f(x): (n, dim) to the same, or (trials, n, dim) for a batch of critics."""
        return self.propagate(x, None)[0]

    def value_and_trace(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """f(x) and Tr ∇f(x)."""
        return _traced(self, x, None)

    def thinned(self, n: int, generator: torch.Generator, *, shared: bool = False) -> Thinned:
        """The critic with a fresh draw of its dropout, for n points; one draw for all trials if shared."""
        weight = self.weights[0]
        keep = 1 - self.dropout
        masks = []
        for _ in range(len(self.weights) - 1):
            shape = (n, self.width) if shared else (*weight.shape[:-2], n, self.width)
            uniform = torch.rand(shape, generator=generator, dtype=weight.dtype, device=weight.device)
            masks.append((uniform < keep).to(weight.dtype) / keep)
        return Thinned(self, masks)

    def propagate(self, x: Tensor, masks: list[Tensor] | None) -> tuple[Tensor, list[Tensor]]:
        """f(x), and the derivative of every hidden unit with respect to what enters it."""
        hidden = (x - self.centre) / self.spread
        slopes: list[Tensor] = []
        for index, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            before = hidden @ weight.mT + bias
            if index == len(self.weights) - 1:
                return before, slopes
            if self.activation == "tanh":
                hidden = before.tanh()
                slope = 1 - hidden * hidden
            else:
                sigmoid = before.sigmoid()
                hidden = before * sigmoid
                slope = sigmoid + hidden * (1 - sigmoid)
            if masks is not None:
                hidden, slope = hidden * masks[index], slope * masks[index]
            slopes.append(slope)
        raise AssertionError("a critic has at least an output layer")


class Thinned:
    """An `MLPCritic` with one draw of its dropout: a function like any other, with its trace."""

    def __init__(self, critic: MLPCritic, masks: list[Tensor]) -> None:
        self.critic, self.masks = critic, masks

    def __call__(self, x: Tensor) -> Tensor:
        """f(x) with the dropped units at 0 and the others scaled up."""
        return self.critic.propagate(x, self.masks)[0]

    def value_and_trace(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """f(x) and Tr ∇f(x)."""
        return _traced(self.critic, x, self.masks)


def mlp_critic(
    dim: int,
    width: int = 300,
    layers: int = 2,
    *,
    generator: torch.Generator,
    dropout: float = 0.0,
    trials: int | None = None,
    activation: Activation = "silu",
    centre: Tensor | None = None,
    spread: Tensor | None = None,
) -> MLPCritic:
    """The paper's critic: hidden layers of 300 Swish units, two of them (stein, section 7).

    Arguments:
        dim: of the points.
        width: units of each hidden layer.
        layers: hidden layers.
        generator: draws the first weights.
        dropout: the share of hidden units that `MLPCritic.thinned` leaves out; a plain call leaves none.
        trials: how many critics in one, each with its own weights, on points (trials, n, dim); None for
            one on points (n, dim).
        activation: of the hidden units: Swish, or tanh, which sees laws that are nearly Gaussian sooner.
        centre, spread: of the points, (dim,): the first layer sees (x - centre) / spread.

    Example:
        >>> critic = mlp_critic(3, generator=torch.Generator().manual_seed(0))
        >>> value, trace = value_and_trace(critic, torch.zeros(5, 3))
        >>> value.shape, trace.shape
        (torch.Size([5, 3]), torch.Size([5]))
    """
    return MLPCritic(
        dim,
        width=width,
        layers=layers,
        generator=generator,
        dropout=dropout,
        trials=trials,
        activation=activation,
        centre=centre,
        spread=spread,
    )


def _traced(critic: MLPCritic, x: Tensor, masks: list[Tensor] | None) -> tuple[Tensor, Tensor]:
    weights = list(critic.weights)
    if len(weights) > 3:
        plain: Critic = lambda y: critic.propagate(y, masks)[0]  # noqa: E731  (has no trace of its own)
        return value_and_trace(plain, x, batch_dims=x.dim() - 1)
    value, slopes = critic.propagate(x, masks)
    round_trip = (weights[0] / critic.spread) @ weights[
        -1
    ]  # from the last hidden layer through the points to the first
    if len(weights) == 2:
        return value, (slopes[0] * round_trip.diagonal(dim1=-2, dim2=-1).unsqueeze(-2)).sum(-1)
    mixing = weights[1] * round_trip.mT
    return value, ((slopes[0] @ mixing.mT) * slopes[1]).sum(-1)
