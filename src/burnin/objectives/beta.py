"""The β-weighted contrast: right when the sampler is not (robust, section 3 and appendices B to G).

Negatives are drawn from p^(1-β) and weighted by p^β, so together they stand for p whatever the sampler
got wrong about the weights; and each positive may count among its own negatives, so that a batch of bad
negatives changes little. With f = -E/T:

    w̃(x) = exp(β f(x)),   w(x⁻ⱼ) = w̃(x⁻ⱼ) / Σ w̃(x⁻),   w⁺(x⁺ᵢ) = w̃(x⁺ᵢ) / (w̃(x⁺ᵢ) + Σ w̃(x⁻)).
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

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
    if variant not in VARIANTS:
        raise InputError(f"the variant is {variant!r}; known are {', '.join(VARIANTS)}")
    if beta == 0:
        raise InputError("beta is 0, for which the β-weighted loss is the plain contrast; use that")
    pooled = torch.logsumexp(beta * negative, 0)
    odds = (beta * positive - pooled).detach()
    out = torch.sigmoid(-odds)  # 1 - w⁺, without the cancellation of a w⁺ near 1
    plain = pooled / beta - positive.mean()
    if variant == "default":
        loss = torch.logaddexp(beta * positive, pooled).mean() / beta - positive.mean()
    elif variant == "no_positive":
        loss = plain
    elif variant == "batch_corrected":
        loss = out.mean() * plain
    else:
        loss = _halves(positive, pooled / beta, out)
    weights = torch.softmax(beta * negative.detach(), 0)
    return loss, BetaInfo(
        grad_scale=out.mean().item(),
        effective=(1 / weights.square().sum()).item(),
        largest=weights.max().item(),
        positive=torch.sigmoid(odds).mean().item(),
        gap=(positive.mean() - negative.mean()).item(),
    )


def _halves(positive: Tensor, pooled: Tensor, out: Tensor) -> Tensor:
    n = len(positive)
    if n < 2:
        raise InputError(f"the variant true_objective splits the data in two, but the batch has {n} points")
    first, second = slice(0, n // 2), slice(n // 2, n)
    a = out[second].mean() * (pooled - positive[first].mean())
    b = out[first].mean() * (pooled - positive[second].mean())
    return 0.5 * (a + b)
