"""β as a property of every arm: the chains' law, schedules over updates, pools, monitors and the warning."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from burnin.assemble import build_trainer
from burnin.config import load_config
from burnin.core import InputError, Sampler
from burnin.data import GaussianMixture
from burnin.energies import MLP
from burnin.objectives import contrast
from burnin.rng import Streams
from burnin.samplers import HMC, MALA, Annealed, Engine, Knots, Langevin, run
from burnin.samplers.blocks import draw_block
from burnin.starts import FromNoise
from burnin.training import Arm, Parts, Trainer
from burnin.training.arms import run_arms
from burnin.training.schedules import Ramp
from burnin.training.watch import NegativesWatch

T = 0.5


def energy(x: Tensor) -> Tensor:
    return (0.5 * x.square() + 0.3 * torch.cos(x)).sum(1)


def slope(x: Tensor) -> Tensor:
    return x - 0.3 * torch.sin(x)


@pytest.mark.parametrize("beta", [0.3, 0.9, -0.5])
def test_a_tempered_chain_is_the_papers(beta: float) -> None:
    """x + (α/2) (1-β) ∇f + N(0, α), with f = -E/T: the same noise, the drift times 1 - β."""
    alpha = 0.1
    plain = Langevin(alpha / (2 * T), T)
    sampler = plain.tempered(1 - beta)
    assert sampler.temperature == pytest.approx(T / (1 - beta))
    x = torch.randn(10, 3, generator=Streams(0)["start"], dtype=torch.float64)
    state = sampler.init(energy, x)
    z = draw_block(sampler, state, 1, Streams(0)["noise"]).normal[0]
    end = run(sampler, energy, state, num_steps=1, generator=Streams(0)["noise"]).state.position
    wanted = x - alpha / 2 * (1 - beta) * slope(x) / T + math.sqrt(alpha) * z
    torch.testing.assert_close(end, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "sampler",
    [
        Langevin(0.02, T),
        Langevin(Knots(((0, 0.05), (40, 0.02))), T),
        MALA(0.2, T),
        HMC(0.5, 3, T),
        Annealed(MALA(0.2, T), Knots(((0, 3.0), (20, 1.0))), resample_below=0.5),
    ],
)
def test_tempered_samplers_follow_the_tempered_law(sampler: Sampler) -> None:
    """On E = x²/2 the variance of p^(1-β) is T/(1-β): 4,000 chains, so 5 standard errors are 5·sqrt(2/n)."""
    beta, n = 0.6, 4000
    hot = sampler.tempered(1 - beta)
    variance = T / (1 - beta)
    stream = Streams(1)[f"{sampler}"]
    x = math.sqrt(variance) * torch.randn(n, 1, generator=stream, dtype=torch.float64)
    bowl = lambda x: 0.5 * x.square().sum(1)  # noqa: E731
    end = run(hot, bowl, hot.init(bowl, x), num_steps=60, generator=stream).state.position
    # Langevin's own bias at step h is h/2 relative to 1: the tempered step is (1-β)·0.02, so below 0.5%.
    assert end.var().item() == pytest.approx(variance, rel=5 * math.sqrt(2 / n) + 0.005)


def test_beta_one_has_nothing_to_sample() -> None:
    with pytest.raises(InputError, match="below 1"):
        Langevin(0.1, T).tempered(0.0)
    for beta in (1.0, Ramp(((0, 0.0), (10, 1.5)))):
        with pytest.raises(InputError, match="must be below 1"):
            Arm("noise", FromNoise(), Langevin(0.1, T), 1, beta=beta)


def test_ramps() -> None:
    ramp = Ramp(((10, -0.2), (20, 0.3), (21, 0.0)))
    assert [ramp.at(i) for i in (0, 10, 15, 20, 21, 99)] == pytest.approx([-0.2, -0.2, 0.05, 0.3, 0.0, 0.0])
    assert ramp.highest == 0.3
    with pytest.raises(InputError, match="rising"):
        Ramp(((3, 0.1), (3, 0.2)))


def test_arms_of_one_tempered_sampler_run_as_one_batch() -> None:
    calls: list[int] = []

    def counted(x: Tensor) -> Tensor:
        calls.append(len(x))
        return energy(x)

    arms = [
        Arm(name, FromNoise(), Langevin(0.1, T), 2, beta=beta)
        for name, beta in (("a", 0.3), ("b", 0.3), ("c", 0.0))
    ]
    run_arms(arms, counted, torch.zeros(8, 2), None, Streams(0)["chains"], Engine("never"))
    assert calls == [16, 16, 16, 8, 8, 8]


def trainer(arms: list[Arm]) -> Trainer:
    net = MLP(1, width=16, depth=2, generator=Streams(0)["weights"])
    data = GaussianMixture(((-1.0,), (1.0,)), 0.3, (1.0, 1.0))

    def objective(energy, data, negatives):  # type: ignore[no-untyped-def]
        return contrast(energy, data, negatives, temperature=T)

    parts = Parts(net, data, arms, torch.optim.Adam(net.parameters(), lr=1e-2), objective=objective)
    return Trainer(parts, batch_size=32, streams=Streams(0))


def test_monitors_are_in_the_metrics_and_follow_the_schedule() -> None:
    arm = Arm("noise", FromNoise(), Langevin(0.1, T), 3, beta=Ramp(((0, 0.0), (4, 0.4))))
    trained = trainer([arm])
    rows = [trained.update() for _ in range(5)]
    assert "grad_scale/noise" not in rows[0]
    for row in rows[1:]:
        assert 0 < row["grad_scale/noise"] <= 1
        assert 1 <= row["effective/noise"] <= 32 + 1e-3
        assert row["positive/noise"] == pytest.approx(1 - row["grad_scale/noise"], abs=1e-5)
        assert row["gap/noise"] == pytest.approx(-row["d/noise"] / T, abs=1e-4)
        assert 1 / 32 <= row["largest/noise"] <= 1


def test_a_pool_needs_one_good_sampler() -> None:
    """Two samplers, one of which never moves from far away: pooled and weighted, the other one decides.

    The far negatives get next to no weight, so the effective number of negatives is that of the good
    arm alone, up to the spread of its own weights.
    """
    far = Arm("far", FromNoise(shift=30.0), Langevin(0.1, T), 0, beta=0.5, pool="all")
    good = Arm("good", FromNoise(), Langevin(0.1, T), 20, beta=0.5, pool="all")
    trained = trainer([far, good])
    with torch.no_grad():  # an energy that is high far away, as any that has learned something
        for parameter in trained.parts.energy.parameters():
            parameter.abs_()
    numbers = trained.update()
    assert numbers["effective/far"] == numbers["effective/good"]
    assert 5 < numbers["effective/good"] <= 33


def test_the_warning_comes_once_after_patience_and_says_what_to_change() -> None:
    watch = NegativesWatch(patience=3)
    low, high = {"grad_scale/noise": 1e-4, "loss": 0.0}, {"grad_scale/noise": 0.5}
    said = [watch.look(i, row) for i, row in enumerate([low, low, high, low, low, low, low])]
    assert [text is not None for text in said] == [False] * 5 + [True, False]
    assert "lower beta" in str(said[5])
    assert "num_steps" in str(said[5])


RECIPE = """
title = "small"
[run]
updates = 3
batch_size = 8
[data]
name = "mixture8-unequal"
[model]
temperature = 0.1
width = [8, 4]
standardise = false
[scheme]
name = "hybrid"
lam = 3.0
[sampler]
num_steps = 2
step_size = 0.01
"""


@pytest.mark.parametrize(
    ("changes", "betas", "weights", "pools"),
    [
        ([], (0.0, 0.0), (1.0, 3.0), (None, None)),
        (["scheme.beta=0.2"], (0.2, 0.2), (1.0, 3.0), (None, None)),
        (["scheme.beta=0.2", 'scheme.beta_on="noise"'], (0.2, 0.0), (1.0, 3.0), (None, None)),
        (["scheme.beta=0.2", 'scheme.beta_on="data"'], (0.0, 0.2), (1.0, 3.0), (None, None)),
        (["scheme.beta=0.2", "scheme.pooled=true"], (0.2, 0.2), (1.0, 1.0), ("all", "all")),
        (["scheme.beta=[[0, 0.0], [10, 0.5]]"], (0.0, 0.0), (1.0, 3.0), (None, None)),
        (['scheme={name="noise", beta=0.2, beta_on="noise"}'], (0.2,), (1.0,), (None,)),
        (['scheme={name="data", beta=0.2, beta_on="noise"}'], (0.0,), (1.0,), (None,)),
        (['scheme={name="persistent", beta=0.2, beta_on="noise"}'], (0.0,), (1.0,), (None,)),
        (['scheme={name="persistent", beta=0.2}'], (0.2,), (1.0,), (None,)),
    ],
)
def test_recipes_set_beta(
    tmp_path: Path,
    changes: list[str],
    betas: tuple[float, ...],
    weights: tuple[float, ...],
    pools: tuple[str | None, ...],
) -> None:
    path = tmp_path / "small.toml"
    path.write_text(RECIPE, encoding="utf-8")
    built = build_trainer(load_config(str(path), changes))
    arms = built.parts.arms
    assert tuple(arm.beta_at(0) for arm in arms) == betas
    assert tuple(arm.weight for arm in arms) == weights
    assert tuple(arm.pool for arm in arms) == pools
    built.update()


def test_recipes_with_several_samplers(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(RECIPE, encoding="utf-8")
    changes = ['scheme.name="noise"', "scheme.beta=0.3", 'more_samplers=[{kind="hmc", step_size=0.1}]']
    built = build_trainer(load_config(str(path), changes))
    assert [arm.name for arm in built.parts.arms] == ["noise", "noise2"]
    assert [type(arm.sampler).__name__ for arm in built.parts.arms] == ["Langevin", "HMC"]
    assert {arm.pool for arm in built.parts.arms} == {"all"}
    assert {"effective/noise", "effective/noise2"} <= set(built.update())
    with pytest.raises(InputError, match="not with hybrid"):
        build_trainer(load_config(str(path), [changes[2]]))
    with pytest.raises(InputError, match="beta_on"):
        build_trainer(load_config(str(path), ["scheme.pooled=true", 'scheme.beta_on="data"']))


@pytest.mark.parametrize(("beta", "stopped"), [(0.0, True), (0.5, False)])
def test_a_weighted_loss_may_jump(tmp_path: Path, beta: float, stopped: bool) -> None:
    # With one negative that is seldom near the data the loss is next to 0, and now and then is not.
    path = tmp_path / "small.toml"
    path.write_text(RECIPE, encoding="utf-8")
    guard = "guard={window=50, warmup=10, patience=1, tries=0}"
    built = build_trainer(load_config(str(path), ['scheme.name="noise"', f"scheme.beta={beta}", guard]))
    numbers = built.update()
    for i in range(100):
        assert built._trouble({**numbers, "loss": 1e-6 * (1 + i % 7)}) is None
    assert (built._trouble({**numbers, "loss": 1.0}) is not None) is stopped
