"""The Stein operator: what goodness-of-fit tests, rankings and training without chains share.

For a density p with score s = ∇ log p and a critic f from points to vectors, the Stein terms

    s(x)·f(x) + Tr ∇f(x)

have mean 0 under p whatever f is (stein, equation 3). Under another density the mean is a discrepancy, and
the critic that makes it largest under the penalty λ E f·f is (s_model - s_data) / 2λ (equation 9).
Papers are named as in the documentation; "stein" is Grathwohl et al. 2020, the learned Stein discrepancy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor

from burnin.core import Energy, InputError, energy_and_gradient, evaluate

Score = Callable[[Tensor], Tensor]
"""From points to ∇ log p at each of them, of the same shape."""
Critic = Callable[[Tensor], Tensor]
"""From points to vectors, of the same shape; each row's value depends on that row only."""
Trace = Literal["exact", "gaussian", "rademacher"]
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
