"""The contrast of data with the negatives of one or more arms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from burnin.core import Energy, InputError, evaluate


@dataclass(frozen=True)
class Negatives:
    """The ends of one arm's chains, and the arm's weight in the contrast.

    Attributes:
        position: negatives, (m, ...).
        weight: the arm's weight: 1 for noise and λ for data in the hybrid (equation 6).
    """

    position: Tensor
    weight: float = 1.0


class ArmInfo(NamedTuple):
    """The contrast of one arm over a batch.

    Attributes:
        d: ⟨E(x)⟩ - ⟨E(x̂)⟩, equation 7: a gradient with respect to the energy's magnitude, not a loss.
        std: standard deviation over the batch of the paired differences E(xₙ) - E(x̂ₙ); of the
            unpaired ones, sqrt(var E(x) + var E(x̂)), when there are more or fewer negatives than data.
        snr: d / std (section 4.2.3), 0 where std vanishes.
    """

    d: float
    std: float
    snr: float


def contrast(energy: Energy, data: Tensor, arms: Sequence[Negatives]) -> tuple[Tensor, list[ArmInfo]]:
    """Σ_arms weight · [⟨E(x)⟩_data - ⟨E(x̂)⟩_arm], equations 5 and 6 of the hybrid paper.

    The negatives are taken as fixed: no gradient flows into them. All energies are computed in one pass.

    Returns:
        The loss, whose gradient is that of equation 6, and an `ArmInfo` for each arm.

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
    values = torch.split(evaluate(energy, batch), sizes)
    positive = values[0]
    loss = positive.new_zeros(())
    infos = []
    for arm, negative in zip(arms, values[1:], strict=True):
        d = positive.mean() - negative.mean()
        loss = loss + arm.weight * d
        infos.append(_describe(positive.detach(), negative.detach(), d.item()))
    return loss, infos


def _describe(positive: Tensor, negative: Tensor, d: float) -> ArmInfo:
    if positive.shape == negative.shape:
        variance = (positive - negative).var(correction=0).item()
    else:
        variance = positive.var(correction=0).item() + negative.var(correction=0).item()
    std = variance**0.5
    return ArmInfo(d, std, 0.0 if std == 0 else d / std)
