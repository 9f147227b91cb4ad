"""An honest verdict: is it a generator, is it a density, does it fit?"""

from __future__ import annotations

from dataclasses import dataclass

GOOD, FAIR = 2.0, 5.0
"""Distances up to 2 times, and up to 5 times, the 95th percentile of chance."""
GOOD_KL, FAIR_KL = 0.05, 0.3


@dataclass(frozen=True)
class Evidence:
    """What the verdict rests on; None where it was not measured.

    Attributes:
        sample_distance: short-run samples from noise against data.
        long_run_distance: the same chains much later.
        data_run_distance: chains from data, much later.
        density_kl: KL(true ‖ model), where the truth is known.
        long_steps: how many further steps the long runs took.
    """

    sample_distance: float
    long_run_distance: float
    data_run_distance: float
    density_kl: float | None
    long_steps: int


@dataclass(frozen=True)
class Verdict:
    """Three answers, each with its sentence."""

    generator: bool
    density: bool
    fits: bool | None
    lines: tuple[str, str, str]


def judge(evidence: Evidence) -> Verdict:
    """Turns measured numbers into three lines.

    A generator's short chains from noise end on the data. A density's long chains stay there, from
    noise and from data: a sampler whose samples leave when it is run longer is no density. The fit is
    the divergence from the truth, where the truth is known.

    Example:
        >>> verdict = judge(Evidence(1.2, 1.1, 0.9, 0.02, 20000))
        >>> verdict.generator, verdict.density, verdict.fits
        (True, True, True)
        >>> judge(Evidence(1.2, 80.0, 75.0, 6.0, 20000)).density
        False
    """
    generator = evidence.sample_distance <= FAIR
    density = evidence.long_run_distance <= FAIR and evidence.data_run_distance <= FAIR
    fits = None if evidence.density_kl is None else evidence.density_kl <= FAIR_KL
    first = (
        f"generator: {_yes(generator)}. Short chains from noise end at {evidence.sample_distance:.3g} × what "
        f"chance alone gives ({_grade(evidence.sample_distance, GOOD, FAIR)})."
    )
    second = (
        f"density:   {_yes(density)}. After {evidence.long_steps:,} further steps they are at "
        f"{evidence.long_run_distance:.3g} ×, chains from data at {evidence.data_run_distance:.3g} ×: "
        + (
            "they stay where they were."
            if density
            else "they leave the data; its energies are no log-densities."
        )
    )
    if evidence.density_kl is None:
        third = "fit:       unknown. The true density of this data is not known."
    else:
        third = (
            f"fit:       {_yes(bool(fits))}. KL(true ‖ model) = {evidence.density_kl:.3g} nats "
            f"({_grade(evidence.density_kl, GOOD_KL, FAIR_KL)})."
        )
    return Verdict(generator, density, fits, (first, second, third))


def _yes(answer: bool) -> str:
    return "yes" if answer else "NO"


def _grade(value: float, good: float, fair: float) -> str:
    return "good" if value <= good else "fair" if value <= fair else "poor"
