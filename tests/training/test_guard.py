"""The guard: non-finite at once, outliers after patience, no false alarms, and a state that is whole."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch

from burnin.core import InputError
from burnin.training import Guard, GuardSettings


def gaussian(n: int, seed: int = 0) -> list[float]:
    return torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).tolist()


def seasoned(**settings: Any) -> Guard:
    """A guard that has seen 100 standard Gaussian values of d and of r."""
    guard = Guard(GuardSettings(**{"window": 100, "warmup": 60, "patience": 4, **settings}))
    for d, r in zip(gaussian(100), gaussian(100, seed=1), strict=True):
        assert guard.look({"d/noise": d, "r/noise": 5 + r}) is None
    return guard


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["loss", "d/noise", "r/data"])
def test_non_finite_is_caught_at_the_first_update(name: str, value: float) -> None:
    numbers = {"loss": 0.0, "d/noise": 0.0, "r/data": 1.0, name: value}
    reason = Guard(GuardSettings()).look(numbers)
    assert reason is not None
    assert name in reason
    assert str(value) in reason


@pytest.mark.parametrize("patience", [1, 2, 7])
@pytest.mark.parametrize("name", ["d/noise", "r/noise"])
@pytest.mark.parametrize("sign", [1, -1])
def test_an_outlier_alarms_after_patience_and_not_before(patience: int, name: str, sign: int) -> None:
    guard = seasoned(patience=patience)
    numbers = {"d/noise": 0.1, "r/noise": 5.0, name: sign * 1000.0}
    answers = [guard.look(numbers) for _ in range(patience)]
    assert answers[:-1] == [None] * (patience - 1)
    assert answers[-1] is not None
    assert name in answers[-1]
    assert "history" in answers[-1]


def test_one_good_update_breaks_the_streak() -> None:
    guard = seasoned(patience=3)
    for value in (1e6, 1e6, 0.0, 1e6, 1e6, 0.0):
        assert guard.look({"d/noise": value, "r/noise": 5.0}) is None


def test_streaks_of_two_numbers_do_not_add_up() -> None:
    guard = seasoned(patience=3)
    for i in range(12):
        odd = {"d/noise": 1e6, "r/noise": 5.0} if i % 2 else {"d/noise": 0.0, "r/noise": 1e6}
        assert guard.look(odd) is None


def test_outliers_do_not_become_the_history() -> None:
    guard = seasoned(patience=10_000)
    before = guard.state()["history"]
    for _ in range(300):
        guard.look({"d/noise": 1e6, "r/noise": 1e6})
    assert guard.state()["history"] == before


def test_the_threshold_is_in_robust_standard_deviations() -> None:
    """For the values ±1, median 0 and spread 1.4826: 30 of them are 44.478."""
    for value, alarm in ((44.4, False), (44.6, True)):
        guard = Guard(GuardSettings(window=100, warmup=100, patience=1))
        for i in range(100):
            assert guard.look({"d": (-1.0) ** i}) is None
        assert (guard.look({"d": value}) is not None) == alarm


def test_no_false_alarm_on_gaussian_numbers() -> None:
    """30 sd of a spread from 200 values, 10 in a row: the chance is nil; nor at 12 sd, 1 in a row."""
    for settings in (GuardSettings(), GuardSettings(threshold=12.0, patience=1, warmup=0)):
        guard = Guard(settings)
        for d, r in zip(gaussian(5000), gaussian(5000, seed=1), strict=True):
            assert guard.look({"d/noise": d, "r/noise": math.exp(0.3 * r)}) is None


def test_no_false_alarm_on_a_slow_drift() -> None:
    guard = Guard(GuardSettings())
    for i, noise in enumerate(gaussian(3000)):
        assert guard.look({"r": 1 + 0.05 * i + noise}) is None


def test_the_history_is_not_used_in_the_warmup() -> None:
    guard = Guard(GuardSettings(window=50, warmup=300, patience=1))
    for i in range(300):
        assert guard.look({"d": 0.0 if i < 200 else 1e6}) is None


def test_a_constant_history_alarms_on_a_jump_only() -> None:
    guard = Guard(GuardSettings(window=50, warmup=50, patience=1))
    for _ in range(200):
        assert guard.look({"d": 2.0}) is None
    assert guard.look({"d": 2.0 + 1e-12}) is None
    assert guard.look({"d": 3.0}) is not None


def test_state_goes_through_json_and_the_copy_answers_alike() -> None:
    guard = seasoned(patience=3)
    guard.rollbacks = 2
    assert guard.look({"d/noise": 1e6, "r/noise": 5.0}) is None
    copy = Guard(guard.settings)
    copy.restore(json.loads(json.dumps(guard.state())))
    assert copy.state() == guard.state()
    assert copy.rollbacks == 2
    for value in (1e6, 1e6):
        assert guard.look({"d/noise": value}) == copy.look({"d/noise": value})
    assert copy.state() == guard.state()
    last = [guard.look({"d/noise": 0.0}) for _ in range(300)] + [
        copy.look({"d/noise": 0.0}) for _ in range(300)
    ]
    assert last == [None] * 600
    assert copy.state() == guard.state()  # the window is restored too: old values fall out alike


@pytest.mark.parametrize("tries", [0, 1, 3])
def test_rollbacks_are_counted_against_tries(tries: int) -> None:
    guard = Guard(GuardSettings(tries=tries))
    for rollbacks in range(tries):
        guard.rollbacks = rollbacks
        assert not guard.exhausted
    guard.rollbacks = tries
    assert guard.exhausted


@pytest.mark.parametrize(
    "wrong",
    [
        {"remedy": "pray"},
        {"factor": 0.0},
        {"factor": 1.0},
        {"factor": -0.5},
        {"factor": math.nan},
        {"window": 9},
        {"patience": 0},
        {"tries": -1},
    ],
    ids=str,
)
def test_wrong_settings_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        GuardSettings(**wrong)


def test_suspicious_while_a_number_is_too_far_off_but_not_for_long_enough() -> None:
    guard = Guard(GuardSettings(window=50, warmup=50, patience=3))
    for i in range(60):
        assert guard.look({"d": 0.1 * (-1) ** i}) is None
    assert not guard.suspicious
    assert guard.look({"d": 1e6}) is None
    assert guard.suspicious
    assert guard.look({"d": 0.1}) is None
    assert not guard.suspicious


def test_a_number_that_may_move_is_held_to_be_finite_only() -> None:
    guard = seasoned(patience=1)
    for _ in range(100):
        assert guard.look({"loss": 1e-6, "d/noise": 0.1, "r/noise": 5.0}, only_finite=("loss",)) is None
    assert guard.look({"loss": 1.0, "d/noise": 0.1, "r/noise": 5.0}, only_finite=("loss",)) is None
    assert guard.look({"loss": math.inf, "d/noise": 0.1, "r/noise": 5.0}, only_finite=("loss",)) is not None
    assert guard.look({"loss": 1.0, "d/noise": 1e6, "r/noise": 5.0}, only_finite=("loss",)) is not None
