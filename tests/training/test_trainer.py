"""The trainer does what its formulas say, and knows what to do when training diverges."""

from __future__ import annotations

import itertools
import math
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from burnin.core import CheckpointError, DivergedError, Energy, InputError, Outcome, Sampler
from burnin.energies import MLP, GaussianEnergy
from burnin.rng import Streams
from burnin.samplers import Annealed, Engine, Knots, Langevin, OverGradientNorm
from burnin.samplers.blocks import draw_block
from burnin.starts import Bank, FromData, FromNoise
from burnin.training import (
    Arm,
    FisherScale,
    Guard,
    GuardSettings,
    Parts,
    RunFolder,
    Trainer,
    load_checkpoint,
    read_metrics,
)
from burnin.training.arms import run_arms
from burnin.training.checkpoint import checkpoint_steps
from burnin.training.schedules import Decay, rate_factor

STEP, T = 0.05, 0.7
EAGER = GuardSettings(window=50, warmup=50, patience=3, factor=0.5, tries=2)


@dataclass
class Cloud:
    """N(1, 0.5²) in `dim` dimensions; NaN in the draws whose number is in `bad` (the first is 1)."""

    dim: int = 2
    dtype: torch.dtype = torch.float32
    bad: tuple[int, ...] = ()
    draws: list[int] = field(default_factory=list)

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        self.draws.append(n)
        x = 1 + 0.5 * torch.randn(n, self.dim, generator=generator, dtype=self.dtype)
        if len(self.draws) in self.bad:
            x[0, 0] = math.nan
        return x


class Bowl(nn.Module):
    """E(x) = θ · ½‖x‖²."""

    def __init__(self, theta: float = 1.3, dtype: torch.dtype = torch.float64) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.tensor(theta, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        return self.theta * 0.5 * x.square().sum(1)


def mlp(seed: int = 0, dim: int = 2) -> MLP:
    return MLP(dim, width=8, depth=1, generator=torch.Generator().manual_seed(seed))


def trainer_of(
    energy: nn.Module,
    arms: Sequence[Arm],
    *,
    data: Cloud | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    batch_size: int = 16,
    seed: int = 0,
    **parts: Any,
) -> Trainer:
    optimizer = optimizer or torch.optim.SGD(energy.parameters(), lr=1e-3)
    whole = Parts(energy=energy, data=data or Cloud(), arms=arms, optimizer=optimizer, **parts)
    return Trainer(whole, batch_size=batch_size, streams=Streams(seed))


def hybrid(sampler: Sampler | None = None, num_steps: int = 3) -> list[Arm]:
    sampler = sampler or Langevin(STEP, T)
    return [
        Arm("noise", FromNoise(), sampler, num_steps),
        Arm("data", FromData(), sampler, num_steps, weight=5.0),
    ]


def weights(module: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()])


# ---------------------------------------------------------------- one update, by hand


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
def test_updates_are_those_of_the_formula(name: str) -> None:
    """θ moves as torch's optimiser moves it for λ·(⟨½x²⟩_data - ⟨½x̂²⟩_data arm) + the noise arm's."""
    energy = Bowl()
    by_hand = nn.Parameter(energy.theta.detach().clone())
    kind = getattr(torch.optim, name)
    trainer = trainer_of(
        energy,
        hybrid(num_steps=2),
        data=Cloud(dtype=torch.float64),
        optimizer=kind(energy.parameters(), lr=0.1),
    )
    optimizer, streams, data = kind([by_hand], lr=0.1), Streams(0), Cloud(dtype=torch.float64)
    for _ in range(4):
        numbers = trainer.update()
        x = data.sample(16, streams["data"])
        stream = streams["chains"]
        noise = torch.randn(16, 2, generator=stream, dtype=torch.float64)
        chains = torch.cat([noise, x])  # both arms share a sampler: one batch
        theta, r = by_hand.detach().clone(), 0.0
        sampler = trainer.parts.arms[0].sampler
        for z in draw_block(sampler, sampler.init(energy, chains), 2, stream).normal:
            chains = chains - STEP * theta * chains + math.sqrt(2 * STEP * T) * z
            r += (theta * chains).norm(dim=1).mean().item() / 2
        half = [0.5 * part.square().sum(1) for part in (x, chains[:16], chains[16:])]
        gradient = (half[0].mean() - half[1].mean()) + 5 * (half[0].mean() - half[2].mean())
        by_hand.grad = gradient.clone()
        optimizer.step()

        torch.testing.assert_close(energy.theta.detach(), by_hand.detach(), rtol=1e-12, atol=0)
        differences = theta * (half[0] - half[2])
        assert numbers["loss"] == pytest.approx((theta * gradient).item(), rel=1e-9)
        assert numbers["d/noise"] == pytest.approx(
            (theta * (half[0].mean() - half[1].mean())).item(), rel=1e-9
        )
        assert numbers["d/data"] == pytest.approx(differences.mean().item(), rel=1e-9)
        assert numbers["std/data"] == pytest.approx(differences.std(correction=0).item(), rel=1e-9)
        assert numbers["snr/data"] == pytest.approx(numbers["d/data"] / numbers["std/data"], rel=1e-9)
        assert numbers["r/noise"] == pytest.approx(r, rel=1e-9)


