"""log Z of a model by annealed importance sampling, there and back, so that the truth lies in between."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

from burnin.core import Energy, InputError, evaluate
from burnin.evaluation.bridge import Bridge, MixtureBase
from burnin.samplers import HMC, Engine, TargetAcceptance, run

PILOT_SHARE = 0.5
"""Conditional effective sample size, as a share, that a step of the pilot leaves."""
NUM_LEAPFROG = 5
MOVES = 2
"""Trajectories at each law."""
SETTLING = 30
"""Trajectories at the model's own law before the way back."""
TRUSTED = 20.0
"""Effective draws, of either way, below which its bound is not to be trusted."""
FAR = 1.96
FELL = (
    "the energy falls so steeply that the way from the base does not reach it: it is no density where the "
    "base has mass, or the base was fitted to other data, or it takes more laws (most_laws) to get there"
)

Report = Callable[[str, int, int], None]


class NotReachedError(InputError):
    """The way from the base does not lead to the energy's law: it is no density there."""


@dataclass(frozen=True)
class LogNormaliser:
    """Two estimates of log Z, Z = ∫ exp(-E/T) dx.

    The way from the base to the model gives weights whose mean is Z: their log-mean is too low on average,
    by Jensen. The way back, from draws of the model, gives weights whose mean inverse is 1/Z: too high. The
    second needs draws of the model itself; here they are the first way's, resampled and moved on.

    Attributes:
        lower, upper: the two estimates.
        lower_error, upper_error: their standard errors.
        lower_draws, upper_draws: effective number of draws among the weights of each way.
        num_laws: laws between the base and the model.
        acceptance: of the trajectories.
    """

    lower: float
    upper: float
    lower_error: float
    upper_error: float
    lower_draws: float
    upper_draws: float
    num_laws: int
    acceptance: float

    @property
    def interval(self) -> tuple[float, float]:
        """From the lower bound to the upper, each with 1.96 standard errors."""
        low, high = self.lower - FAR * self.lower_error, self.upper + FAR * self.upper_error
        return min(low, high), max(low, high)

    @property
    def middle(self) -> float:
        """Half-way between the two estimates."""
        return 0.5 * (self.lower + self.upper)

    @property
    def trusted(self) -> bool:
        """Whether both ways have effective draws enough."""
        return min(self.lower_draws, self.upper_draws) >= TRUSTED


@dataclass(frozen=True)
class Likelihood:
    """The mean log-density of data under a model, in nats, between two bounds where log Z has bounds.

    Attributes:
        value: mean of -E/T - log Z.
        low, high: where it lies, as far as log Z is known; the scatter of the data is not in it.
        by: how log Z was had.
        trusted: False when too few draws carry a bound.
    """

    value: float
    low: float
    high: float
    by: str
    trusted: bool = True

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.value:.4g} nats (log Z by {self.by})"
        doubt = "" if self.trusted else "; too few effective draws to be sure"
        return (
            f"{self.value:.4g} nats, between {self.low:.4g} and {self.high:.4g} (log Z by {self.by}{doubt})"
        )


def likelihood(
    energy: Energy,
    temperature: float,
    data: Tensor,
    *,
    particles: int,
    generator: torch.Generator,
    most_laws: int = 300,
    base: MixtureBase | None = None,
    report: Report | None = None,
) -> Likelihood | None:
    """The likelihood of data with log Z by `log_normaliser`, from `base` or a Gaussian fitted to the data.

    None where the way from there does not lead to the model's law within `most_laws`.
    """
    try:
        z = log_normaliser(
            energy,
            temperature,
            base or MixtureBase.fit(data),
            generator=generator,
            particles=particles,
            most_laws=most_laws,
            report=report,
        )
    except NotReachedError:
        return None
    with torch.no_grad():
        mean = -evaluate(energy, data).double().mean().item() / temperature
    low, high = z.interval
    return Likelihood(mean - z.middle, mean - high, mean - low, "annealed importance sampling", z.trusted)


