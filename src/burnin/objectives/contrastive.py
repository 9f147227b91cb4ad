"""The contrast of data with the negatives of one or more arms, plain or β-weighted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from burnin.closed_form import energy_of_weights
from burnin.core import Energy, InputError, evaluate
from burnin.objectives.beta import BetaInfo, Variant, attach, beta_forces
from burnin.ranks import ALONE, Ranks


@dataclass(frozen=True)
class Negatives:
    """The ends of one arm's chains, and how they enter the contrast.

    Attributes:
        position: negatives, (m, ...).
        weight: the arm's weight: 1 for noise and λ for data in the hybrid (equation 6).
        beta: the share of p that the weights carry; the chains ran on the rest, p^(1-β).
        variant: how positives count among the negatives, for β ≠ 0.
        pool: arms of one pool are contrasted as one set of negatives, so that one good sampler among
            them is enough (robust, section 5); None for a contrast of its own.
    """

    position: Tensor
    weight: float = 1.0
    beta: float = 0.0
    variant: Variant = "default"
    pool: str | None = None


class ArmInfo(NamedTuple):
    """The contrast of one arm over a batch.

    Attributes:
        d: ⟨E(x)⟩ - ⟨E(x̂)⟩, equation 7: a gradient with respect to the energy's magnitude, not a loss.
        std: standard deviation over the batch of the paired differences E(xₙ) - E(x̂ₙ); of the
            unpaired ones, sqrt(var E(x) + var E(x̂)), when there are more or fewer negatives than data.
        snr: d / std (section 4.2.3), 0 where std vanishes.
        beta: the monitors of a β-weighted contrast; None for β = 0. A pool's arms share them.
    """

    d: float
    std: float
    snr: float
    beta: BetaInfo | None = None


def contrast(
    energy: Energy,
    data: Tensor,
    arms: Sequence[Negatives],
    *,
    temperature: float = 1.0,
    ranks: Ranks = ALONE,
) -> tuple[Tensor, list[ArmInfo]]:
    """Σ weight · [⟨E(x)⟩_data - ⟨E(x̂)⟩_negatives], equations 5 and 6 of the hybrid paper.

    The sum is over the arms, those of one pool taken together. For β ≠ 0 the bracket is T times the
    β-weighted loss of f = -E/T (`burnin.objectives.beta`), whose limit for β → 0 it is. The negatives
    are taken as fixed: no gradient flows into them. All energies are computed in one pass.

    Several processes tell each other the energies of their data and negatives, a number for each, and every
    one computes the contrast of all: β's weights are normalised over all negatives. A process's gradient is
    the part that its own points have in it, so that the sum over processes is the gradient.

    Arguments:
        energy: E.
        data: this process's data.
        arms: this process's negatives.
        temperature: T.
        ranks: the processes that share the contrast.

    Returns:
        The loss of all, and an `ArmInfo` for each arm.

    Example:
        >>> import torch
        >>> energy = lambda x: x.square().sum(1)
        >>> loss, info = contrast(energy, torch.zeros(4, 2), [Negatives(torch.ones(4, 2), weight=3.0)])
        >>> loss.item(), info[0].d
        (-6.0, -2.0)
    """
    if not arms:
        raise InputError("the contrast has no arms; give at least one set of negatives")
    sizes = [data.shape[0], *(arm.position.shape[0] for arm in arms)]
    batch = torch.cat([data, *(arm.position.detach() for arm in arms)])
    values = evaluate(energy_of_weights(energy), batch)
    positive, *negatives = ranks.gather_parts(torch.split(values.detach(), sizes))
    on_positive, *on_negatives = (torch.zeros_like(part) for part in (positive, *negatives))
    loss = positive.new_zeros(())
    infos: dict[int, ArmInfo] = {}
    for pool in pools_of(arms):
        first = arms[pool[0]]
        negative = torch.cat([negatives[i] for i in pool]) if len(pool) > 1 else negatives[pool[0]]
        info = None
        if first.beta == 0:
            loss += first.weight * (positive.mean() - negative.mean())
            on_positive += first.weight / len(positive)
            for i in pool:
                on_negatives[i] -= first.weight / len(negative)
        else:
            f_positive, f_negative = positive / -temperature, negative / -temperature
            weighted = beta_forces(f_positive, f_negative, first.beta, first.variant)
            loss += first.weight * temperature * weighted.loss
            # T times a loss of f = -E/T: the temperatures cancel in its derivative.
            on_positive -= first.weight * weighted.on_positive
            parts = torch.split(weighted.on_negative, [len(negatives[i]) for i in pool])
            for i, part in zip(pool, parts, strict=True):
                on_negatives[i] -= first.weight * part
            info = weighted.info
        infos |= {i: _describe(positive, negatives[i], info) for i in pool}
    force = torch.cat([ranks.own(part) for part in (on_positive, *on_negatives)])
    return attach(values, loss, force), [infos[i] for i in range(len(arms))]


def pools_of(arms: Sequence[Negatives]) -> list[list[int]]:
    """Which arms share one contrast, in the order of their first arms.

    Raises:
        InputError: when the arms of a pool differ in weight, β or variant.
    """
    pools: dict[object, list[int]] = {}
    for index, arm in enumerate(arms):
        pools.setdefault(index if arm.pool is None else arm.pool, []).append(index)
    for pool in pools.values():
        kinds = {(arms[i].weight, arms[i].beta, arms[i].variant) for i in pool}
        if len(kinds) > 1:
            raise InputError(
                f"the arms of pool {arms[pool[0]].pool!r} differ in weight, beta or variant; "
                "one contrast has one of each"
            )
    return list(pools.values())


def _describe(positive: Tensor, negative: Tensor, beta: BetaInfo | None) -> ArmInfo:
    d = positive.mean().item() - negative.mean().item()
    if positive.shape == negative.shape:
        variance = (positive - negative).var(correction=0).item()
    else:
        variance = positive.var(correction=0).item() + negative.var(correction=0).item()
    std = variance**0.5
    return ArmInfo(d, std, 0.0 if std == 0 else d / std, beta)
