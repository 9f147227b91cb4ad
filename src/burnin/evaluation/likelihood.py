"""log Z of a model by annealed importance sampling, there and back, so that the truth lies in between."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import Energy, InputError, Report, evaluate
from burnin.evaluation.bridge import Bridge, MixtureBase
from burnin.evaluation.walk import NotReachedError, Walk, divided
from burnin.ranks import ALONE, Ranks
from burnin.samplers.annealed import systematic_resample

NUM_LEAPFROG = 5
FEWEST_LAWS = 32
"""On a short way too: forward weights may be even where those of the way back have a long tail."""
SETTLING = 30
"""Trajectories at the model's own law before the way back."""
TRUSTED = 20.0
"""Effective draws, of either way, below which its bound is not to be trusted."""
FAR = 1.96
WIDE = 0.5
"""Nats: an interval that is wider has the way walked again, by finer steps."""
FINER = 4
"""So many times as many laws."""
MOST_AGAIN = 512
"""Laws of a way that is walked again, at most: beyond, it is no longer for lack of them."""


@dataclass(frozen=True)
class LogNormaliser:
    """Two estimates of log Z, Z = ∫ exp(-E/T) dx.

    The way from the base to the model gives weights whose mean is Z: their log-mean is too low on average,
    by Jensen. The way back, from draws of the model, gives weights whose mean inverse is 1/Z: too high. The
    second needs draws of the model itself: those that are given, or else the first way's ends, resampled and
    moved on. Then both estimates are blind to what the way from the base does not find.

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
        """All that is within 1.96 standard errors of either estimate, or between them."""
        both = ((self.lower, self.lower_error), (self.upper, self.upper_error))
        return min(value - FAR * error for value, error in both), max(
            value + FAR * error for value, error in both
        )

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
    """The likelihood of data with log Z by `log_normaliser`, from `base` or a mixture fitted to the data.

    None where the way from there does not lead to the model's law within `most_laws`.
    """
    try:
        z = log_normaliser(
            energy,
            temperature,
            base or MixtureBase.choose(data),
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
    num_leapfrog: int = NUM_LEAPFROG,
    draws: Tensor | None = None,
    report: Report | None = None,
    ranks: Ranks = ALONE,
) -> LogNormaliser:
    """log Z = log ∫ exp(-E(x)/T) dx, between two bounds.

    A pilot with resampling finds the laws: each next one leaves half of the effective draws. If chains mixed
    at once, log-weights would scatter with a variance of about their number; dividing each interval by so
    much brings it down to `variance`. Then the laws and the steps are frozen, and two fresh populations go
    there and back. Where chains mix badly, as in the neck of a funnel, that is not enough: as long as the
    interval is wider than `WIDE`, and `most_laws` and `MOST_AGAIN` allow, fresh populations go by `FINER`
    times as many laws.

    Arguments:
        energy: E.
        temperature: T.
        base: a known density that covers the model's mass (`MixtureBase.choose(data)`).
        generator: the stream of everything drawn.
        particles: how many chains.
        variance: of the log-weights, that the number of laws aims at.
        most_laws: where that aim gives way to time.
        num_leapfrog: steps of the Hamiltonian trajectories; 1 makes them those of MALA.
        draws: of the model itself, where there are any, (n, dim): the way back starts there.
        report: told what is done.
        ranks: the processes that share the chains; all call this, and all get the answer.

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
    if draws is not None and (draws.dim() != 2 or len(draws) < 2 or draws.shape[1] != base.means.shape[1]):
        raise InputError(
            f"draws has shape {tuple(draws.shape)}; it must be (n, {base.means.shape[1]}), n at least 2"
        )
    bridge, told = Bridge(energy, temperature, base, 0.0), report or (lambda *_: None)
    walk = Walk(bridge, num_leapfrog, generator, told, ranks)
    # As many laws as their square allows: with more, what most_laws leaves would scatter too much.
    pilot = walk.pilot(particles, math.ceil(2 * math.sqrt(most_laws * variance)))
    length = len(pilot.steps)
    wanted = max(FEWEST_LAWS / length, length / variance)
    finer = max(1, min(math.ceil(wanted), most_laws // length))
    while True:
        shares, steps = divided(pilot.shares, finer), _repeated(pilot.steps, finer)
        found = _there_and_back(walk, shares, steps, particles, draws)
        low, high = found.interval
        if high - low <= WIDE or FINER * finer * length > min(most_laws, MOST_AGAIN):
            return found
        finer *= FINER


def _there_and_back(
    walk: Walk, shares: list[float], steps: list[float], particles: int, draws: Tensor | None
) -> LogNormaliser:
    """Both estimates, by fresh populations along these laws."""
    start = walk.bridge.base.sample(particles, walk.generator)
    x, log_weights, there = walk.weigh(start, shares, steps, "likelihood, there")
    if draws is None:
        offset = torch.rand((), generator=walk.generator, dtype=torch.float64)
        ancestors = systematic_resample(log_weights, offset)
        ends = x[ancestors]
    else:
        ends = draws[:particles].to(x)
        ancestors = torch.arange(len(ends))
    settled, _, _ = walk.move(ends, 1.0, steps[-1], SETTLING)
    _, back_weights, back = walk.weigh(settled, shares[::-1], steps[::-1], "likelihood, back")
    lower, lower_error, lower_draws = _log_mean(log_weights, torch.arange(particles))
    # The way back runs through negative steps, so its log-weights are those of 1/Z.
    inverse, upper_error, upper_draws = _log_mean(back_weights, ancestors)
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


def _repeated(steps: list[float], times: int) -> list[float]:
    return [step for step in steps for _ in range(times)]


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
