"""Ranking models by how far each is from the data, and saying which differences are real."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from burnin.core import InputError, Report
from burnin.discrepancies.critics import CriticSettings
from burnin.discrepancies.kernel_settings import KernelSettings, fitted_kernel
from burnin.discrepancies.kernelised import ksd, linear_ksd, normal_cdf
from burnin.discrepancies.learned import SPLIT, learn
from burnin.discrepancies.models import Model, Points, check_data, evaluate_scores

RankingMethod = Literal["lsd", "ksd", "lksd"]
RANKING_METHODS: tuple[RankingMethod, ...] = get_args(RankingMethod)
FEWEST_ROWS = 20


@dataclass(frozen=True)
class Ranked:
    """One model's place.

    Attributes:
        name: of the model.
        discrepancy: from the data, 0 for the model that is right; an estimate may be a little below.
        standard_error: of it.
    """

    name: str
    discrepancy: float
    standard_error: float


@dataclass(frozen=True)
class Difference:
    """Two models on the same points.

    Attributes:
        better, worse: their names, by the estimates.
        by: how much lower the better one's discrepancy is.
        standard_error: of the difference, point by point, so that what both share cancels.
        p_value: of a difference at least as large, either way, if there were none; corrected for the number
            of pairs compared (Holm).
        real: whether that is at most the level.
    """

    better: str
    worse: str
    by: float
    standard_error: float
    p_value: float
    real: bool


class Comparison(NamedTuple):
    """Models from best to worst.

    Attributes:
        method: of the discrepancy.
        level: below which p value a difference is real.
        ranking: best first.
        differences: of every pair.
        num_tested: points that the discrepancies are means over.
    """

    method: RankingMethod
    level: float
    ranking: list[Ranked]
    differences: list[Difference]
    num_tested: int

    @property
    def sentences(self) -> list[str]:
        """The ranking and which of its differences are real, in plain words."""
        lines = [f"{r.name}: {r.discrepancy:.4g} ± {r.standard_error:.2g}" for r in self.ranking]
        for ranked in self.ranking[:-1]:
            pairs = [d for d in self.differences if d.better == ranked.name]
            beaten = [d.worse for d in pairs if d.real]
            alike = [d.worse for d in pairs if not d.real]
            parts = []
            if beaten:
                parts.append(f"fits better than {_list(beaten)}")
            if alike:
                parts.append(f"cannot be told from {_list(alike)} by this data")
            lines.append(f"{ranked.name} " + ", and ".join(parts))
        return lines

    def as_dict(self) -> dict[str, object]:
        """Everything, for JSON."""
        return {
            "method": self.method,
            "level": self.level,
            "num_tested": self.num_tested,
            "ranking": [asdict(ranked) for ranked in self.ranking],
            "differences": [asdict(difference) for difference in self.differences],
            "sentences": self.sentences,
        }


def compare(
    models: Mapping[str, Model] | Sequence[Model],
    data: Tensor,
    method: RankingMethod = "lsd",
    level: float = 0.05,
    *,
    generator: torch.Generator,
    temperature: float | None = None,
    standardise: bool = True,
    critic: CriticSettings | None = None,
    kernel: KernelSettings | None = None,
    split: Sequence[float] = SPLIT,
    report: Report | None = None,
) -> Comparison:
    """Ranks models by their Stein discrepancy from data (stein, algorithm 1, section 5.1).

    For lsd a critic is trained for each model, all of them from the same first weights and with the same
    draws, to maximise the discrepancy, and chosen by mean less standard deviation on the validation points
    (appendix A). The discrepancies are means over test points, the same for every model, so differences
    are judged point by point. A learned discrepancy is what its critic found: a lower bound, up to chance.

    Arguments:
        models: by name, or a list, then called model 1, model 2, …; see `burnin.discrepancies.test`.
        data: rows that no model was trained on, (n, dim).
        method: "lsd", "ksd" or "lksd".
        level: the chance of calling any difference real when there is none.
        generator: draws everything.
        temperature: T, where the models are energies.
        standardise: every column in units of its spread.
        critic: settings of lsd.
        kernel: settings of the others; None as bandwidth is the median, the same for every model.
        split: shares of training, validation and test of lsd.
        report: told how far it is.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> data = torch.randn(1000, 2, generator=generator)
        >>> models = {"far": lambda x: 1 - x, "right": lambda x: -x, "near": lambda x: 0.5 - x}
        >>> result = compare(models, data, "ksd", generator=generator)
        >>> print("\\n".join(result.sentences[3:]))
        right fits better than near and far
        near fits better than far
    """
    if method not in RANKING_METHODS:
        raise InputError(f"the method is {method!r}; known are {', '.join(RANKING_METHODS)}")
    if not 0 < level < 1:
        raise InputError(f"the level is {level}; it must lie between 0 and 1")
    if not isinstance(models, Mapping):
        models = {f"model {index}": model for index, model in enumerate(models, 1)}
    if len(models) < 2:
        raise InputError(f"a comparison needs at least 2 models; got {len(models)}")
    data = check_data(data, FEWEST_ROWS)
    order = torch.randperm(len(data), generator=generator, device=generator.device).to(data.device)
    x = data[order]
    scores = torch.stack([evaluate_scores(model, x, temperature) for model in models.values()])
    points = Points(x.expand_as(scores), scores)
    if method == "lsd":
        learned = learn(
            points,
            critic or CriticSettings(),
            generator,
            objective="discrepancy",
            split=split,
            standardise=standardise,
            shared=True,
            report=report,
        )
        terms = learned.terms
    else:
        settings = kernel or KernelSettings()
        terms = _kernel_terms(points, method, settings, generator, standardise, report)
    return rank(dict(zip(models, terms, strict=True)), method, level)


def rank(terms: Mapping[str, Tensor], method: RankingMethod, level: float) -> Comparison:
    """The comparison of models from numbers whose means are their discrepancies, on the same points.

    Example:
        >>> zero = torch.tensor([0.1, -0.1, 0.0, 0.0])
        >>> rank({"a": zero + 1, "b": zero}, "lsd", 0.05).sentences[-1]
        'b fits better than a'
    """
    n = len(next(iter(terms.values())))

    def error(values: Tensor) -> float:
        return values.std().item() / math.sqrt(n)

    ranked = [Ranked(name, values.mean().item(), error(values)) for name, values in terms.items()]
    ranked.sort(key=lambda one: one.discrepancy)
    pairs = list(itertools.combinations([one.name for one in ranked], 2))
    apart = [terms[worse] - terms[better] for better, worse in pairs]
    p_values = holm([_two_sided(values.mean().item(), error(values)) for values in apart])
    differences = [
        Difference(better, worse, values.mean().item(), error(values), p_value, p_value <= level)
        for (better, worse), values, p_value in zip(pairs, apart, p_values, strict=True)
    ]
    return Comparison(method, level, ranked, differences, n)


def holm(p_values: Sequence[float]) -> list[float]:
    """P values corrected for their number: each holds for all at once (Holm 1979).

    Example:
        >>> holm([0.25, 0.0625, 0.125])
        [0.25, 0.1875, 0.25]
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = highest
    return corrected