def log_normaliser(
    energy: Energy,
    temperature: float,
    base: MixtureBase,
    *,
    generator: torch.Generator,
    particles: int = 512,
    variance: float = 0.5,
    most_laws: int = 1000,
    report: Report | None = None,
) -> LogNormaliser:
    """log Z = log ∫ exp(-E(x)/T) dx, between two bounds.

    A pilot with resampling finds the laws: each next one leaves half of the effective draws. If chains mixed
    at once, log-weights would scatter with a variance of about their number; dividing each interval by so
    much brings it down to `variance`. Then the laws and the steps are frozen, and two fresh populations go
    there and back.

    Arguments:
        energy: E.
        temperature: T.
        base: a known density that covers the model's mass (`MixtureBase.fit(data)`).
        generator: the stream of everything drawn.
        particles: how many chains.
        variance: of the log-weights, that the number of laws aims at.
        most_laws: where that aim gives way to time.
        report: told what is done.

    Example:
        >>> import torch
        >>> energy = lambda x: 0.5 * x.square().sum(1)  # log Z = log(2 pi) = 1.84 in two dimensions
        >>> stream = torch.Generator().manual_seed(0)
        >>> base = MixtureBase.fit(1.5 * torch.randn(1000, 2, generator=stream))
        >>> low, high = log_normaliser(energy, 1.0, base, generator=stream).interval
        >>> low < 1.84 < high, high - low < 0.5
        (True, True)
    """
    if particles < 2:
        raise InputError(f"particles is {particles}; it must be at least 2")
    walk = _Walk(Bridge(energy, temperature, base, 0.0), generator, report or (lambda *_: None))
    # As many laws as their square allows: with more, what most_laws leaves would scatter too much.
    shares, steps = walk.pilot(particles, math.ceil(2 * math.sqrt(most_laws * variance)))
    length = len(shares) - 1
    finer = min(max(1, math.ceil(length / variance)), max(1, most_laws // length))
    shares, steps = _divided(shares, finer), [step for step in steps for _ in range(finer)]
    start = base.sample(particles, generator)
    x, log_weights, there = walk.weigh(start, shares, steps, "likelihood, there")
    picked = torch.multinomial(log_weights.softmax(0), particles, replacement=True, generator=generator)
    settled, _, _ = walk.move(x[picked], 1.0, steps[-1], SETTLING)
    _, back_weights, back = walk.weigh(settled, shares[::-1], steps[::-1], "likelihood, back")
    lower, lower_error, lower_draws = _log_mean(log_weights, torch.arange(particles))
    # The way back runs through negative steps, so its log-weights are those of 1/Z.
    inverse, upper_error, upper_draws = _log_mean(back_weights, picked)
    return LogNormaliser(
        lower=lower,
        upper=-inverse,
        lower_error=lower_error,
        upper_error=upper_error,
        lower_draws=lower_draws,
        upper_draws=upper_draws,
        num_laws=len(shares) - 1,
        acceptance=0.5 * (there + back),
    )


@dataclass(frozen=True)
class _Walk:
    """Moves a population along the bridge."""

    bridge: Bridge
    generator: torch.Generator
    report: Report

    def pilot(self, particles: int, most: int) -> tuple[list[float], list[float]]:
        """At most so many laws from 0 to 1, and a leapfrog step for each way from one to the next."""
        x, share, step = self.bridge.base.sample(particles, self.generator), 0.0, 0.5
        shares: list[float] = [0.0]
        steps: list[float] = []
        while share < 1:
            if len(steps) == most:
                raise NotReachedError(FELL)
            ratio = self.bridge.log_ratio(x)
            share = _next_share(ratio, share)
            weights = ((share - shares[-1]) * ratio).softmax(0)
            x = x[torch.multinomial(weights, particles, replacement=True, generator=self.generator)]
            x, step, _ = self.move(x, share, step, 10 * MOVES, adapting=True)
            shares.append(share)
            steps.append(step)
            self.report("likelihood, pilot", int(100 * share), 100)
        return shares, steps

    def weigh(
        self, x: Tensor, shares: Sequence[float], steps: Sequence[float], what: str
    ) -> tuple[Tensor, Tensor, float]:
        """The population's ends, the log-weights gathered on the way, and the mean acceptance."""
        log_weights, acceptance = torch.zeros(len(x), dtype=torch.float64), 0.0
        for index, (now, then) in enumerate(pairwise(shares)):
            log_weights = log_weights + (then - now) * self.bridge.log_ratio(x)
            x, _, accepted = self.move(x, then, steps[index], MOVES)
            acceptance += accepted
            self.report(what, index + 1, len(shares) - 1)
        return x, log_weights, acceptance / (len(shares) - 1)

    def move(
        self, x: Tensor, share: float, step: float, num_steps: int, *, adapting: bool = False
    ) -> tuple[Tensor, float, float]:
        """Hamiltonian trajectories that leave the law at `share` as it is; the step follows when adapting."""
        adaptation = TargetAcceptance.optimal_hmc(until=None) if adapting else None
        sampler = HMC(step, NUM_LEAPFROG, 1.0, adaptation)
        energy = replace(self.bridge, share=share)
        state = sampler.init(energy, x, scale=self.bridge.base.variance.to(x.dtype))
        moved = run(
            sampler, energy, state, num_steps=num_steps, generator=self.generator, engine=Engine("never")
        )
        return moved.state.position, float(moved.state.step_size), moved.acceptance


def _next_share(log_ratio: Tensor, share: float) -> float:
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


def _divided(shares: Sequence[float], parts: int) -> list[float]:
    """Every interval cut into as many equal parts."""
    cut = [now + (then - now) * part / parts for now, then in pairwise(shares) for part in range(parts)]
    return [*cut, shares[-1]]


def _log_mean(log_weights: Tensor, ancestors: Tensor) -> tuple[float, float, float]:
    """log of the mean of weights, its standard error by the delta method, and the effective draws.

    Chains of one ancestor are not independent: their deviations are added up before they are squared.
    """
    n = len(log_weights)
    log_mean = log_weights.logsumexp(0) - math.log(n)
    relative = (log_weights - log_mean).exp()
    deviations = torch.zeros(n, dtype=relative.dtype).index_add(0, ancestors, relative - 1)
    error = deviations.square().sum().sqrt() / n
    draws = relative.sum().square() / relative.square().sum()
    return log_mean.item(), error.item(), draws.item()
