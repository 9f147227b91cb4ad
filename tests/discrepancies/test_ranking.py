"""Rankings: known orders, equal models, and how often a difference is called real when there is none."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from burnin.core import InputError
from burnin.discrepancies import CriticSettings, KernelSettings, compare, optimal_terms
from burnin.discrepancies.ranking import RankingMethod, holm, rank
from burnin.stein import Score
from tests.discrepancies.gaussians import stream, within_binomial

QUICK = CriticSettings(width=32, iterations=150, validate_every=25, learning_rate=1e-2, dropout=0.0)


def shifted(by: float) -> Score:
    return lambda x: by - x


def data(n: int = 1000, seed: int = 0) -> Tensor:
    return torch.randn(n, 2, generator=stream(seed))


@pytest.mark.parametrize("method", ["lsd", "ksd", "lksd"])
def test_models_come_in_the_order_of_their_errors(method: RankingMethod) -> None:
    models = {"far": shifted(1.2), "right": shifted(0.0), "near": shifted(0.6)}
    rows = data(4000 if method == "lsd" else 2000)
    result = compare(models, rows, method, generator=stream(1), critic=QUICK)
    assert [one.name for one in result.ranking] == ["right", "near", "far"]
    assert all(one.real for one in result.differences)
    assert len(result.differences) == 3
    right = result.ranking[0]
    assert abs(right.discrepancy) < 5 * right.standard_error + 1e-3
    assert result.sentences[-2:] == ["right fits better than near and far", "near fits better than far"]
    assert result.as_dict()["method"] == method


def test_learned_discrepancies_are_those_of_the_bound() -> None:
    x = data(4000)
    result = compare([shifted(0.5), shifted(1.0)], x, generator=stream(1), critic=QUICK, standardise=False)
    assert [one.name for one in result.ranking] == ["model 1", "model 2"]
    for one, shift in zip(result.ranking, (0.5, 1.0), strict=True):
        bound = optimal_terms(shift - x, -x, lam=QUICK.lam).mean().item()
        assert bound == pytest.approx(2 * shift**2, rel=1e-4)
        assert abs(one.discrepancy - bound) < 4 * one.standard_error


@pytest.mark.parametrize("method", ["lsd", "ksd", "lksd"])
@pytest.mark.parametrize("bandwidth", ["median", "optimised"])
def test_a_model_cannot_be_told_from_itself(method: RankingMethod, bandwidth: str) -> None:
    settings = KernelSettings(bandwidth=bandwidth)  # type: ignore[arg-type]
    models = {"a": shifted(0.5), "b": shifted(0.5)}
    result = compare(models, data(200), method, generator=stream(), critic=QUICK, kernel=settings)
    difference = result.differences[0]
    assert difference.by == pytest.approx(0.0, abs=1e-4)
    assert not difference.real
    assert result.sentences[-1].endswith("cannot be told from b by this data") or result.sentences[
        -1
    ].endswith("cannot be told from a by this data")


def test_equal_errors_are_seldom_called_different() -> None:
    """Shifts of +½ and -½ are equally far from the data: a real difference is found at the level's rate."""
    level, trials = 0.1, 150
    count = 0
    for trial in range(trials):
        models = {"up": shifted(0.5), "down": shifted(-0.5)}
        result = compare(models, data(200, seed=trial), "ksd", level, generator=stream(trial))
        count += result.differences[0].real
    assert within_binomial(count, trials, level)


def test_the_error_of_a_difference_is_that_of_the_paired_terms() -> None:
    common = 10 * torch.randn(100, generator=stream(2), dtype=torch.float64)
    small = 0.1 * torch.randn(100, generator=stream(3), dtype=torch.float64)
    result = rank({"a": common, "b": common + 0.2 + small}, "lsd", 0.05)
    difference = result.differences[0]
    assert difference.real
    assert difference.standard_error == pytest.approx(small.std().item() / 10)
    assert difference.by == pytest.approx(0.2 + small.mean().item())
    assert result.ranking[0].standard_error == pytest.approx(common.std().item() / math.sqrt(100))


def test_holm_is_statsmodels_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9]) == [0.9]
    assert max(holm([0.6, 0.7])) == 1.0


def test_wrong_input_is_told() -> None:
    for words, models, options in (
        ("at least 2 models; got 1", [shifted(0.0)], {}),
        ("known are lsd, ksd, lksd", [shifted(0.0)] * 2, {"method": "fssd"}),
        ("level is 0", [shifted(0.0)] * 2, {"level": 0}),
    ):
        with pytest.raises(InputError, match=words):
            compare(models, data(50), generator=stream(), **options)
