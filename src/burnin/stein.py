"""The Stein operator: what goodness-of-fit tests, rankings and training without chains share.

For a density p with score s = ∇ log p and a critic f from points to vectors, the Stein terms

    s(x)·f(x) + Tr ∇f(x)

have mean 0 under p whatever f is (stein, equation 3). Under another density the mean is a discrepancy, and
the critic that makes it largest under the penalty λ E f·f is (s_model - s_data) / 2λ (equation 9).
Papers are named as in the documentation; "stein" is Grathwohl et al. 2020, the learned Stein discrepancy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from burnin.core import Energy, InputError, energy_and_gradient, evaluate

Score = Callable[[Tensor], Tensor]
"""From points to ∇ log p at each of them, of the same shape."""
Critic = Callable[[Tensor], Tensor]
"""From points to vectors, of the same shape; each row's value depends on that row only."""
Trace = Literal["exact", "gaussian", "rademacher"]
Activation = Literal["silu", "tanh"]
"""How Tr ∇f is computed: exactly, or by Hutchinson's estimator with probes of either kind."""


@runtime_checkable
class HasTrace(Protocol):
    """A critic that knows the trace of its Jacobian, cheaper than a tape could tell it."""

    def value_and_trace(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """f(x), of the shape of x, and Tr ∇f(x), one number for each point."""
        ...


def score_of(energy: Energy, temperature: float, *, create_graph: bool = False) -> Score:
    """The score of p ∝ exp(-E/T) as a function: x ↦ ∇ log p(x) = -∇E(x) / T.

    Arguments:
        energy: E.
        temperature: T.
        create_graph: keep what is needed to differentiate the score, with respect to the energy's
            weights and, where x itself requires a gradient, to x.

    Example:
        >>> score_of(lambda x: 0.5 * x.square().sum(1), temperature=2.0)(torch.tensor([[3.0, -1.0]]))
        tensor([[-1.5000,  0.5000]])
    """
    if not temperature > 0:
        raise InputError(f"the temperature is {temperature}; it must be positive")

    def score(x: Tensor) -> Tensor:
        if not create_graph:
            return energy_and_gradient(energy, x)[1] / -temperature
        with torch.enable_grad():
            x = x if x.requires_grad else x.detach().requires_grad_(True)
            value = evaluate(energy, x)
            if not value.requires_grad:
                raise InputError("the energy's output does not depend on its input through torch operations")
            return torch.autograd.grad(value.sum(), x, create_graph=True)[0] / -temperature

    return score


def probes_like(x: Tensor, kind: Literal["gaussian", "rademacher"], generator: torch.Generator) -> Tensor:
    """Random vectors ε with E εεᵀ = I: standard normal, or ±1 with equal odds.

    ±1 leaves the trace of a diagonal Jacobian without variance; Gaussian probes are the paper's.

    Example:
        >>> probes_like(torch.zeros(2, 3), "rademacher", torch.Generator().manual_seed(0)).abs()
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
    """
    if kind == "gaussian":
        return torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
    coins = torch.randint(2, x.shape, generator=generator, device=x.device)
    return (2 * coins - 1).to(x.dtype)


def value_and_trace(
    critic: Critic,
    x: Tensor,
    *,
    trace: Trace = "exact",
    generator: torch.Generator | None = None,
    batch_dims: int = 1,
) -> tuple[Tensor, Tensor]:
    """f(x) and the trace of its Jacobian at each point.

    Exactly, by the critic itself (`HasTrace`) or one pass back for each dimension; or by one pass with
    Hutchinson's unbiased estimator εᵀ ∇f ε (stein, equation 10). Gradients flow to the critic's weights
    unless they are switched off, never to x.

    Arguments:
        critic: f.
        x: points; the first `batch_dims` axes number them, the others are a point's own.
        trace: how.
        generator: draws the probes; not needed for the exact trace.
        batch_dims: 1 for (n, ...); 2 for critics of many trials on (trials, n, dim).

    Example:
        >>> value, trace = value_and_trace(lambda x: x**2, torch.tensor([[1.0, 2.0]]))
        >>> value.tolist(), trace.tolist()
        ([[1.0, 4.0]], [6.0])
    """
    if trace not in ("exact", "gaussian", "rademacher"):
        raise InputError(f"the trace is {trace!r}; known are exact, gaussian and rademacher")
    if trace == "exact" and isinstance(critic, HasTrace):
        return critic.value_and_trace(x)
    wanted = torch.is_grad_enabled()
    with torch.enable_grad():
        x = x.detach().requires_grad_(True)
        value = critic(x)
        if value.shape != x.shape:
            raise InputError(f"the critic gave shape {tuple(value.shape)} for points of {tuple(x.shape)}")
        if not value.requires_grad:
            raise InputError("the critic's output does not depend on its input through torch operations")
        if trace == "exact":
            divergence = _summed_diagonal(value, x, batch_dims, create_graph=wanted)
        else:
            if generator is None:
                raise InputError(f"the {trace} trace draws probes; give it a generator")
            probes = probes_like(x, trace, generator)
            pulled = torch.autograd.grad(value, x, probes, create_graph=wanted, retain_graph=wanted)[0]
            divergence = (pulled * probes).flatten(batch_dims).sum(-1)
    return (value, divergence) if wanted else (value.detach(), divergence.detach())


def stein_terms(
    score: Score | Tensor,
    critic: Critic,
    x: Tensor,
    *,
    trace: Trace = "exact",
    generator: torch.Generator | None = None,
    batch_dims: int = 1,
) -> Tensor:
    """s(x)·f(x) + Tr ∇f(x) for each point: equation 6 of the paper before the mean, 11 with a probe.

    Arguments:
        score: s, or its values at x.
        critic: f.
        x: points; see `value_and_trace` for this and the others.
        trace: how the trace is computed.
        generator: draws probes.
        batch_dims: how many axes number the points.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> x = torch.randn(10_000, 1, generator=generator)  # from p = N(0, 1), whose score is -x
        >>> terms = stein_terms(lambda x: -x, torch.sin, x)
        >>> bool(terms.mean().abs() < 4 * terms.std() / 100)
        True
    """
    values, divergence = value_and_trace(critic, x, trace=trace, generator=generator, batch_dims=batch_dims)
    return combine(score if isinstance(score, Tensor) else score(x), values, divergence)


def combine(score: Tensor, values: Tensor, divergence: Tensor) -> Tensor:
    """s·f + Tr ∇f from its three parts; the axes of `divergence` are those that number the points."""
    return (score * values).flatten(divergence.dim()).sum(-1) + divergence


def l2_penalty(values: Tensor, lam: float, *, batch_dims: int = 1) -> Tensor:
    """λ E f·f, equation 8: the mean over the points (the last of the axes that number them).

    Example:
        >>> l2_penalty(torch.tensor([[1.0, 2.0], [0.0, 1.0]]), lam=0.5)
        tensor(1.5000)
    """
    return lam * values.square().flatten(batch_dims).sum(-1).mean(-1)


def critic_objective(
    score: Score | Tensor,
    critic: Critic,
    x: Tensor,
    *,
    lam: float,
    trace: Trace = "exact",
    generator: torch.Generator | None = None,
    batch_dims: int = 1,
) -> Tensor:
    """What a critic maximises: the mean of its Stein terms less λ E f·f (stein, section 4).

    One number, or with `batch_dims` 2 one for each trial.

    Example:
        >>> x = torch.tensor([[1.0], [-1.0]])
        >>> critic_objective(lambda x: -x, lambda x: 2 * x, x, lam=0.5)  # mean of -2x² + 2, less ½·4
        tensor(-2., grad_fn=<SubBackward0>)
    """
    values, divergence = value_and_trace(critic, x, trace=trace, generator=generator, batch_dims=batch_dims)
    terms = combine(score if isinstance(score, Tensor) else score(x), values, divergence)
    return terms.mean(-1) - l2_penalty(values, lam, batch_dims=batch_dims)


class MLPCritic(nn.Module):
    """A perceptron from points to vectors, one or a batch of them, that knows its Jacobian's trace.

    With two hidden layers the Jacobian is W₃ D₂ W₂ D₁ W₁, D the activations' derivatives, and its trace

        Tr ∇f = Σᵢⱼ D₂ᵢ (W₂ ∘ (W₁W₃)ᵀ)ᵢⱼ D₁ⱼ,

    one more product of the hidden layers' size: exact for the price of a forward pass, whatever the
    dimension. A network of one hidden layer has Σᵢ Dᵢ (W₁W₂)ᵢᵢ; deeper ones take a pass back for each
    dimension. Weights and biases start uniform in ±1/sqrt(fan-in). See `mlp_critic`.
    """

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
        hidden = x
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
    )


