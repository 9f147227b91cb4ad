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
COLDEST, HOTTEST = 0.5, 10.0
"""Temperatures between which the best is looked for."""
HALVINGS = 40


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
        >>> class TooNarrow:  # twice that correction: half of it, T = 2, is right
        ...     def correction(self, x): return 2 * Narrower().correction(x)
        >>> round(LikelihoodTrack(1.0, points, base, stream).best_temperature(TooNarrow()))
        2
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

    def best_temperature(self, energy: Corrected) -> float:
        """The T at which the held-out likelihood is highest, between `COLDEST` and `HOTTEST`.

        A correction that has learned too much by heart is too strong, and a higher T weakens it. At fixed f
        the p of all T are an exponential family in 1/T, so the likelihood is concave there, with the slope
        ⟨f⟩ under p less ⟨f⟩ of the held-out points: halving finds its zero.
        """
        with torch.no_grad():
            held = energy.correction(self._held_out).double().mean()
            drawn = energy.correction(self._draws).double()
        low, high = 1 / HOTTEST, 1 / COLDEST
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            weight = (-middle * drawn).softmax(0)
            trusted = 1 / weight.square().sum().item() >= ENOUGH
            if trusted and ((weight * drawn).sum() - held).item() > 0:
                low = middle
            else:
                high = middle
        return 2 / (low + high)
