"""The learned Stein discrepancy: critics fitted to one part of the data, judged on another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import InputError, Report
from burnin.discrepancies.critics import CriticSettings, Objective, power_of, train_critics
from burnin.discrepancies.kernelised import normal_quantile
from burnin.discrepancies.models import Points, standardised
from burnin.discrepancies.skewed import corrected, skewness, upper_tail

SPLIT = (0.8, 0.1, 0.1)
"""Shares of the data for training, validation and test (stein, appendix B.1)."""
FEWEST = 5
"""Points that validation and test need at least."""


@dataclass(frozen=True)
class Learned:
    """Stein terms of learned critics on points that these have not seen.

    Attributes:
        terms: s(x)·f(x) + Tr ∇f(x), (trials, test points).
        validation_terms: those of the points that the critics were chosen by, (trials, validation points).
        updates: how many each trial took, (trials,).
    """

    terms: Tensor
    validation_terms: Tensor
    updates: Tensor

    @property
    def discrepancy(self) -> Tensor:
        """The mean over the test points, (trials,): LSD, equation 6."""
        return self.terms.mean(1)

    @property
    def standard_error(self) -> Tensor:
        """Of the mean, (trials,)."""
        return self.terms.std(1) / math.sqrt(self.terms.shape[1])

    @property
    def statistic(self) -> Tensor:
        """t = √n μ/σ, (trials,), near to standard normal under the model (stein, section 5.2)."""
        return math.sqrt(self.terms.shape[1]) * power_of(self.terms)

    @property
    def p_value(self) -> Tensor:
        """The chance of a t at least as large under the model, (trials,): the test rejects for large t.

        The paper writes "reject if t < Φ(1 - α)"; critics are trained to make the mean large, so it is for
        large t. And it takes t for normal. But a critic trained for power has terms with a long lower tail,
        which a hundred points often miss: then t is too large, and right models are rejected too often
        (`normal_p_value`). So t is transformed by their skewness (`corrected`), as the validation points show
        it: those of the test that miss the tail do not know it.
        """
        return upper_tail(self._corrected(self.statistic))

    @property
    def normal_p_value(self) -> Tensor:
        """The paper's: t taken for standard normal, (trials,)."""
        return upper_tail(self.statistic)

    def power(self, level: float) -> Tensor:
        """The chance of rejection that the validation points foretell, (trials,).

        Slightly high: each critic was chosen by these points.
        """
        expected = math.sqrt(self.terms.shape[1]) * power_of(self.validation_terms)
        return upper_tail(normal_quantile(1 - level) - self._corrected(expected))

    def _corrected(self, t: Tensor) -> Tensor:
        return corrected(t, skewness(self.validation_terms), self.terms.shape[1])


def learn(
    points: Points,
    settings: CriticSettings,
    generator: torch.Generator,
    *,
    objective: Objective,
    split: Sequence[float] = SPLIT,
    standardise: bool = True,
    shared: bool = False,
    report: Report | None = None,
) -> Learned:
    """Splits each trial's points, fits critics to the first part, chooses by the second, judges on the third.

    The points are taken in their order: shuffle what has one. Thousands of trials fit in one call, as many
    as memory holds activations for: trials × points × width × 4 bytes, some ten times over.

    Arguments:
        points: data and scores of every trial, (trials, n, dim).
        settings: of the critics.
        generator: draws all that training draws.
        objective: "power" for a test, "discrepancy" for a ranking.
        split: shares of training, validation and test.
        standardise: every column in units of its spread over the training points.
        shared: the same draws for every trial.
        report: told how far it is.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> x = torch.randn(2, 500, 1, generator=generator)  # two trials
        >>> settings = CriticSettings(width=16, iterations=100, learning_rate=1e-2)
        >>> learned = learn(Points(x, 1 - x), settings, generator, objective="power")
        >>> bool((learned.p_value < 0.05).all())
        True
    """
    n = points.x.shape[1]
    first, second, third = split_sizes(n, split)
    if standardise:
        points = standardised(points, by=points.x[:, :first])
    test = points.rows(n - third, n)
    critics = train_critics(
        points.rows(0, first),
        points.rows(first, first + second),
        settings,
        generator,
        objective=objective,
        shared=shared,
        report=report,
    )
    validation = critics.terms(points.rows(first, first + second))
    return Learned(critics.terms(test).double(), validation.double(), critics.updates)


def split_sizes(n: int, split: Sequence[float] = SPLIT) -> tuple[int, int, int]:
    """How many of n points train, validate and test.

    Example:
        >>> split_sizes(1000)
        (800, 100, 100)
    """
    if len(split) != 3 or min(split) <= 0 or not math.isclose(sum(split), 1):
        raise InputError(f"the split is {tuple(split)}; it must be three positive shares that add up to 1")
    second, third = (round(n * share) for share in split[1:])
    first = n - second - third
    if min(first, second, third) < FEWEST:
        raise InputError(
            f"{n} points make {first} to train, {second} to validate and {third} to test; each part needs "
            f"at least {FEWEST}: give more data or another split"
        )
    return first, second, third


def optimal_terms(model_scores: Tensor, true_scores: Tensor, lam: float) -> Tensor:
    """‖s_model - s_truth‖² / 2λ at each point, (n,): their mean is what the best critic's terms have.

    Where the truth is known, so is the critic that wins under the penalty, f = (s_model - s_truth) / 2λ
    (stein, equation 9). By Stein's identity of the truth E s_model·f + Tr ∇f = E (s_model - s_truth)·f, so
    the mean is the discrepancy that a learned critic should reach; less the penalty it is half of that,
    which no critic exceeds. Scores must be in the units that the critic was trained in (`standardised`).

    Example:
        >>> x = torch.zeros(2, 2)
        >>> optimal_terms(1 - x, -x, lam=0.5)  # N(1, 1) for N(0, 1)
        tensor([2., 2.])
    """
    return (model_scores - true_scores).square().sum(-1) / (2 * lam)
