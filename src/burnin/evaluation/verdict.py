"""An honest verdict: does it generate, has the chain converged, is it a density, does it fit?

Five sentences are possible. A generator's short chains from noise end on the data. A density's chains stay
there: those that started at data and are Metropolis-adjusted, those from noise run much longer, and a
population that was cooled from far away and may end anywhere the density has mass. A model whose chains
stay at the data but do not get there from noise is a density near the data only: what it says elsewhere
was never seen by its training.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from burnin.evaluation.likelihood import Likelihood

GOOD, FAIR = 2.0, 5.0
"""Distances up to 2 times, and up to 5 times, the 95th percentile of chance."""
GOOD_KL, FAIR_KL = 0.05, 0.3
GOOD_ENERGIES, FAIR_ENERGIES = (math.sqrt(kl / 2) for kl in (GOOD_KL, FAIR_KL))
"""Two laws within KL of each other cannot differ by more than sqrt(KL/2) in the probability of any set
(Pinsker), so neither can their energies' distribution functions: 0.16 and 0.39."""
FORGOTTEN = 0.5
"""Rank correlation between the energies of adjusted chains at first and at last, up to which they have moved
enough for their staying near the data to say anything."""
STILL_MOVING = 0.25
"""Change of the chains' mean energy from the third to the last quarter of the long run, in standard
deviations of the data's energies, above which it has not settled."""


class Standing(StrEnum):
    """What a model is, in a sentence."""

    BOTH = "a density and a generator"
    GENERATOR = "a generator only"
    NEAR_DATA = "a density near the data only"
    NEITHER = "neither a density nor a generator"
    UNDECIDED = "not decided: run longer"


@dataclass(frozen=True)
class Seen:
    """Chains held against data.

    Attributes:
        distance: energy distance in units of what chance alone gives.
        energies: largest difference between the distribution functions of their energies and the data's
            (Kolmogorov-Smirnov), less what chance gives 19 times in 20.
    """

    distance: float
    energies: float

    @property
    def there(self) -> bool:
        """Whether the chains are where the data is."""
        return self.distance <= FAIR and self.energies <= FAIR_ENERGIES


@dataclass(frozen=True)
class Evidence:
    """What the verdict rests on; None where it was not measured.

    Attributes:
        short: short chains from noise, as in training.
        long: the same chains much later.
        stayed: chains from data, Metropolis-adjusted with an adapted step (hybrid, section 4.2.5).
        anywhere: a population cooled from wide noise with Metropolis adjustment and resampling.
        apart: distance between the long chains and unadjusted ones from data, in units of chance.
        drift: change of the long chains' mean energy from the third to the last quarter of their run, in
            standard deviations of the data's energies.
        acceptance: of the adjusted chains.
        memory: rank correlation, over the adjusted chains, of their energies at first and at last: 1 when
            none has moved, 0 when all have forgotten where they were.
        ess: effective number of draws of the energy by all adjusted chains.
        rhat: of the energy along the adjusted chains.
        density_kl: KL(true ‖ model), where the truth is known.
        log_likelihood: mean log-density of data, where the normaliser can be had.
        long_steps, stayed_steps: how many steps the long and the adjusted chains took.
    """

    short: Seen
    long: Seen
    stayed: Seen
    anywhere: Seen
    apart: float
    drift: float
    acceptance: float
    memory: float
    ess: float
    rhat: float
    density_kl: float | None
    log_likelihood: Likelihood | None
    long_steps: int
    stayed_steps: int


@dataclass(frozen=True)
class Verdict:
    """The sentence, the answers, and in words: a line for the sentence and one for each question."""

    standing: Standing
    generator: bool
    converged: bool
    density: bool
    fits: bool | None
    lines: tuple[str, ...]


def judge(evidence: Evidence) -> Verdict:
    """Turns measured numbers into the verdict.

    Example:
        >>> there, away = Seen(1.0, 0.02), Seen(60.0, 0.9)
        >>> rest = dict(apart=1.0, drift=0.0, acceptance=0.67, memory=0.1, ess=900.0, rhat=1.01,
        ...             density_kl=None, log_likelihood=None, long_steps=20000, stayed_steps=5000)
        >>> print(judge(Evidence(there, there, there, there, **rest)).standing)
        a density and a generator
        >>> print(judge(Evidence(there, away, away, away, **rest)).standing)
        a generator only
        >>> print(judge(Evidence(away, away, there, away, **rest)).standing)
        a density near the data only
    """
    e = evidence
    generator = e.short.distance <= FAIR
    settled = abs(e.drift) <= STILL_MOVING
    converged = e.apart <= FAIR and settled
    density = e.stayed.there and e.long.there and e.anywhere.there
    fits = None if e.density_kl is None else e.density_kl <= FAIR_KL
    standing = _standing(e, generator, settled, density)
    lines = (f"verdict:   {standing}.", *_lines(e, converged))
    return Verdict(standing, generator, converged, density, fits, lines)


def _standing(e: Evidence, generator: bool, settled: bool, density: bool) -> Standing:
    moved = e.memory <= FORGOTTEN
    if generator and density:
        return Standing.BOTH if moved and settled else Standing.UNDECIDED
    if generator:
        return Standing.GENERATOR
    if e.stayed.there:
        return Standing.NEAR_DATA if moved else Standing.UNDECIDED
    return Standing.NEITHER


def _lines(e: Evidence, converged: bool) -> tuple[str, ...]:
    short = e.short.distance
    generates = (
        f"generates: {_yes(short <= FAIR)}. Short chains from noise end at {short:.3g} × what chance alone "
        f"gives ({_grade(short, GOOD, FAIR)})."
    )
    chain = (
        f"converged: {_yes(converged)}. After {e.long_steps:,} further steps they and chains from data are "
        f"{e.apart:.3g} × chance apart; in the last quarter their energy moved by {e.drift:+.2g} of the "
        "data's spread."
    )
    density = (
        f"density:   {_yes(e.stayed.there and e.long.there and e.anywhere.there)}. Against data, in × chance "
        f"and largest difference of energies: long chains from noise {_seen(e.long)}; adjusted chains from "
        f"data {_seen(e.stayed)} (acceptance {e.acceptance:.2f}, R-hat {e.rhat:.3g}, {e.ess:.0f} "
        f"effective draws, memory {e.memory:.2g}); cooled from afar {_seen(e.anywhere)}."
    )
    if e.density_kl is None:
        fit = "fit:       unknown. The true density of this data is not known."
    else:
        fit = (
            f"fit:       {_yes(e.density_kl <= FAIR_KL)}. KL(true ‖ model) = {e.density_kl:.3g} nats "
            f"({_grade(e.density_kl, GOOD_KL, FAIR_KL)})."
        )
    if e.log_likelihood is not None:
        fit += f" Log-likelihood of fresh data, in the coordinates of its chains: {e.log_likelihood}."
    return generates, chain, density, fit


def _seen(seen: Seen) -> str:
    return f"{seen.distance:.3g} and {max(0.0, seen.energies):.2g}"


def _yes(answer: bool) -> str:
    return "yes" if answer else "NO"


def _grade(value: float, good: float, fair: float) -> str:
    return "good" if value <= good else "fair" if value <= fair else "poor"