def test_metrics_are_named_for_every_arm() -> None:
    numbers = trainer_of(mlp(), hybrid()).update()
    kinds = ("d", "std", "snr", "r", "step_size", "acceptance", "stopped", "non_finite")
    wanted = {f"{kind}/{arm}" for kind in kinds for arm in ("noise", "data")} | {"loss", "learning_rate"}
    assert set(numbers) == wanted
    assert all(isinstance(value, float) for value in numbers.values())
    assert numbers["step_size/noise"] == STEP
    assert numbers["acceptance/data"] == 1.0
    assert numbers["stopped/data"] == 0.0


def test_an_energy_of_the_wrong_shape_is_named() -> None:
    with pytest.raises(InputError, match=r"\(32, 3\)"):
        trainer_of(nn.Linear(2, 3), hybrid()).update()


def test_long_gradients_are_clipped_by_the_weight_of_the_arms() -> None:
    def moved(clip: float | None) -> Tensor:
        energy = mlp()
        before = weights(energy)
        trainer_of(
            energy, hybrid(), optimizer=torch.optim.SGD(energy.parameters(), lr=1.0), clip_norm=clip
        ).update()
        return weights(energy) - before

    free, clipped = moved(None), moved(0.01)
    assert free.norm() > 0.06  # 6 is the total weight of the arms
    torch.testing.assert_close(clipped, free * 0.06 / free.norm(), rtol=1e-3, atol=1e-7)
    torch.testing.assert_close(moved(1e6), free)


# ---------------------------------------------------------------- arms