def _traced(critic: MLPCritic, x: Tensor, masks: list[Tensor] | None) -> tuple[Tensor, Tensor]:
    weights = list(critic.weights)
    if len(weights) > 3:
        plain: Critic = lambda y: critic.propagate(y, masks)[0]  # noqa: E731  (has no trace of its own)
        return value_and_trace(plain, x, batch_dims=x.dim() - 1)
    value, slopes = critic.propagate(x, masks)
    round_trip = weights[0] @ weights[-1]  # from the last hidden layer through the points to the first
    if len(weights) == 2:
        return value, (slopes[0] * round_trip.diagonal(dim1=-2, dim2=-1).unsqueeze(-2)).sum(-1)
    mixing = weights[1] * round_trip.mT
    return value, ((slopes[0] @ mixing.mT) * slopes[1]).sum(-1)


def _summed_diagonal(value: Tensor, x: Tensor, batch_dims: int, *, create_graph: bool) -> Tensor:
    """The exact trace, a pass back for each dimension; rows do not interact, so their sum will do."""
    flat = value.flatten(batch_dims)
    total = torch.zeros(flat.shape[:-1], dtype=value.dtype, device=value.device)
    for index in range(flat.shape[-1]):
        row = torch.autograd.grad(
            flat[..., index].sum(), x, create_graph=create_graph, retain_graph=True, materialize_grads=True
        )[0]
        total = total + row.flatten(batch_dims)[..., index]
    return total
