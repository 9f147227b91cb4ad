"""The β-weighted contrast: right when the sampler is not (robust, section 3 and appendices B to G).

Negatives are drawn from p^(1-β) and weighted by p^β, so together they stand for p whatever the sampler
got wrong about the weights; and each positive may count among its own negatives, so that a batch of bad
negatives changes little. With f = -E/T:

    w̃(x) = exp(β f(x)),   w(x⁻ⱼ) = w̃(x⁻ⱼ) / Σ w̃(x⁻),   w⁺(x⁺ᵢ) = w̃(x⁺ᵢ) / (w̃(x⁺ᵢ) + Σ w̃(x⁻)).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from burnin.core import InputError

Variant = Literal["default", "no_positive", "batch_corrected", "true_objective"]
VARIANTS = get_args(Variant)


class BetaInfo(NamedTuple):
    """The monitors of appendix E and section 5.

    Attributes:
        grad_scale: mean of 1 - w⁺, what the update is scaled by (30): M/(M + 1) when negatives are as
            likely as data, near 0 when all of them are out of the game.
        effective: effective number of negatives, 1/Σ w², at most M.
        largest: the largest weight of a negative.
        positive: mean of w⁺.
        gap: ⟨f(x⁺)⟩ - ⟨f(x⁻)⟩.
    """

    grad_scale: float
    effective: float
    largest: float
    positive: float
    gap: float


def beta_loss(positive: Tensor, negative: Tensor, beta: float, variant: Variant) -> tuple[Tensor, BetaInfo]:
    """The loss whose gradient is minus the paper's, by log-sum-exp as in its Algorithm 1.

    | variant | gradient |
    |---|---|
    | default | ⟨(1 - w⁺) (∇f⁺ - Σ w ∇f⁻)⟩, equation 8: softmax classification (22), a bound of the next |
    | no_positive | ⟨∇f⁺⟩ - Σ w ∇f⁻, equation 7 |
    | batch_corrected | ⟨1 - w⁺⟩ times that of no_positive, equation 33 |
    | true_objective | the same with each half of the data scaled by the other half's, equation 34 |

    Arguments:
        positive: f of the data, (N,).
        negative: f of the negatives, (M,).
        beta: β; not 0, for which all variants are the plain contrast.
        variant: see above.

    Example:
        >>> import torch
        >>> loss, info = beta_loss(torch.zeros(4), torch.zeros(3), 0.5, "default")
        >>> round(info.grad_scale, 6), round(info.effective, 6)
        (0.75, 3.0)
    """
    weighted = beta_forces(positive.detach(), negative.detach(), beta, variant)
    force = torch.cat([weighted.on_positive, weighted.on_negative])
    return attach(torch.cat([positive, negative]), weighted.loss, force), weighted.info


class Weighted(NamedTuple):
    """A loss and its derivatives, without a graph."""

    loss: Tensor
    on_positive: Tensor
    on_negative: Tensor
    info: BetaInfo


@torch.no_grad()
def beta_forces(positive: Tensor, negative: Tensor, beta: float, variant: Variant) -> Weighted:
    """`beta_loss` and its derivatives with respect to f of the data and of the negatives, written out."""
    if variant not in VARIANTS:
        raise InputError(f"the variant is {variant!r}; known are {', '.join(VARIANTS)}")
    if beta == 0:
        raise InputError("beta is 0, for which the β-weighted loss is the plain contrast; use that")
    n = len(positive)
    scaled = beta * negative
    pooled = torch.logsumexp(scaled, 0)
    weights = (scaled - pooled).exp()
    against = beta * positive - pooled
    out = torch.sigmoid(-against)  # 1 - w⁺, without the cancellation of a w⁺ near 1
    grad_scale = out.mean()
    mean = positive.mean()
    if variant == "default":
        loss = -F.logsigmoid(against).mean() / beta  # log(w̃⁺ + Σ w̃⁻) - log w̃⁺, over β
        on_positive, share = out / -n, grad_scale
    elif variant == "true_objective":
        if n < 2:
            raise InputError(
                f"the variant true_objective splits the data in two, but the batch has {n} points"
            )
        half = n // 2
        first, second = out[half:].mean(), out[:half].mean()
        loss = 0.5 * (
            first * (pooled / beta - positive[:half].mean())
            + second * (pooled / beta - positive[half:].mean())
        )
        on_positive = torch.cat(
            [(-0.5 / half * first).expand(half), (-0.5 / (n - half) * second).expand(n - half)]
        )
        share = 0.5 * (first + second)
    else:
        share = grad_scale if variant == "batch_corrected" else torch.ones_like(grad_scale)
        loss = share * (pooled / beta - mean)
        on_positive = (share / -n).expand(n)
    info = BetaInfo(
        grad_scale=grad_scale.item(),
        effective=1 / weights.square().sum().item(),
        largest=weights.max().item(),
        positive=torch.sigmoid(against).mean().item(),
        gap=(mean - negative.mean()).item(),
    )
    return Weighted(loss, on_positive, share * weights, info)


def attach(values: Tensor, loss: Tensor, force: Tensor) -> Tensor:
    """`loss` as a function of `values` whose derivative is `force`, without a graph in between."""
    attached: Tensor = _Attached.apply(values, loss, force)  # type: ignore[no-untyped-call]
    return attached


class _Attached(torch.autograd.Function):
    """One node instead of a dozen: the derivatives are known."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, loss: Tensor, force: Tensor) -> Tensor:
        ctx.force = force
        return loss.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None, None]:
        return outer * ctx.force, None, None