class Counting(nn.Module):
    """A quadratic energy that writes down how many points it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def forward(self, x: Tensor) -> Tensor:
        self.sizes.append(len(x))
        return 0.5 * x.square().sum(1)


@pytest.mark.parametrize(
    ("samplers", "num_steps", "batches"),
    [
        ((Langevin(STEP, T), Langevin(STEP, T), Langevin(STEP, T)), (3, 3, 3), {24}),
        ((Langevin(STEP, T), Langevin(0.2, T), Langevin(STEP, T)), (3, 3, 3), {16, 8}),
        ((Langevin(STEP, T), Langevin(STEP, T), Langevin(STEP, T)), (3, 2, 3), {16, 8}),
        ((Langevin(OverGradientNorm(0.1), T),) * 3, (3, 3, 3), {8}),
        ((Annealed(Langevin(STEP, T), Knots(((0, 4.0), (2, 1.0))), 0.5),) * 3, (3, 3, 3), {8}),
        ((Annealed(Langevin(STEP, T), Knots(((0, 4.0), (2, 1.0))), None),) * 3, (3, 3, 3), {24}),
    ],
    ids=["one sampler", "two samplers", "two lengths", "adaptive step", "resampled", "annealed"],
)
def test_arms_that_share_an_independent_sampler_run_as_one_batch(
    samplers: tuple[Sampler, ...], num_steps: tuple[int, ...], batches: set[int]
) -> None:
    arms = [
        Arm(f"arm{i}", FromNoise(shift=100.0 * i), sampler, steps)
        for i, (sampler, steps) in enumerate(zip(samplers, num_steps, strict=True))
    ]
    energy = Counting()
    runs = run_arms(arms, energy, torch.zeros(8, 2), None, torch.Generator().manual_seed(0), Engine("never"))
    assert set(energy.sizes) == batches
    assert [run.position.shape for run in runs] == [(8, 2)] * 3
    for i, run in enumerate(runs):  # each arm gets its own chains back, in its own place
        assert (run.position.mean() - 100 * i).abs() < 60 * i + 2
        assert (run.drawn.position.mean() - 100 * i).abs() < 2


def test_chains_of_a_shared_batch_follow_the_law_of_their_own_arm() -> None:
    """Langevin on ½x² is an autoregression: after L steps from N(m, s²) its mean and variance are known."""
    n, steps = 20_000, 10
    sampler, rho = Langevin(0.1, T), 0.9
    arms = [
        Arm("a", FromNoise(scale=0.5, shift=3.0), sampler, steps),
        Arm("other", FromNoise(), Langevin(0.3, T), steps),
        Arm("b", FromNoise(scale=2.0, shift=-1.0), sampler, steps),
    ]
    runs = run_arms(
        arms, Counting(), torch.zeros(n, 1), None, torch.Generator().manual_seed(0), Engine("never")
    )
    for index, (mean, sd) in {0: (3.0, 0.5), 2: (-1.0, 2.0)}.items():
        x = runs[index].position
        noise = 2 * 0.1 * T * (1 - rho ** (2 * steps)) / (1 - rho**2)
        variance = rho ** (2 * steps) * sd**2 + noise
        assert x.mean().item() == pytest.approx(rho**steps * mean, abs=4.5 * math.sqrt(variance / n))
        assert x.var().item() == pytest.approx(variance, rel=4.5 * math.sqrt(2 / n))


def test_num_chains_limits_an_arm_and_the_update_averages_over_them() -> None:
    sampler = Langevin(STEP, T)
    arms = [
        Arm("few", FromNoise(), sampler, 2, num_chains=4),
        Arm("all", FromData(), sampler, 2),
    ]
    energy, data = Counting(), torch.arange(20.0).reshape(10, 2)
    runs = run_arms(arms, energy, data, None, torch.Generator().manual_seed(0), Engine("never"))
    assert [len(run.position) for run in runs] == [4, 10]
    assert torch.equal(runs[1].drawn.position, data)
    numbers = trainer_of(mlp(), arms, batch_size=10).update()
    assert math.isfinite(numbers["std/few"])


@pytest.mark.parametrize("wrong", [{"num_chains": 0}, {"num_steps": -1}], ids=str)
def test_impossible_arms_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        Arm("odd", **{"start": FromNoise(), "sampler": Langevin(STEP, T), "num_steps": 1, **wrong})


def test_a_bank_gets_the_ends_of_its_own_chains() -> None:
    bank = Bank(40, (2,), FromNoise(), torch.Generator().manual_seed(5))
    before = bank.position.clone()
    trainer = trainer_of(mlp(), [Arm("bank", bank, Langevin(1e-6, T), 1)], batch_size=16)
    trainer.update()
    changed = (bank.position != before).any(1)
    assert int(changed.sum()) == 16
    assert (bank.position - before).abs().max() < 0.02  # each chain went back to where it came from


# ---------------------------------------------------------------- average, scale, schedules


def test_the_average_is_the_exponential_one() -> None:
    energy = mlp()
    trainer = trainer_of(
        energy, hybrid(), optimizer=torch.optim.SGD(energy.parameters(), lr=0.1), average=0.9
    )
    expected: Tensor | None = None
    for _ in range(6):
        trainer.update()
        now = weights(energy)
        expected = now if expected is None else 0.9 * expected + 0.1 * now
        torch.testing.assert_close(weights(trainer.model), expected, rtol=1e-5, atol=1e-7)
    assert not torch.equal(weights(trainer.model), weights(energy))


def test_without_average_the_model_is_the_energy() -> None:
    energy = mlp()
    assert trainer_of(energy, hybrid()).model is energy


def signs(scale: Tensor) -> Tensor:
    """Points whose mean square in each dimension is exactly scale²."""
    return torch.cat([scale.unsqueeze(0), -scale.unsqueeze(0)]).repeat(4, 1)


def test_fisher_scale_of_a_gaussian_is_its_variance_over_t() -> None:
    """E = ½Σλx² has ⟨(∂E)²⟩ = λ²⟨x²⟩ = λT at its own law, so T/⟨g²⟩ = 1/λ, however wide a dimension is."""
    precision = torch.tensor([0.25, 1.0, 400.0], dtype=torch.float64)
    energy = GaussianEnergy(torch.zeros(3, dtype=torch.float64), torch.diag(precision))
    start = torch.full((3,), 1e6, dtype=torch.float64)
    scale = FisherScale(start, T, decay=0.5, floor=1e-12)
    data = signs((T / precision).sqrt())
    for done in range(1, 60):
        scale.update(energy, data)
        left = 0.5**done
        mean_square = left * T / start + (1 - left) * precision * T
        torch.testing.assert_close(scale.value(), T / mean_square, rtol=1e-12, atol=0)
    torch.testing.assert_close(scale.value(), 1 / precision, rtol=1e-12, atol=0)


def test_fisher_scale_stays_between_floor_and_largest() -> None:
    largest = torch.tensor([2.0, 3.0])
    scale = FisherScale(largest, T, decay=0.0, floor=0.1)
    torch.testing.assert_close(scale.value(), largest)  # before any gradient
    flat = GaussianEnergy(torch.zeros(2), 1e-6 * torch.eye(2))
    scale.update(flat, signs(torch.ones(2)))
    torch.testing.assert_close(scale.value(), largest)
    steep = GaussianEnergy(torch.zeros(2), 1e6 * torch.eye(2))
    scale.update(steep, signs(torch.ones(2)))
    torch.testing.assert_close(scale.value(), 0.1 * largest)


def test_fisher_scale_comes_back_from_its_state() -> None:
    first = FisherScale(torch.tensor([2.0, 3.0]), T, decay=0.5, floor=1e-3)
    first.update(GaussianEnergy(torch.zeros(2), torch.eye(2)), signs(torch.ones(2)))
    second = FisherScale(torch.tensor([9.0, 9.0]), T, decay=0.5, floor=1e-3)
    second.restore({name: value.clone() for name, value in first.state().items()})
    assert torch.equal(first.value(), second.value())


def test_the_trainer_gives_chains_the_fitted_scale() -> None:
    """With a scale of 1e-8 in the second dimension, only the first moves."""
    energy = Bowl(dtype=torch.float32)
    scale = FisherScale(torch.tensor([1.0, 1e-8]), T, decay=1.0, floor=0.0)
    bank = Bank(16, (2,), FromNoise(), torch.Generator().manual_seed(0))
    before = bank.position.clone()
    trainer_of(energy, [Arm("bank", bank, Langevin(STEP, T), 3)], scale=scale).update()
    moved = (bank.position - before).abs().max(0).values
    assert moved[0] > 0.1
    assert moved[1] < 1e-2


@pytest.mark.parametrize(
    ("decay", "expected"),
    [
        ("none", [1.0, 1.0, 1.0, 1.0]),
        ("linear", [1.0, 1.0, 0.52, 0.04]),
        ("cosine", [1.0, 1.0, 0.52, 0.04]),
        ("geometric", [1.0, 1.0, 0.2, 0.04]),
    ],
)
def test_rates_fall_as_their_name_says(decay: Decay, expected: list[float]) -> None:
    factor = rate_factor(200, decay=decay, decay_from=0.5, final_rate=0.04, warmup=0)
    assert [factor(update) for update in (0, 100, 150, 200)] == pytest.approx(expected)
    values = [factor(update) for update in range(201)]
    assert all(a >= b for a, b in itertools.pairwise(values))
    assert factor(300) == pytest.approx(expected[-1])


def test_quarter_points_tell_cosine_from_linear() -> None:
    def at(decay: Decay) -> float:
        return rate_factor(100, decay=decay, decay_from=0.0, final_rate=0.2, warmup=0)(25)

    assert at("linear") == pytest.approx(0.8)
    assert at("cosine") == pytest.approx(0.2 + 0.8 * 0.5 * (1 + math.sqrt(0.5)))
    assert at("geometric") == pytest.approx(0.2**0.25)


def test_warmup_rises_to_one() -> None:
    factor = rate_factor(100, decay="none", decay_from=0.5, final_rate=0.1, warmup=4)
    assert [factor(update) for update in range(6)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def scheduled(energy: nn.Module, rate: float, num_updates: int = 20) -> dict[str, Any]:
    optimizer = torch.optim.SGD(energy.parameters(), lr=rate)
    factor = rate_factor(num_updates, decay="linear", decay_from=0.5, final_rate=0.1, warmup=0)
    return {"optimizer": optimizer, "scheduler": torch.optim.lr_scheduler.LambdaLR(optimizer, factor)}


def test_the_trainer_uses_and_logs_the_scheduled_rate() -> None:
    energy = mlp()
    trainer = trainer_of(energy, hybrid(), **scheduled(energy, 0.01))
    rates = [trainer.update()["learning_rate"] for _ in range(20)]
    factor = rate_factor(20, decay="linear", decay_from=0.5, final_rate=0.1, warmup=0)
    assert rates == pytest.approx([0.01 * factor(update) for update in range(20)])


# ---------------------------------------------------------------- when it goes wrong


def test_divergence_rolls_back_lowers_the_rate_and_goes_on(tmp_path: Path) -> None:
    energy = mlp()
    first = weights(energy)
    parts = scheduled(energy, 1e9)
    guard = GuardSettings(window=50, warmup=50, factor=1e-12, tries=3)
    trainer = trainer_of(energy, hybrid(), guard=guard, **parts)
    events: list[str] = []
    folder = RunFolder(tmp_path / "run")
    outcome = trainer.train(20, folder=folder, checkpoint_every=5, on_event=events.append)
    assert outcome is Outcome.OK
    assert trainer.step == 20
    assert 1 <= len(events) <= 3
    lowered = 1e9 * 1e-12 ** len(events)
    assert parts["scheduler"].base_lrs == pytest.approx([lowered])
    assert parts["optimizer"].param_groups[0]["initial_lr"] == pytest.approx(lowered)
    assert parts["optimizer"].param_groups[0]["lr"] == pytest.approx(lowered * 0.1)
    assert bool(torch.isfinite(weights(energy)).all())
    assert (weights(energy) - first).abs().max() < 10  # and not where the wild update had left them
    rows = list(read_metrics(folder.metrics_path))
    logged = [row["event"] for row in rows if "event" in row]
    assert logged == events
    assert [row["step"] for row in rows if "loss" in row] == list(range(1, 21))
    for number, event in enumerate(events, 1):
        assert "rolled back to update 0" in event
        assert "learning rate × 1e-12" in event
        assert f"try {number} of 3" in event
    assert load_checkpoint(folder.path).state["guard"]["rollbacks"] == len(events)


def test_a_rollback_puts_everything_back_but_the_remedy() -> None:
    """NaN in the 8th batch, checkpoints every 5: the weights, average, optimiser and bank of update 5."""
    energy = mlp()
    bank = Bank(30, (2,), FromNoise(), torch.Generator().manual_seed(0))
    trainer = trainer_of(
        energy,
        [Arm("data", FromData(), Langevin(STEP, T), 2), Arm("bank", bank, Langevin(STEP, T), 2)],
        data=Cloud(bad=(8,)),
        optimizer=torch.optim.Adam(energy.parameters(), lr=0.01),
        average=0.9,
        scale=FisherScale(torch.ones(2), T, decay=0.9, floor=1e-3),
        guard=EAGER,
    )
    at_five: dict[str, Tensor] = {}
    after: dict[str, Tensor] = {}

    def on_update(step: int, numbers: object) -> None:
        if step == 5 and not at_five:
            at_five.update(trainer.snapshot().clone().tensors)

    def on_event(message: str) -> None:
        assert trainer.step == 5
        after.update(trainer.snapshot().clone().tensors)

    assert trainer.train(10, checkpoint_every=5, on_update=on_update, on_event=on_event) is Outcome.OK
    kept = {name for name in at_five if not name.startswith("stream.")}
    assert {"scale.mean_square", "start.bank.position", "average.n_averaged", "energy.layers.0.bias"} <= kept
    for name in kept:
        assert torch.equal(at_five[name], after[name]), name
    for name in ("stream.data", "stream.chains"):  # else the same would happen again
        assert not torch.equal(at_five[name], after[name]), name
    assert trainer.parts.optimizer.param_groups[0]["lr"] == pytest.approx(0.005)


def test_it_gives_up_after_the_set_number_of_tries(tmp_path: Path) -> None:
    energy = mlp()
    guard = GuardSettings(factor=0.5, tries=2)
    trainer = trainer_of(energy, hybrid(), guard=guard, **scheduled(energy, 1e12))
    events: list[str] = []
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(DivergedError, match="given up after 2 rollbacks") as caught:
        trainer.train(20, folder=folder, on_event=events.append)
    assert "learning_rate" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(events) == 2
    logged = [row["event"] for row in read_metrics(folder.metrics_path) if "event" in row]
    assert logged == events
    held = load_checkpoint(folder.path)
    assert all(bool(torch.isfinite(v).all()) for v in held.part("energy").values())
    assert held.state["scheduler"]["base_lrs"] == pytest.approx([0.25e12])


def test_without_a_guard_divergence_raises_at_once() -> None:
    energy = mlp()
    with pytest.raises(DivergedError, match="given up after 0 rollbacks"):
        trainer_of(energy, hybrid(), **scheduled(energy, 1e12)).train(20)


def test_the_remedy_can_be_the_step_size() -> None:
    """Langevin on ½x² doubles x at each step of size 3 and halves it at 1.5."""
    arms = [Arm("noise", FromNoise(), Langevin(3.0, 1e-4), 200)]
    energy = Bowl(theta=1.0, dtype=torch.float32)
    events: list[str] = []
    guard = GuardSettings(remedy="step_size", factor=0.5, tries=2)
    optimizer = torch.optim.SGD(energy.parameters(), lr=1e-6)
    trainer = trainer_of(energy, arms, optimizer=optimizer, guard=guard)
    assert trainer.train(3, on_event=events.append) is Outcome.OK
    assert trainer.remedies.step_factor == 0.5
    assert len(events) == 1
    assert "chains left the finite numbers" in events[0]
    assert "step size × 0.5" in events[0]
    assert optimizer.param_groups[0]["lr"] == 1e-6


def test_step_factors_multiply_up_and_no_remedy_changes_nothing() -> None:
    arms = [Arm("noise", FromNoise(), Langevin(10.0, 1e-4), 200)]
    optimizer_of = torch.optim.SGD
    for remedy, factor in (("step_size", 0.125), ("none", None)):
        energy = Bowl(theta=1.0, dtype=torch.float32)
        optimizer = optimizer_of(energy.parameters(), lr=1e-6)
        guard = GuardSettings(remedy=remedy, factor=0.5, tries=5)  # type: ignore[arg-type]
        trainer = trainer_of(energy, arms, optimizer=optimizer, guard=guard)
        if factor is None:
            with pytest.raises(DivergedError):
                trainer.train(2)
            assert trainer.remedies.step_factor == 1.0
        else:
            assert trainer.train(2) is Outcome.OK
            assert trainer.remedies.step_factor == factor
        assert optimizer.param_groups[0]["lr"] == 1e-6


@pytest.mark.parametrize("start", ["data", "noise"])
def test_one_nan_in_the_data_is_survived(tmp_path: Path, start: str) -> None:
    energy = mlp()
    arm = Arm(start, FromData() if start == "data" else FromNoise(), Langevin(STEP, T), 2)
    data = Cloud(bad=(13,))
    trainer = trainer_of(energy, [arm], data=data, guard=EAGER, average=0.9)
    events: list[str] = []
    folder = RunFolder(tmp_path / "run")
    assert trainer.train(20, folder=folder, checkpoint_every=4, on_event=events.append) is Outcome.OK
    assert len(events) == 1
    assert "update 13" in events[0]
    assert "rolled back to update 12" in events[0]
    assert len(data.draws) == 21
    assert bool(torch.isfinite(weights(trainer.model)).all())
    rows = list(read_metrics(folder.metrics_path))
    assert [row["step"] for row in rows] == [*range(1, 13), 12, *range(13, 21)]


def test_d_far_from_its_history_is_rolled_back() -> None:
    """An objective that reports a d of a million from its 80th call on, three times: finite, but odd."""
    calls: list[int] = []

    def odd(energy: Energy, data: Tensor, negatives: Any) -> Any:
        from burnin.objectives import contrast

        loss, infos = contrast(energy, data, negatives)
        calls.append(1)
        if 80 <= len(calls) < 83:
            infos = [info._replace(d=1e6) for info in infos]
        return loss, infos

    events: list[str] = []
    trainer = trainer_of(mlp(), hybrid(), objective=odd, guard=EAGER)
    assert trainer.train(100, checkpoint_every=75, on_event=events.append) is Outcome.OK
    assert len(events) == 1
    assert "far outside its own history" in events[0]
    assert "update 82" in events[0]
    assert "rolled back to update 75" in events[0]


def test_a_rollback_after_a_resume_draws_what_it_would_have_drawn_without() -> None:
    """Two rollbacks, with a stop and a resume between them or not: the same weights, bit for bit."""

    def make(data: Cloud) -> Trainer:
        energy = mlp()
        optimizer = torch.optim.Adam(energy.parameters(), lr=0.01)
        return trainer_of(energy, hybrid(), data=data, optimizer=optimizer, guard=EAGER)

    whole = make(Cloud(bad=(4, 10)))
    whole.train(14, checkpoint_every=2)
    data = Cloud(bad=(4, 10))
    first = make(data)
    first.train(6, checkpoint_every=2)
    second = make(data)
    second.restore(first.snapshot().clone())
    second.train(14, checkpoint_every=2)
    assert whole.guard is not None
    assert second.guard is not None
    assert whole.guard.rollbacks == second.guard.rollbacks == 2
    assert torch.equal(weights(whole.parts.energy), weights(second.parts.energy))


# ---------------------------------------------------------------- stopping and going on


def test_ctrl_c_saves_and_says_so(tmp_path: Path) -> None:
    def press(step: int, numbers: object) -> None:
        if step == 7:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    folder = RunFolder(tmp_path / "run")
    trainer = trainer_of(mlp(), hybrid())
    assert trainer.train(50, folder=folder, checkpoint_every=20, on_update=press) is Outcome.INTERRUPTED
    assert trainer.step == 7
    held = load_checkpoint(folder.path)
    assert held.state["step"] == 7
    assert [row["step"] for row in read_metrics(folder.metrics_path)] == list(range(1, 8))
    assert signal.getsignal(signal.SIGINT) == before

    whole, resumed = trainer_of(mlp(), hybrid()), trainer_of(mlp(seed=9), hybrid(), seed=4)
    whole.train(12)
    resumed.restore(held)
    resumed.train(12)
    assert torch.equal(weights(whole.parts.energy), weights(resumed.parts.energy))


def test_a_second_ctrl_c_does_not_wait() -> None:
    def press(step: int, numbers: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        trainer_of(mlp(), hybrid()).train(5, on_update=press)


def test_log_every_and_the_last_update(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    trainer_of(mlp(), hybrid()).train(10, folder=folder, log_every=4)
    assert [row["step"] for row in read_metrics(folder.metrics_path)] == [4, 8, 10]


def test_metrics_reach_tensorboard(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    trainer_of(mlp(), hybrid()).train(2, folder=folder, tensorboard=True)
    events = list(folder.path.glob("events.out.tfevents*"))
    assert len(events) == 1
    assert b"d/noise" in events[0].read_bytes()


def test_restoring_into_other_parts_is_refused_in_one_line() -> None:
    bank = Bank(20, (2,), FromNoise(), torch.Generator().manual_seed(0))
    sampler = Langevin(STEP, T)
    plain = trainer_of(mlp(), hybrid()).snapshot()
    others = {
        "weights": trainer_of(mlp(dim=2), hybrid(), average=0.9),
        "scale": trainer_of(mlp(), hybrid(), scale=FisherScale(torch.ones(2), T, decay=0.9, floor=1e-3)),
        "bank": trainer_of(mlp(), [Arm("bank", bank, sampler, 2)]),
        "guard": trainer_of(mlp(), hybrid(), guard=EAGER),
        "network": trainer_of(MLP(2, width=5, depth=1, generator=torch.Generator()), hybrid()),
    }
    for name, other in others.items():
        with pytest.raises(CheckpointError) as caught:
            other.restore(plain)
        assert "\n" not in str(caught.value), name
    banked = trainer_of(mlp(), [Arm("noise", bank, sampler, 2)]).snapshot()
    with pytest.raises(CheckpointError, match="FromNoise"):
        trainer_of(mlp(), [Arm("noise", FromNoise(), sampler, 2)]).restore(banked)


def test_no_checkpoint_is_made_of_a_suspicious_update(tmp_path: Path) -> None:
    """What a rollback returns to must be good: the checkpoint due at update 4 waits for update 6."""
    trainer = trainer_of(mlp(), hybrid(), guard=EAGER)

    class Nervous(Guard):
        @property
        def suspicious(self) -> bool:
            return trainer.step in (4, 5)

    trainer.guard = Nervous(EAGER)
    made: list[int] = []
    trainer.train(
        7,
        folder=RunFolder(tmp_path / "run"),
        checkpoint_every=4,
        on_update=lambda step, _: made.extend(checkpoint_steps(tmp_path / "run")),
    )
    assert sorted(set(made)) == [0, 6]
    assert checkpoint_steps(tmp_path / "run") == [6, 7]
