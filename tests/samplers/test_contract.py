"""One contract for every sampler: pure, repeatable, of its input's shape and type, honest about NaN."""

from __future__ import annotations

import inspect
import math
import weakref
from collections.abc import Callable
from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor

from burnin.core import ChainState, Energy, InputError, Outcome, Sampler, StepInfo
from burnin.samplers import (
    HMC,
    MALA,
    Annealed,
    Knots,
    Langevin,
    OverEnergyNorm,
    OverGradientNorm,
    TargetAcceptance,
    run,
)
from burnin.samplers.blocks import draw_block

T = 0.7
ADAPT = TargetAcceptance(target=0.6, until=9)
COOLING = Knots(((2, 6.0), (8, 1.0)))

SAMPLERS: dict[str, Sampler] = {
    "langevin": Langevin(0.05, T),
    "langevin knots": Langevin(Knots(((0, 0.2), (10, 0.02))), T),
    "langevin over gradient norm": Langevin(OverGradientNorm(0.1), T),
    "langevin over energy norm": Langevin(OverEnergyNorm(0.1), T),
    "mala": MALA(0.1, T),
    "mala adaptive": MALA(0.1, T, ADAPT),
    "hmc": HMC(0.3, 3, T),
    "hmc adaptive": HMC(0.3, 3, T, ADAPT),
    "annealed langevin": Annealed(Langevin(0.05, T), COOLING, resample_below=None),
    "annealed langevin resampled": Annealed(Langevin(0.05, T), COOLING, resample_below=0.9),
    "annealed mala resampled": Annealed(MALA(0.05, T, ADAPT), COOLING, resample_below=0.9),
    "annealed hmc resampled": Annealed(HMC(0.3, 2, T), COOLING, resample_below=0.9),
}
DEPENDENT = {
    "langevin over gradient norm",
    "langevin over energy norm",
    "mala adaptive",
    "hmc adaptive",
    "annealed langevin resampled",
    "annealed mala resampled",
    "annealed hmc resampled",
}
REJECTING = ("mala", "mala adaptive", "hmc", "hmc adaptive")
STOPPING = (
    "langevin",
    "langevin knots",
    "langevin over gradient norm",
    "langevin over energy norm",
    "annealed langevin",
)

every_sampler = pytest.mark.parametrize("name", SAMPLERS)


def energy(x: Tensor) -> Tensor:
    """Curved, and lopsided enough that no coordinate is like another."""
    y = x.flatten(1)
    factors = torch.linspace(0.5, 2.0, y.shape[1], dtype=x.dtype)
    return (0.5 * factors * y.square() + torch.cos(y)).sum(1) + 0.3 * y[:, 0] * y[:, -1]


def holed(x: Tensor) -> Tensor:
    """½‖x‖², NaN wherever a coordinate is beyond 2."""
    y = x.flatten(1)
    value = 0.5 * y.square().sum(1)
    return torch.where((y.abs() <= 2).all(1), value, math.nan)


def start(n: int = 16, shape: tuple[int, ...] = (3,), dtype: torch.dtype = torch.float64) -> Tensor:
    return 0.8 * torch.randn(n, *shape, generator=torch.Generator().manual_seed(3), dtype=dtype)


def stream(seed: int = 4) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def one_step(
    sampler: Sampler, energy: Energy, state: ChainState, generator: torch.Generator
) -> tuple[ChainState, StepInfo]:
    return sampler.step(energy, state, draw_block(sampler, state, 1, generator).step(0))


def tensors(state: ChainState) -> dict[str, Tensor]:
    return {f.name: torch.as_tensor(getattr(state, f.name)) for f in fields(state)}


def assert_equal(a: ChainState, b: ChainState) -> None:
    for name, value in tensors(a).items():
        assert value.equal(tensors(b)[name]), name


