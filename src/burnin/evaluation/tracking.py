"""The held-out likelihood while the correction of a known law is being trained."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.evaluation.bridge import MixtureBase
from burnin.objectives import Corrected

ENOUGH = 30.0
"""Effective draws below which a look is not to be trusted."""


@dataclass(frozen=True)
class Look:
    """The held-out points' mean log-density, and how many effective draws its normaliser rests on."""

    value: float
    draws: float

    @property
    def trusted(self) -> bool:
        """Whether there are draws enough."""
        return self.draws >= ENOUGH


class LikelihoodTrack:
    """Follows the mean log-density of held-out points under p(x) = q(x) exp(-f(x)/T) / Z, f being trained.

    Z = ⟨exp(-f/T)⟩ over draws of q, the same at every look: a look costs the correction of a few thousand
    points. It is good as long as p has not gone far from q, which the effective number of draws says; what is
    told in the end is `normalise`d afresh.

    Arguments:
        temperature: T.
        held_out: the points, (n, dim).
        base: q.
        generator: of q's draws.
        draws: how many.

    Example:
        >>> stream = torch.Generator().manual_seed(0)
        >>> points = torch.randn(4000, 1, generator=stream)
        >>> base = MixtureBase(torch.zeros(1), torch.zeros(1, 1).double(), 1.5 * torch.ones(1, 1).double())
        >>> class Narrower:  # what makes a standard normal of one with a standard deviation of 1.5
        ...     def correction(self, x): return 0.5 * (1 - 1 / 1.5**2) * x.square().sum(1)
        >>> look = LikelihoodTrack(1.0, points, base, stream).look(Narrower())
        >>> round(look.value, 1), look.trusted  # -½ log 2π - ½
        (-1.4, True)
    """

    def __init__(
        self,
        temperature: float,
        held_out: Tensor,
        base: MixtureBase,
        generator: torch.Generator,
        *,
        draws: int = 8192,
    ) -> None:
        self._temperature = temperature
        self._held_out = held_out
        self._at_base = base.log_prob(held_out).mean().item()
        self._draws = base.sample(draws, generator)

    def look(self, energy: Corrected) -> Look:
        """The likelihood under the correction as it is now."""
        with torch.no_grad():
            held = energy.correction(self._held_out).double().mean().item() / self._temperature
            log_weight = energy.correction(self._draws).double() / -self._temperature
        log_z = log_weight.logsumexp(0).item() - math.log(len(log_weight))
        draws = 1 / log_weight.softmax(0).square().sum().item()
        return Look(self._at_base - held - log_z, draws)
