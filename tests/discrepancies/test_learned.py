"""Learned critics: level and power of the test, the bound of equation 9, batches, stopping, the choice."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from burnin.core import DivergedError, InputError
from burnin.discrepancies.critics import CriticSettings, power_of, train_critics
from burnin.discrepancies.learned import Learned, learn, optimal_terms, split_sizes
from burnin.discrepancies.models import Points
from burnin.discrepancies.skewed import skewness
from tests.discrepancies.gaussians import stream, within_binomial

SMALL = CriticSettings(width=16, iterations=60, validate_every=20, learning_rate=1e-2)


def trials(number: int, n: int, shift: float, dim: int = 2, seed: int = 0) -> Points:
    x = torch.randn(number, n, dim, generator=stream(seed))
    return Points(x, shift - x)


def test_the_test_keeps_its_level() -> None:
    level, number = 0.1, 300
    learned = learn(trials(number, 300, 0.0), SMALL, stream(1), objective="power", split=(0.5, 0.2, 0.3))
    assert within_binomial(int((learned.p_value <= level).sum()), number, level)
    assert learned.statistic.mean().abs().item() < 4 / number**0.5
    assert abs(learned.statistic.std().item() - 1) < 4 / (2 * number) ** 0.5 + 0.05  # 90 terms, not normal


def test_the_test_has_power_and_foretells_it() -> None:
    number = 100
    points = trials(number, 400, 0.35)
    settings = replace(SMALL, dropout=0.0)
    learned = learn(points, settings, stream(1), objective="power", split=(0.5, 0.25, 0.25))
    found = (learned.p_value <= 0.05).double().mean().item()
    foretold = learned.power(0.05).mean().item()
    assert found > 0.6
    assert abs(found - foretold) < 4 * (0.25 / number) ** 0.5


def test_it_rejects_for_large_t_only() -> None:
    terms = torch.stack([torch.linspace(0.5, 1.5, 100), -torch.linspace(0.5, 1.5, 100)])
    learned = Learned(terms, terms, torch.zeros(2))
    for p_value in (learned.p_value, learned.normal_p_value):
        assert p_value[0].item() < 1e-6
        assert p_value[1].item() > 1 - 1e-6


def test_p_values_hold_although_terms_are_skewed() -> None:
    """Terms of mean 0 with a long lower tail, as critics trained for power have: 1 - x, x exponential."""
    number, n = 8000, 100
    uniform = torch.rand(number, 2 * n, generator=stream(), dtype=torch.float64)
    terms = 1 + uniform.log()
    learned = Learned(terms[:, :n], terms[:, n:], torch.zeros(number))
    for level in (0.05, 0.1):
        assert not within_binomial(int((learned.normal_p_value <= level).sum()), number, level)
        assert within_binomial(int((learned.p_value <= level).sum()), number, level)


def test_skewness_is_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    x = torch.rand(3, 50, generator=stream(), dtype=torch.float64).square()
    assert skewness(x).tolist() == pytest.approx(stats.skew(x.numpy(), axis=1).tolist(), rel=1e-9)


@pytest.mark.parametrize("trace", ["exact", "gaussian"])
def test_the_learned_discrepancy_reaches_the_bound(trace: str) -> None:
    """Equation 9 for N(shift, 1) against N(0, 1): ‖shift‖² / 2λ, and no more than chance above."""
    x = torch.randn(1, 4000, 2, generator=stream())
    shift = torch.tensor([0.8, -0.4])
    points = Points(x, shift - x)
    settings = CriticSettings(
        width=32,
        iterations=200,
        learning_rate=1e-2,
        dropout=0.0,
        validate_every=20,
        trace=trace,  # type: ignore[arg-type]
    )
    learned = learn(points, settings, stream(1), objective="discrepancy", standardise=False)
    bound = optimal_terms(points.scores, -x, settings.lam)[0].mean().item()
    assert bound == pytest.approx(0.8, rel=1e-5)
    error = learned.standard_error.item()
    assert error < 0.1 * bound
    assert abs(learned.discrepancy.item() - bound) < 4 * error


def test_a_batch_trains_as_each_trial_would_alone() -> None:
    points = trials(3, 60, 0.5)
    points = Points(points.x, points.scores + torch.tensor([0.0, 0.3, 1.0]).reshape(3, 1, 1))
    validation = trials(3, 30, 0.5, seed=5)
    together = train_critics(points, validation, SMALL, stream(2), objective="power", shared=True)
    for trial in range(3):
        one = slice(trial, trial + 1)
        alone = train_critics(
            Points(points.x[one], points.scores[one]),
            Points(validation.x[one], validation.scores[one]),
            SMALL,
            stream(2),
            objective="power",
            shared=True,
        )
        torch.testing.assert_close(together.validation[one], alone.validation, rtol=1e-3, atol=1e-4)
        ours, its = (
            together.terms(validation)[one],
            alone.terms(Points(validation.x[one], validation.scores[one])),
        )
        torch.testing.assert_close(ours, its, rtol=1e-2, atol=1e-3)


def test_trials_that_stop_leave_the_others_as_they_were() -> None:
    shifts = torch.tensor([0.0, 1.5, 0.0]).reshape(3, 1, 1)
    x, y = (torch.randn(3, n, 2, generator=stream(n)) for n in (80, 40))
    train, validation = Points(x, shifts - x), Points(y, shifts - y)
    settings = CriticSettings(width=16, iterations=100, validate_every=10, learning_rate=3e-3, dropout=0.2)
    whole = train_critics(train, validation, settings, stream(), objective="power", shared=True)
    hasty = replace(settings, patience=2)
    short = train_critics(train, validation, hasty, stream(), objective="power", shared=True)
    assert short.updates.min().item() < 100
    assert (short.updates - short.iterations == 20).logical_or(short.updates == 100).all()
    never_stopped = short.updates == 100
    assert never_stopped[1]
    torch.testing.assert_close(
        short.validation[never_stopped], whole.validation[never_stopped], rtol=1e-3, atol=1e-4
    )
    assert (whole.updates == 100).all()


def test_what_is_kept_is_what_validated_best() -> None:
    train, validation = trials(4, 50, 0.3), trials(4, 30, 0.3, seed=3)
    for objective in ("power", "discrepancy"):
        critics = train_critics(train, validation, SMALL, stream(), objective=objective)
        terms = critics.terms(validation)
        again = power_of(terms) if objective == "power" else terms.mean(1) - terms.std(1)
        torch.testing.assert_close(again, critics.validation, rtol=1e-4, atol=1e-4)
        assert set(critics.iterations.tolist()) <= {20, 40, 60}


def test_the_choice_sees_through_over_fitting() -> None:
    """Appendix A: 100 points in ten dimensions; the critic kept is not the last, and not above the bound."""
    x, y, fresh = (torch.randn(1, n, 10, generator=stream(seed)) for seed, n in enumerate((100, 100, 20_000)))
    settings = CriticSettings(
        width=100, iterations=300, validate_every=10, learning_rate=1e-2, dropout=0.0, weight_decay=0.0
    )
    critics = train_critics(Points(x, 1 - x), Points(y, 1 - y), settings, stream(), objective="discrepancy")
    assert critics.iterations.item() < 300
    terms = critics.terms(Points(fresh, 1 - fresh))
    penalised = terms.mean() - settings.lam * critics.critic(fresh).square().sum(-1).mean()
    error = terms.std().item() / fresh.shape[1] ** 0.5
    assert penalised.item() < 10 / (4 * settings.lam) + 4 * error
    assert terms.mean().item() == pytest.approx(10, rel=0.2)  # the best critic has ‖1‖² / 2λ = 10


def test_small_batches_learn_too() -> None:
    points = trials(2, 400, 0.8)
    settings = replace(SMALL, batch_size=64)
    assert (learn(points, settings, stream(), objective="power").p_value < 0.05).all()


def test_the_running_mean_of_the_weights_is_what_is_kept() -> None:
    """By hand from the weights after each update, which ever longer runs without a mean end with."""
    points, memory = trials(2, 50, 0.3), 0.25

    def weights(updates: int, average: float) -> list[Tensor]:
        settings = replace(SMALL, iterations=updates, validate_every=updates, average=average)
        critics = train_critics(points, points, settings, stream(3), objective="power")
        return list(critics.critic.parameters())

    # The share of the past is 1/11, 2/12, 3/13 and then the memory's.
    mean = weights(1, memory)
    for update, share in ((2, 2 / 12), (3, 3 / 13), (4, memory), (5, memory)):
        last = weights(update, 0.0)
        mean = [share * one + (1 - share) * other for one, other in zip(mean, last, strict=True)]
        for one, other in zip(mean, weights(update, memory), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
    with pytest.raises(InputError, match="average"):
        replace(SMALL, average=1.0)


def test_trials_draw_for_themselves() -> None:
    points = trials(1, 60, 0.5)
    twice = Points(points.x.expand(2, -1, -1), points.scores.expand(2, -1, -1))
    apart = train_critics(twice, twice, SMALL, stream(), objective="power")
    assert apart.validation[0] != apart.validation[1]
    alike = train_critics(twice, twice, SMALL, stream(), objective="power", shared=True)
    torch.testing.assert_close(alike.validation[0], alike.validation[1])


def test_the_same_stream_gives_the_same_critics_whatever_the_global_one() -> None:
    def run() -> Tensor:
        torch.rand(3)
        return learn(trials(2, 100, 0.5), SMALL, stream(4), objective="power").terms

    assert torch.equal(run(), run())


def test_progress_ends_at_the_end() -> None:
    seen: list[tuple[int, int]] = []
    learn(
        trials(1, 100, 0.5),
        SMALL,
        stream(),
        objective="power",
        report=lambda what, done, total: seen.append((done, total)),
    )
    assert seen[-1] == (60, 60)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_wrong_input_is_told() -> None:
    with pytest.raises(InputError, match="add up to 1"):
        split_sizes(100, (0.5, 0.5, 0.5))
    with pytest.raises(InputError, match="20 points make 16 to train, 2 to validate"):
        split_sizes(20)
    for wrong in ({"iterations": 0}, {"patience": 0}, {"batch_size": 1}, {"lam": 0.0}):
        with pytest.raises(InputError, match=f"{next(iter(wrong))} is"):
            CriticSettings(**wrong)
    with pytest.raises(DivergedError, match="lower its learning rate"):
        learn(trials(1, 100, 0.5), replace(SMALL, learning_rate=1e30), stream(), objective="power")