@every_sampler
@pytest.mark.parametrize("shape", [(3,), (2, 2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shapes_and_types_are_kept(name: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    sampler, x = SAMPLERS[name], start(shape=shape, dtype=dtype)
    state = sampler.init(energy, x)
    for iteration in range(12):
        assert state.iteration == iteration
        assert state.position.shape == state.gradient.shape == x.shape
        assert state.energy.shape == state.alive.shape == state.log_weight.shape == (16,)
        assert {state.position.dtype, state.gradient.dtype, state.energy.dtype} == {dtype}
        assert {state.log_weight.dtype, state.scale.dtype} == {dtype}
        assert state.alive.dtype == torch.bool
        assert state.step_size.shape == ()
        assert state.step_size.dtype == torch.float64
        assert float(state.step_size) > 0
        torch.testing.assert_close(state.energy, energy(state.position))
        state, info = one_step(sampler, energy, state, stream(iteration))
        assert info.acceptance.shape == info.gradient_norm.shape == (16,)
        assert info.acceptance.dtype == info.gradient_norm.dtype == dtype
        assert bool(((info.acceptance >= 0) & (info.acceptance <= 1)).all())
        torch.testing.assert_close(info.gradient_norm, state.gradient.flatten(1).norm(dim=1))
        assert info.non_finite.shape == ()
        assert int(info.non_finite) == 0
    assert state.iteration == 12
    assert bool(state.alive.all())
    assert not state.position.equal(x)


@every_sampler
def test_gradients_carried_along_are_those_of_the_position(name: str) -> None:
    sampler = SAMPLERS[name]
    state = run(sampler, energy, sampler.init(energy, start()), num_steps=12, generator=stream()).state
    x = state.position.clone().requires_grad_(True)
    expected = torch.autograd.grad(energy(x).sum(), x)[0]
    torch.testing.assert_close(state.gradient, expected, rtol=1e-12, atol=1e-12)


@every_sampler
def test_a_step_is_pure(name: str) -> None:
    sampler, x = SAMPLERS[name], start()
    given = x.clone()
    state = sampler.init(energy, x)
    for _ in range(8):  # the heat, the step size and the weights all change within these
        before = {field: value.clone() for field, value in tensors(state).items()}
        new, _ = one_step(sampler, energy, state, stream())
        for field, value in tensors(state).items():
            assert value.equal(before[field]), field
        state = new
    assert x.equal(given)


@every_sampler
def test_the_same_seed_gives_the_same_chains(name: str) -> None:
    sampler = SAMPLERS[name]
    state = sampler.init(energy, start())
    first = run(sampler, energy, state, num_steps=12, generator=stream())
    torch.randn(3)
    again = run(sampler, energy, state, num_steps=12, generator=stream())
    other = run(sampler, energy, state, num_steps=12, generator=stream(5))
    assert_equal(first.state, again.state)
    assert (first.acceptance, first.gradient_norm) == (again.acceptance, again.gradient_norm)
    assert not first.state.position.equal(other.state.position)


@every_sampler
@pytest.mark.parametrize("cut", [1, 5, 8, 11])
def test_a_run_in_two_parts_is_one_run(name: str, cut: int) -> None:
    sampler = SAMPLERS[name]
    state = sampler.init(energy, start())
    whole = run(sampler, energy, state, num_steps=12, generator=stream())
    generator = stream()
    part = run(sampler, energy, state, num_steps=cut, generator=generator)
    assert part.state.iteration == cut
    rest = run(sampler, energy, part.state, num_steps=12 - cut, generator=generator)
    assert_equal(whole.state, rest.state)


@every_sampler
def test_independent_means_that_chains_ignore_each_other(name: str) -> None:
    """Half the chains are replaced; the other half must not notice, if the sampler says so."""
    sampler, x = SAMPLERS[name], start()
    moved = torch.cat([x[:8], 3 * x[8:] + 1])
    ends = [
        run(sampler, energy, sampler.init(energy, y), num_steps=12, generator=stream()).state.position[:8]
        for y in (x, moved)
    ]
    assert sampler.independent == (name not in DEPENDENT)
    assert ends[0].equal(ends[1]) == sampler.independent


@every_sampler
def test_names_are_the_contracts(name: str) -> None:
    for method in ("init", "schedule", "step"):
        wanted = inspect.signature(getattr(Sampler, method))
        given = inspect.signature(getattr(type(SAMPLERS[name]), method))
        assert given == wanted
    assert SAMPLERS[name].temperature == T


@every_sampler
@pytest.mark.parametrize("shape", [(3,), (2, 2)])
def test_a_scale_is_a_change_of_units(name: str, shape: tuple[int, ...]) -> None:
    """Scale s on E(x) is no scale on E(√s y), x = √s y, for every sampler and the same noise."""
    sampler, x = SAMPLERS[name], start(shape=shape)
    scale = torch.linspace(0.3, 2.0, math.prod(shape), dtype=x.dtype).reshape(shape)
    root = scale.sqrt()
    state = sampler.init(energy, x, scale=scale)
    plain = sampler.init(lambda y: energy(root * y), x / root)
    plain = replace(plain, step_size=state.step_size)
    one = run(sampler, energy, state, num_steps=12, generator=stream())
    two = run(sampler, lambda y: energy(root * y), plain, num_steps=12, generator=stream())
    torch.testing.assert_close(one.state.position, root * two.state.position, rtol=1e-9, atol=1e-9)
    assert one.acceptance == pytest.approx(two.acceptance, rel=1e-9)
    unscaled = run(sampler, energy, sampler.init(energy, x), num_steps=12, generator=stream())
    assert not torch.allclose(one.state.position, unscaled.state.position, atol=1e-3)


@every_sampler
def test_a_scale_of_another_type_does_not_change_the_chains(name: str) -> None:
    x = start(dtype=torch.float32)
    state = SAMPLERS[name].init(energy, x, scale=torch.ones(3, dtype=torch.float64))
    state = one_step(SAMPLERS[name], energy, state, stream())[0]
    assert state.position.dtype == torch.float32


@every_sampler
def test_what_a_run_keeps(name: str) -> None:
    sampler = SAMPLERS[name]
    state = sampler.init(energy, start(shape=(2, 2)))
    calls: list[int] = []

    def progress(done: int, state: ChainState, info: StepInfo) -> None:
        calls.append(done)
        assert state.iteration == done

    result = run(
        sampler,
        energy,
        state,
        num_steps=10,
        generator=stream(),
        keep_every=3,
        trace_points=4,
        progress=progress,
        progress_every=4,
    )
    assert calls == [4, 8, 10]
    assert result.kept is not None
    assert result.kept.shape == (3, 16, 2, 2)
    third = run(sampler, energy, state, num_steps=3, generator=stream())
    assert result.kept[0].equal(third.state.position)
    trace = result.trace
    assert trace.iteration == [3, 6, 9, 10]
    lengths = {len(trace.energy), len(trace.gradient_norm), len(trace.acceptance), len(trace.step_size)}
    assert lengths == {4}
    assert trace.energy[0] == pytest.approx(third.state.energy.mean().item(), rel=1e-12)
    assert trace.energy[-1] == pytest.approx(result.state.energy.mean().item(), rel=1e-12)
    assert result.outcome is Outcome.OK


@every_sampler
@pytest.mark.parametrize(("num_steps", "trace_points"), [(1, 1), (7, 3), (10, 10), (10, 25), (101, 100)])
def test_a_trace_is_never_longer_than_asked(name: str, num_steps: int, trace_points: int) -> None:
    sampler = SAMPLERS[name]
    state = sampler.init(energy, start(n=2))
    result = run(sampler, energy, state, num_steps=num_steps, generator=stream(), trace_points=trace_points)
    assert 0 < len(result.trace.iteration) <= trace_points
    assert result.trace.iteration[-1] == num_steps
    assert result.kept is None


@every_sampler
def test_means_over_a_run_are_means_over_its_steps(name: str) -> None:
    sampler = SAMPLERS[name]
    state = sampler.init(energy, start())
    result = run(sampler, energy, state, num_steps=6, generator=stream())
    generator = stream()
    norms, acceptances = [], []
    for _ in range(6):
        state, info = one_step(sampler, energy, state, generator)
        norms.append(info.gradient_norm.mean().item())
        acceptances.append(info.acceptance.mean().item())
    assert result.gradient_norm == pytest.approx(sum(norms) / 6, rel=1e-12)
    assert result.acceptance == pytest.approx(sum(acceptances) / 6, rel=1e-12)


@every_sampler
def test_a_trace_holds_the_mean_acceptance_since_the_entry_before(name: str) -> None:
    sampler = SAMPLERS[name]
    state = sampler.init(energy, start())
    result = run(sampler, energy, state, num_steps=7, generator=stream(), trace_points=3)
    generator, acceptances = stream(), []
    for _ in range(7):
        state, info = one_step(sampler, energy, state, generator)
        acceptances.append(info.acceptance.mean().item())
    assert result.trace.iteration == [3, 6, 7]
    means = [sum(part) / len(part) for part in (acceptances[:3], acceptances[3:6], acceptances[6:])]
    assert result.trace.acceptance == pytest.approx(means, rel=1e-12)


@every_sampler
def test_memory_does_not_grow_with_the_steps(name: str) -> None:
    """Of 300 states seen on the way, all but the last few are gone while the run still goes on."""
    sampler = SAMPLERS[name]
    seen: list[weakref.ref[Tensor]] = []

    def progress(done: int, state: ChainState, info: StepInfo) -> None:
        seen.append(weakref.ref(state.gradient))
        assert sum(ref() is not None for ref in seen) <= 3

    run(
        sampler,
        energy,
        sampler.init(energy, start(n=2)),
        num_steps=300,
        generator=stream(),
        trace_points=10,
        progress=progress,
        progress_every=1,
    )
    assert len(seen) == 300


@every_sampler
def test_no_steps_change_nothing(name: str) -> None:
    state = SAMPLERS[name].init(energy, start())
    result = run(SAMPLERS[name], energy, state, num_steps=0, generator=stream(), keep_every=1)
    assert result.state is state
    assert result.kept is None


@pytest.mark.parametrize("name", STOPPING)
def test_langevin_stops_and_counts_lost_chains(name: str) -> None:
    """The hole is at 2; at T = 0.7 some chains, not all, fall into it within 25 steps."""
    sampler = SAMPLERS[name]
    state = sampler.init(holed, start(n=64).clamp(-1.9, 1.9))
    assert bool(state.alive.all())
    generator, lost = stream(), 0
    for _ in range(25):
        new, info = one_step(sampler, holed, state, generator)
        gone = state.alive & ~new.alive
        assert int(info.non_finite) == int(gone.sum())
        assert new.position[~new.alive].equal(state.position[~new.alive]), "a lost chain stays where it was"
        assert not bool((new.alive & ~state.alive).any()), "a lost chain stays lost"
        lost += int(info.non_finite)
        state = new
    assert 0 < lost < 64
    assert bool(torch.isfinite(state.position).all())
    assert bool(torch.isfinite(state.energy).all())
    assert bool((state.position.abs() <= 2).all())
    result = run(
        sampler,
        holed,
        sampler.init(holed, start(n=64).clamp(-1.9, 1.9)),
        num_steps=25,
        generator=stream(),
        trace_points=5,
    )
    assert_equal(result.state, state)
    assert result.non_finite == lost == int((~state.alive).sum())
    assert result.outcome is Outcome.NON_FINITE
    assert "lower step_size" in result.outcome.message
    assert math.isfinite(result.gradient_norm)
    assert all(math.isfinite(value) for value in result.trace.energy + result.trace.gradient_norm)


@pytest.mark.parametrize("name", REJECTING)
def test_metropolis_rejects_and_counts(name: str) -> None:
    sampler = SAMPLERS[name]
    result = run(
        sampler,
        holed,
        sampler.init(holed, start(n=64).clamp(-1.9, 1.9)),
        num_steps=100,
        generator=stream(),
    )
    assert result.non_finite > 0
    assert bool(result.state.alive.all())
    assert result.outcome is Outcome.OK
    assert bool((result.state.position.abs() <= 2).all())
    assert bool(torch.isfinite(result.state.gradient).all())


def test_resampling_replaces_lost_chains_by_living_ones() -> None:
    sampler = Annealed(Langevin(0.05, T), Knots(((20, 4.0), (40, 1.0))), resample_below=0.5)
    state = sampler.init(holed, start(n=64).clamp(-1.9, 1.9))
    hot = run(sampler, holed, state, num_steps=20, generator=stream())
    assert 0 < int((~hot.state.alive).sum()) < 64
    cooled = run(sampler, holed, hot.state, num_steps=20, generator=stream())
    after, info = one_step(sampler, holed, cooled.state, stream())  # the last notch resamples
    assert int((~after.alive).sum()) == int(info.non_finite), "only what was lost in this very step"
    assert hot.non_finite > 0
    assert after.log_weight.equal(torch.zeros(64, dtype=torch.float64))


@every_sampler
def test_chains_that_begin_lost_are_dead_and_harm_nobody(name: str) -> None:
    sampler, x = SAMPLERS[name], start(n=16).clamp(-1, 1)
    lost = x.clone()
    lost[::2] += 5
    state = sampler.init(holed, lost)
    assert state.alive.tolist() == [False, True] * 8
    result = run(sampler, holed, state, num_steps=6, generator=stream())
    living = result.state.position[result.state.alive]
    assert len(living) > 0
    assert bool((living.abs() <= 2).all())
    assert math.isfinite(result.gradient_norm)


@pytest.mark.parametrize("kind", ["mala", "hmc"])
def test_dead_chains_do_not_hold_the_step_back(kind: str) -> None:
    """Three quarters dead: were they counted, acceptance could not reach 0.6 and the step would vanish."""
    adaptation = TargetAcceptance(target=0.6, until=None)
    sampler: Sampler = MALA(0.5, T, adaptation) if kind == "mala" else HMC(1.0, 2, T, adaptation)
    x = start(n=400).clamp(-1, 1)
    x[100:] += 5
    result = run(sampler, holed, sampler.init(holed, x), num_steps=200, generator=stream())
    alone = run(sampler, holed, sampler.init(holed, x[:100]), num_steps=200, generator=stream())
    assert float(result.state.step_size) == pytest.approx(float(alone.state.step_size), rel=0.2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Langevin(0.0, 1.0),
        lambda: Langevin(math.nan, 1.0),
        lambda: Langevin(0.1, 0.0),
        lambda: Langevin(0.1, math.inf),
        lambda: MALA(-1.0, 1.0),
        lambda: MALA(0.1, -1.0),
        lambda: HMC(0.1, 0, 1.0),
        lambda: HMC(math.inf, 1, 1.0),
        lambda: Annealed(MALA(0.1, 1.0), COOLING, resample_below=0.0),
        lambda: Annealed(MALA(0.1, 1.0), COOLING, resample_below=1.1),
        lambda: TargetAcceptance(target=1.0, until=None),
        lambda: Knots(()),
        lambda: Knots(((0, 1.0), (0, 2.0))),
        lambda: Knots(((0, 0.0),)),
        lambda: OverGradientNorm(0.0),
        lambda: OverEnergyNorm(math.nan),
    ],
)
def test_impossible_settings_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(InputError):
        make()


def test_impossible_runs_are_refused() -> None:
    sampler = Langevin(0.1, 1.0)
    state = sampler.init(energy, start())
    with pytest.raises(InputError, match="num_steps is -1"):
        run(sampler, energy, state, num_steps=-1, generator=stream())
    with pytest.raises(InputError, match="keep_every is 0"):
        run(sampler, energy, state, num_steps=1, generator=stream(), keep_every=0)


def test_adaptive_first_steps_are_their_formulas() -> None:
    x = start(n=50)
    y = x.clone().requires_grad_(True)
    value = energy(y)
    gradient = torch.autograd.grad(value.sum(), y)[0]
    by_gradient = float(Langevin(OverGradientNorm(0.1), T).init(energy, x).step_size)
    assert by_gradient == pytest.approx(0.1 / gradient.norm(dim=1).mean().item(), rel=1e-12)
    by_energy = float(Langevin(OverEnergyNorm(0.1), T).init(energy, x).step_size)
    assert by_energy == pytest.approx(0.1 / value.detach().square().mean().sqrt().item(), rel=1e-12)
    assert Langevin(OverGradientNorm(0.1, largest=1e-3), T).init(energy, x).step_size == 1e-3


def flat(x: Tensor) -> Tensor:
    return 0 * x.sum(1)


def test_an_adaptive_step_on_a_flat_or_lost_energy() -> None:
    x = start()
    assert Langevin(OverGradientNorm(0.1, largest=2.0), T).init(flat, x).step_size == 2.0
    with pytest.raises(InputError, match="flat energy"):
        Langevin(OverGradientNorm(0.1), T).init(flat, x)
    with pytest.raises(InputError, match="non-finite"):
        Langevin(OverGradientNorm(0.1), T).init(lambda x: math.nan * x.sum(1), x)


def test_knots_pass_through_their_points_by_equal_factors() -> None:
    schedule = Knots(((10, 8.0), (30, 2.0), (40, 2.0), (41, 1.0)))
    assert [schedule.at(i) for i in (0, 10, 30, 35, 40, 41, 10_000)] == [8.0, 8.0, 2.0, 2.0, 2.0, 1.0, 1.0]
    factors = [schedule.at(i + 1) / schedule.at(i) for i in range(10, 30)]
    assert factors == pytest.approx([0.25 ** (1 / 20)] * 20, rel=1e-12)


def test_a_step_schedule_is_read_at_every_iteration() -> None:
    schedule = Knots(((0, 0.2), (10, 0.02)))
    sampler = Langevin(schedule, T)
    state = sampler.init(energy, start())
    generator, mirror = stream(), stream()
    for iteration in range(12):
        z = draw_block(sampler, state, 1, mirror).normal[0]
        step = schedule.at(iteration)
        expected = state.position - step * state.gradient + math.sqrt(2 * step * T) * z
        state, _ = one_step(sampler, energy, state, generator)
        torch.testing.assert_close(state.position, expected, rtol=1e-13, atol=1e-13)
        assert state.step_size == step


def test_heat_that_does_not_end_at_the_models_temperature_is_refused() -> None:
    with pytest.raises(InputError, match="must end at 1"):
        Annealed(Langevin(0.1, 1.0), heat=Knots(((0, 8.0), (50, 2.0))), resample_below=None)