def _two_sided(mean: float, error: float) -> float:
    """The chance of a mean at least as far from 0, if it were 0."""
    if error > 0:
        return 2 * normal_cdf(-abs(mean) / error)
    return 1.0 if mean == 0 else 0.0  # the same number at every point leaves no doubt


def _kernel_terms(
    points: Points,
    method: RankingMethod,
    settings: KernelSettings,
    generator: torch.Generator,
    standardise: bool,
    report: Report | None,
) -> Tensor:
    """Numbers whose mean is each model's kernel discrepancy, (models, judged points or pairs)."""
    rows = []
    # Every model's bandwidth is chosen from the same draws: equal models are to come out equal.
    state = generator.get_state()
    for index in range(len(points.x)):
        generator.set_state(state)
        one = Points(points.x[index], points.scores[index])
        judged, kernel = fitted_kernel(
            one, settings, generator, standardise=standardise, criterion="discrepancy"
        )
        if method == "lksd":
            rows.append(linear_ksd(judged, kernel).values)
        else:
            result = ksd(judged, kernel, block=settings.block)
            # The influence of each point on a U-statistic: its mean is u, its spread that of u.
            rows.append(2 * result.row_means - result.u)
        if report is not None:
            report("models", index + 1, len(points.x))
    return torch.stack(rows)


def _list(names: Sequence[str]) -> str:
    """a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
