"""A population that walks along a bridge from law to law, gathering weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

from burnin.core import InputError, Report
from burnin.evaluation.bridge import Bridge, WhiteBridge
from burnin.ranks import ALONE, Ranks
from burnin.samplers import HMC, Engine, TargetAcceptance, run
from burnin.samplers.blocks import Share

PILOT_SHARE = 0.5
"""Conditional effective sample size, as a share, that a step of the pilot leaves."""
MOVES = 2
"""Trajectories at each law."""
PILOT_MOVES = 20
RATE = 0.3
"""How fast the step follows the acceptance, which is a mean over all chains and so known well."""
FELL = (
    "the energy falls so steeply that the way from the base does not reach it: it is no density where the "
    "base has mass, or the base was fitted to other data, or it takes more laws (most_laws) to get there"
)


class NotReachedError(InputError):
    """The way from the base does not lead to the energy's law: it is no density there."""


@dataclass(frozen=True)
class Pilot:
    """The laws from the base, 0, to the model, 1; a leapfrog step for each way from one to the next; and the
    population that found them, at its end, with the number of the start that each is a child of."""

    shares: list[float]
    steps: list[float]
    ends: Tensor
    family: Tensor


@dataclass(frozen=True)
class Walk:
    """Moves a population along the bridge.

    Attributes:
        bridge: from the base to the model.
        num_leapfrog: steps of a trajectory; 1 makes it MALA.
        generator: the stream of everything drawn.
        report: told what is done.
        ranks: the processes that share a population once its laws and steps are known. The pilot, whose
            steps follow all of its chains, is walked by each.
    """

    bridge: Bridge
    num_leapfrog: int
    generator: torch.Generator
    report: Report
    ranks: Ranks = ALONE

    def pilot(self, particles: int, most: int) -> Pilot:
        """Finds the laws, at most so many, by a population that is resampled at each."""
        x, share, step = self.bridge.base.sample(particles, self.generator), 0.0, 0.5
        shares: list[float] = [0.0]
        steps: list[float] = []
        family = torch.arange(particles)
        while share < 1:
            if len(steps) == most:
                raise NotReachedError(FELL)
            ratio = self.bridge.log_ratio(x)
            share = next_share(ratio, share)
            weights = ((share - shares[-1]) * ratio).softmax(0)
            picked = torch.multinomial(weights, particles, replacement=True, generator=self.generator)
            x, family = x[picked], family[picked]
            x, step, _ = self.move(x, share, step, PILOT_MOVES, adapting=True)
            shares.append(share)
            steps.append(step)
            self.report("likelihood, pilot", int(100 * share), 100)
        return Pilot(shares, steps, x, family)

    def weigh(
        self, x: Tensor, shares: Sequence[float], steps: Sequence[float], what: str
    ) -> tuple[Tensor, Tensor, float]:
        """The population's ends, the log-weights gathered on the way, and the mean acceptance."""
        total, share, x = len(x), Share.of(self.ranks, [len(x)]), self.ranks.own(x)
        log_weights, acceptance = torch.zeros(len(x), dtype=torch.float64), 0.0
        for index, (now, then) in enumerate(pairwise(shares)):
            log_weights = log_weights + (then - now) * self.bridge.log_ratio(x)
            x, _, accepted = self.move(x, then, steps[index], MOVES, among=share)
            acceptance += accepted
            self.report(what, index + 1, len(shares) - 1)
        mean = torch.tensor(acceptance / (len(shares) - 1) * len(x) / total, dtype=torch.float64)
        gather = self.ranks.gather
        return gather(x, total), gather(log_weights, total), self.ranks.sum(mean).item()

    def move(
        self,
        x: Tensor,
        share: float,
        step: float,
        num_steps: int,
        *,
        adapting: bool = False,
        among: Share | None = None,
    ) -> tuple[Tensor, float, float]:
        """Hamiltonian trajectories that leave the law at `share` as it is; the step follows when adapting.

        `among` says which of more chains these are.
        """
        target = TargetAcceptance.optimal if self.num_leapfrog == 1 else TargetAcceptance.optimal_hmc
        adaptation = replace(target(until=None), rate=RATE) if adapting else None
        sampler = HMC(step, self.num_leapfrog, 1.0, adaptation)
        energy = WhiteBridge(replace(self.bridge, share=share))
        state = sampler.init(energy, self.bridge.base.whiten(x))
        moved = run(
            sampler,
            energy,
            state,
            num_steps=num_steps,
            generator=self.generator,
            engine=Engine("never"),
            share=among,
        )
        position = self.bridge.base.unwhiten(moved.state.position)
        return position, float(moved.state.step_size), moved.acceptance


def next_share(log_ratio: Tensor, share: float) -> float:
    """The largest share up to 1 that leaves `PILOT_SHARE` of the draws effective, by bisection."""

    def left(to: float) -> float:
        weights = ((to - share) * log_ratio).softmax(0)
        return (1 / weights.square().sum() / len(weights)).item()

    if left(1.0) >= PILOT_SHARE:
        return 1.0
    low, high = share, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if left(middle) >= PILOT_SHARE else (low, middle)
    if low <= share:
        raise NotReachedError(FELL)
    return low


def divided(shares: Sequence[float], parts: int) -> list[float]:
    """Every interval cut into as many equal parts.

    Example:
        >>> divided([0.0, 0.5, 1.0], 2)
        [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    cut = [now + (then - now) * part / parts for now, then in pairwise(shares) for part in range(parts)]
    return [*cut, shares[-1]]
