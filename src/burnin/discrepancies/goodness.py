# ruff: noqa: PT028  (a test of statistics, not of pytest, may have defaults)
"""Goodness of fit: could this data have come from this model? One interface to four tests."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import torch
from torch import Tensor

from burnin.core import InputError, Report
from burnin.discrepancies.critics import CriticSettings
from burnin.discrepancies.finite_set import fit_locations, fssd
from burnin.discrepancies.kernel_settings import KernelSettings, divided, fitted_kernel
from burnin.discrepancies.kernelised import ksd, linear_ksd
from burnin.discrepancies.kernels import median_bandwidth
from burnin.discrepancies.learned import SPLIT, learn
from burnin.discrepancies.models import Model, Points, check_data, evaluate_scores

Method = Literal["lsd", "ksd", "lksd", "fssd"]
METHODS: tuple[Method, ...] = get_args(Method)
FEWEST_ROWS = 20
"""Of the data, for any test."""


@dataclass(frozen=True)
class GoodnessOfFit:
    """The outcome of a test.

    Attributes:
        method: which.
        statistic: lsd: t; ksd: n·KSD; lksd: its normal statistic; fssd: n·FSSD². Large speaks against.
        p_value: the chance of a statistic at least as large if the data came from the model.
        level: below which p value the model is rejected.
        power: the chance that another data set of this size would be rejected, if the difference is as it
            appears: to the validation points for lsd, to the tested points for the others.
        seconds: what it took.
        num_points: rows of the data.
        num_tested: rows that the statistic is of; the others were learned from.
        null: draws of the statistic under the model (ksd, fssd); empty where it is normal.
        terms: numbers whose mean is tested (lsd, lksd), 0 under the model; empty for the others.
        numbers: further ones, by name: bandwidth, discrepancy, updates.
    """

    method: Method
    statistic: float
    p_value: float
    level: float
    power: float
    seconds: float
    num_points: int
    num_tested: int
    null: Tensor = field(repr=False)
    terms: Tensor = field(repr=False)
    numbers: dict[str, float]

    @property
    def reject(self) -> bool:
        """Whether the model is rejected."""
        return self.p_value <= self.level

    @property
    def sentence(self) -> str:
        """The outcome in plain words."""
        tested = f"{self.method}, {self.num_tested} of {self.num_points} points tested"
        if self.reject:
            return (
                f"p = {self.p_value:.3g}: the data did not come from this model "
                f"(rejected at level {self.level:g}; {tested})"
            )
        return (
            f"p = {self.p_value:.3g}: no sign that the data did not come from this model (not rejected at "
            f"level {self.level:g}; a difference as large as it appears would be found in "
            f"{self.power:.0%} of such data sets; {tested})"
        )

    def as_dict(self) -> dict[str, object]:
        """Everything but the draws and terms, for JSON."""
        names = ("method", "statistic", "p_value", "level", "reject", "power", "seconds")
        return {name: getattr(self, name) for name in (*names, "num_points", "num_tested", "numbers")}


def test(
    model: Model,
    data: Tensor,
    method: Method = "lsd",
    level: float = 0.05,
    *,
    generator: torch.Generator,
    temperature: float | None = None,
    standardise: bool = True,
    critic: CriticSettings | None = None,
    kernel: KernelSettings | None = None,
    split: Sequence[float] = SPLIT,
    report: Report | None = None,
) -> GoodnessOfFit:
    """Tests whether data came from a model, by the model's score alone: no normalising constant, no sample.

    | method | statistic | time |
    |---|---|---|
    | lsd | learned critic, t of its Stein terms (stein, section 5.2) | n, but trains a network |
    | ksd | kernelised, all pairs, wild bootstrap (equation 5) | n² |
    | lksd | kernelised, n/2 pairs (Liu et al. 2016) | n |
    | fssd | finite set of fitted locations (Jitkrittum et al. 2017) | n |

    The rows are shuffled first, and must be independent.

    Arguments:
        model: an energy with `temperature`, anything with an energy and a temperature, anything with
            log_prob, or a function x ↦ score.
        data: rows, (n, dim).
        method: which test.
        level: the chance of rejecting a model that is right.
        generator: draws everything: the shuffle, weights, dropout, signs, simulations.
        temperature: T, where `model` is an energy.
        standardise: every column in units of its spread.
        critic: settings of lsd.
        kernel: settings of the others.
        split: shares of training, validation and test of lsd.
        report: told how far it is.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> data = torch.randn(500, 2, generator=generator)
        >>> test(lambda x: -x, data, "ksd", generator=generator).reject
        False
        >>> test(lambda x: 0.5 - x, data, "ksd", generator=generator).reject
        True
    """
    if method not in METHODS:
        raise InputError(f"the method is {method!r}; known are {', '.join(METHODS)}")
    if not 0 < level < 1:
        raise InputError(f"the level is {level}; it must lie between 0 and 1")
    start = time.perf_counter()
    data = check_data(data, FEWEST_ROWS)
    order = torch.randperm(len(data), generator=generator, device=generator.device).to(data.device)
    x = data[order]
    points = Points(x, evaluate_scores(model, x, temperature))
    kernel = kernel or KernelSettings()
    if method == "lsd":
        outcome = _lsd(points, level, generator, critic or CriticSettings(), split, standardise, report)
    else:
        outcome = _KERNEL_TESTS[method](points, level, generator, kernel, standardise, report)
    if not math.isfinite(outcome.statistic):
        raise InputError(
            f"the statistic of {method} is {outcome.statistic}: the model's scores are too large for it"
        )
    return GoodnessOfFit(
        method=method,
        level=level,
        seconds=time.perf_counter() - start,
        num_points=len(data),
        **vars(outcome),
    )


@dataclass(frozen=True)
class _Outcome:
    """What a method knows of its own test."""

    statistic: float
    p_value: float
    power: float
    num_tested: int
    numbers: dict[str, float]
    null: Tensor = field(default_factory=lambda: torch.zeros(0))
    terms: Tensor = field(default_factory=lambda: torch.zeros(0))


def _lsd(
    points: Points,
    level: float,
    generator: torch.Generator,
    settings: CriticSettings,
    split: Sequence[float],
    standardise: bool,
    report: Report | None,
) -> _Outcome:
    one_trial = Points(points.x.unsqueeze(0), points.scores.unsqueeze(0))
    learned = learn(
        one_trial,
        settings,
        generator,
        objective="power",
        split=split,
        standardise=standardise,
        report=report,
    )
    numbers = {"discrepancy": learned.discrepancy.item(), "updates": float(learned.updates.item())}
    return _Outcome(
        learned.statistic.item(),
        learned.p_value.item(),
        learned.power(level).item(),
        learned.terms.shape[1],
        numbers,
        terms=learned.terms[0],
    )


def _ksd(
    points: Points,
    level: float,
    generator: torch.Generator,
    settings: KernelSettings,
    standardise: bool,
    report: Report | None,
) -> _Outcome:
    points, kernel = fitted_kernel(points, settings, generator, standardise=standardise)
    n = len(points.x)
    result = ksd(
        points,
        kernel,
        num_bootstrap=settings.num_draws,
        generator=generator,
        block=settings.block,
        report=report,
    )
    numbers = {"discrepancy": result.u, "bandwidth": float(kernel.bandwidth)}
    power = result.power(n, level)
    return _Outcome(n * result.u, result.p_value, power, n, numbers, null=n * result.bootstrap)


def _lksd(
    points: Points,
    level: float,
    generator: torch.Generator,
    settings: KernelSettings,
    standardise: bool,
    report: Report | None,
) -> _Outcome:
    points, kernel = fitted_kernel(points, settings, generator, standardise=standardise, in_pairs=True)
    n = len(points.x)
    result = linear_ksd(points, kernel)
    numbers = {"discrepancy": result.mean, "bandwidth": float(kernel.bandwidth)}
    power = result.power(n, level)
    return _Outcome(result.statistic, result.p_value, power, n, numbers, terms=result.values)


def _fssd(
    points: Points,
    level: float,
    generator: torch.Generator,
    settings: KernelSettings,
    standardise: bool,
    report: Report | None,
) -> _Outcome:
    train, rest = divided(points, settings.train_share, standardise=standardise)
    fit_bandwidth = settings.bandwidth in (None, "optimised")
    given = settings.bandwidth if isinstance(settings.bandwidth, int | float) else None
    first = settings.make(given or median_bandwidth(train.x, generator))
    locations, kernel = fit_locations(
        train, first, num_locations=settings.num_locations, generator=generator, fit_bandwidth=fit_bandwidth
    )
    if report is not None:
        report("locations", 1, 1)
    result = fssd(rest, locations, kernel, num_simulations=settings.num_draws, generator=generator)
    n = len(rest.x)
    numbers = {"discrepancy": result.value, "bandwidth": float(kernel.bandwidth)}
    power = result.power(n, level)
    return _Outcome(result.statistic, result.p_value, power, n, numbers, null=result.null)


_KERNEL_TESTS: dict[
    Method, Callable[[Points, float, torch.Generator, KernelSettings, bool, Report | None], _Outcome]
] = {"ksd": _ksd, "lksd": _lksd, "fssd": _fssd}
