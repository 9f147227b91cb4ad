"""However chains are computed, the numbers are the same; and a line says how they were."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from burnin.core import Energy, InputError, Sampler
from burnin.energies import MLP, FourierFeatures, GaussianFactor, JointEnergy, Standardised
from burnin.samplers import (
    HMC,
    MALA,
    Annealed,
    Engine,
    Knots,
    Langevin,
    OverGradientNorm,
    RunResult,
    TargetAcceptance,
    compiled,
    run,
)
from burnin.samplers.build import cache_folder, library
from burnin.samplers.plain import LARGE_BLOCK, keep_freed_memory
from tests.native import needs_compiler

T = 0.7
DIM, CHAINS = 5, 37
ADAPT = TargetAcceptance(target=0.6, until=9)
COOLING = Knots(((2, 6.0), (12, 1.0)))
SAMPLERS: dict[str, Sampler] = {
    "langevin": Langevin(0.02, T),
    "langevin knots": Langevin(Knots(((0, 0.05), (10, 0.01))), T),
    "langevin over gradient norm": Langevin(OverGradientNorm(0.05, largest=0.05), T),
    "mala": MALA(0.02, T),
    "mala adaptive": MALA(0.02, T, ADAPT),
    "hmc": HMC(0.1, 3, T),
    "hmc adaptive": HMC(0.1, 3, T, ADAPT),
    "annealed langevin": Annealed(Langevin(0.02, T), COOLING, resample_below=None),
    "annealed langevin resampled": Annealed(Langevin(0.02, T), COOLING, resample_below=0.9),
    "annealed mala resampled": Annealed(MALA(0.02, T, ADAPT), COOLING, resample_below=0.9),
    "annealed hmc resampled": Annealed(HMC(0.1, 2, T), COOLING, resample_below=0.9),
}
NUM_STEPS = 23  # two graphs of ten steps, and three single ones
every_sampler = pytest.mark.parametrize("name", SAMPLERS)


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def stock(activation: str = "silu", *, rich: bool = True) -> nn.Module:
    """A stock network; a rich one has every part that a closed form may have."""
    frequencies = (0.5, 1.3)
    generator = stream(1)
    if not rich:
        return MLP(DIM, width=19, depth=2, generator=generator, activation=activation)
    inner = MLP(
        FourierFeatures.size(DIM, frequencies), width=19, depth=3, generator=generator, activation=activation
    )
    mean, std = torch.randn(DIM, generator=generator), 0.5 + torch.rand(DIM, generator=generator)
    net = Standardised(FourierFeatures(inner, frequencies), mean, std)
    return GaussianFactor(net, torch.zeros(DIM), torch.ones(DIM), temperature=T)


def start(n: int = CHAINS) -> Tensor:
    return torch.randn(n, DIM, generator=stream(2))


def chain(sampler: Sampler, energy: Energy, engine: Engine, n: int = CHAINS) -> RunResult:
    scale = torch.linspace(0.5, 1.5, DIM)
    state = sampler.init(energy, start(n), scale=scale)
    return run(
        sampler, energy, state, num_steps=NUM_STEPS, generator=stream(3), engine=engine, trace_points=4
    )


def assert_same(one: RunResult, two: RunResult, tolerance: float) -> None:
    for field in ("position", "energy", "gradient", "log_weight"):
        a, b = getattr(one.state, field), getattr(two.state, field)
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
    assert one.state.alive.equal(two.state.alive)
    assert one.state.iteration == two.state.iteration
    assert float(one.state.step_size) == pytest.approx(float(two.state.step_size), rel=tolerance)
    assert one.gradient_norm == pytest.approx(two.gradient_norm, rel=tolerance)
    assert one.acceptance == pytest.approx(two.acceptance, rel=tolerance)
    assert one.non_finite == two.non_finite
    assert one.trace.energy == pytest.approx(two.trace.energy, rel=tolerance, abs=tolerance)


# Float32 has 6e-8 of rounding an operation. Steps of this size on energies this smooth contract, so
# 23 steps of a few dozen operations stay within a few hundred roundings.
FLOAT_TOLERANCE = 3e-5


@needs_compiler
@every_sampler
def test_native_chains_are_the_plain_ones(name: str) -> None:
    sampler, energy = SAMPLERS[name], stock()
    native, plain = Engine("always", threads=1), Engine("never")
    one, two = chain(sampler, energy, native), chain(sampler, energy, plain)
    assert (native.path, plain.path) == ("native", "plain")
    assert_same(one, two, FLOAT_TOLERANCE)


@needs_compiler
@pytest.mark.parametrize("activation", ["silu", "softplus"])
@pytest.mark.parametrize("classes", [2, 10])
def test_native_joint_energies_are_the_plain_ones(activation: str, classes: int) -> None:
    """A classifier's logits, of which one may be far above the others."""
    net = MLP(DIM, width=19, depth=2, generator=stream(1), activation=activation, outputs=classes)
    last = net.layers[-1]
    assert isinstance(last, nn.Linear)
    with torch.no_grad():
        last.bias[0] += 200
    mean, std = torch.randn(DIM, generator=stream(4)), 0.5 + torch.rand(DIM, generator=stream(5))
    for energy in (JointEnergy(Standardised(net, mean, std)), JointEnergy(net)):
        for sampler in (SAMPLERS["langevin"], SAMPLERS["hmc"]):
            native, plain = Engine("always"), Engine("never")
            one, two = chain(sampler, energy, native), chain(sampler, energy, plain)
            assert (native.path, plain.path) == ("native", "plain")
            assert_same(one, two, FLOAT_TOLERANCE)
        with torch.no_grad():
            last.bias[0] -= 200


@needs_compiler
@pytest.mark.parametrize("activation", ["silu", "gelu", "leaky", "softplus"])
@pytest.mark.parametrize("rich", [True, False])
def test_native_activations_are_torchs(activation: str, rich: bool) -> None:
    sampler, energy = SAMPLERS["langevin"], stock(activation, rich=rich)
    assert_same(
        chain(sampler, energy, Engine("always")), chain(sampler, energy, Engine("never")), FLOAT_TOLERANCE
    )


@needs_compiler
@every_sampler
def test_threads_do_not_change_a_bit(name: str) -> None:
    """200 chains of three leapfrog steps are enough work for a second thread to be started."""
    sampler, energy = SAMPLERS[name], stock()
    one, two = (chain(sampler, energy, Engine("always", threads=n), n=200) for n in (1, 2))
    assert one.state.position.equal(two.state.position)
    assert (one.gradient_norm, one.acceptance) == (two.gradient_norm, two.acceptance)


@every_sampler
def test_graphs_give_the_plain_chains(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the tracer and the differentiation of torch.compile, without the code generator, which is slow."""
    monkeypatch.setattr(compiled, "BACKEND", "aot_eager")
    sampler, energy = SAMPLERS[name], Own()
    engine, plain = Engine("always"), Engine("never")
    one, two = chain(sampler, energy, engine), chain(sampler, energy, plain)
    assert (engine.path, plain.path) == ("compiled", "plain")
    assert_same(one, two, FLOAT_TOLERANCE)


@needs_compiler
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # torch's code generator uses its own past
def test_a_compiled_graph_follows_training_and_is_kept() -> None:
    """With the code generator: other weights, same graph, and the numbers of the plain steps."""
    sampler, energy, engine = Langevin(0.02, T), Own(), Engine("always")
    assert_same(chain(sampler, energy, engine), chain(sampler, energy, Engine("never")), FLOAT_TOLERANCE)
    assert engine.path == "compiled"
    with torch.no_grad():
        for parameter in energy.parameters():
            parameter.add_(0.1)
    torch._dynamo.config.patch(error_on_recompile=True)(
        lambda: assert_same(
            chain(sampler, energy, engine), chain(sampler, energy, Engine("never")), FLOAT_TOLERANCE
        )
    )()


class Own(nn.Module):
    """A user's network: no closed form, weights that require gradients, energies of shape (n, 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(DIM, 9), nn.Tanh(), nn.Linear(9, 1))
        with torch.no_grad():
            for parameter in self.net.parameters():
                parameter.uniform_(-0.5, 0.5, generator=stream(4))

    def forward(self, x: Tensor) -> Tensor:
        value: Tensor = self.net(x) + 0.5 * x.square().sum(1, keepdim=True)
        return value


@needs_compiler
@pytest.mark.parametrize("name", ["langevin", "mala", "hmc", "annealed langevin resampled"])
def test_native_chains_that_leave_the_finite_numbers(name: str) -> None:
    """A third of the chains start where float32 ends: stopped, rejected or resampled as plainly."""
    sampler, energy = SAMPLERS[name], MLP(DIM, width=19, depth=2, generator=stream(1))
    with torch.no_grad():
        next(energy.parameters()).mul_(10)  # so that the first layer overflows
    x = start()
    x[::3] = 3e38
    results = []
    for engine in (Engine("always"), Engine("never")):
        state = replace(sampler.init(energy, start()), position=x)
        results.append(run(sampler, energy, state, num_steps=15, generator=stream(), engine=engine))
    one, two = results
    assert one.non_finite == two.non_finite > 0
    assert one.state.alive.equal(two.state.alive)
    assert one.outcome is two.outcome
    finite = torch.isfinite(two.state.position).all(1)
    torch.testing.assert_close(one.state.position[finite], two.state.position[finite], rtol=1e-4, atol=1e-4)


@needs_compiler
def test_chains_that_begin_dead_stay_dead() -> None:
    sampler, energy = SAMPLERS["langevin"], stock(rich=False)
    x = start()
    x[::2] = math.nan
    state = sampler.init(energy, x)
    one, two = (
        run(sampler, energy, state, num_steps=5, generator=stream(), engine=engine)
        for engine in (Engine("always"), Engine("never"))
    )
    assert one.state.alive.equal(two.state.alive)
    assert one.gradient_norm == pytest.approx(two.gradient_norm, rel=FLOAT_TOLERANCE)
    assert bool(one.state.position[::2].isnan().all())


@pytest.mark.parametrize("cut", [1, 10, 17])
def test_a_native_run_in_two_parts_is_one_run(cut: int) -> None:
    sampler, energy, engine = SAMPLERS["annealed langevin resampled"], stock(), Engine("always")
    state = sampler.init(energy, start())
    whole = run(sampler, energy, state, num_steps=NUM_STEPS, generator=stream(), engine=engine)
    generator = stream()
    part = run(sampler, energy, state, num_steps=cut, generator=generator, engine=engine)
    rest = run(sampler, energy, part.state, num_steps=NUM_STEPS - cut, generator=generator, engine=engine)
    assert rest.state.position.equal(whole.state.position)


def test_what_is_not_float32_is_computed_otherwise() -> None:
    energy, sampler = stock().double(), Langevin(0.02, T)
    engine = Engine("auto")
    x = start().double()
    run(sampler, energy, sampler.init(energy, x), num_steps=3, generator=stream(), engine=engine)
    assert engine.path == "plain"


def test_without_a_compiler_a_line_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    lines: list[str] = []
    engine = Engine("always", say=lines.append)
    chain(SAMPLERS["langevin"], stock(), engine)
    chain(SAMPLERS["langevin"], stock(), engine)
    assert engine.path == "plain"
    assert lines == [
        "chains: plain steps (no native code: no C++ compiler on the path; install g++ or clang++)"
    ]


def test_a_compiler_that_fails_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "c++"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && echo fake && exit 0\necho broken >&2\nexit 1\n')
    fake.chmod(0o755)
    monkeypatch.setenv("CXX", str(fake))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lines: list[str] = []
    engine = Engine("always", say=lines.append)
    chain(SAMPLERS["langevin"], stock(), engine)
    assert lines == ["chains: plain steps (no native code: c++ failed: broken)"]
    assert list((tmp_path / "cache" / "burnin").iterdir()) == []


@needs_compiler
def test_auto_builds_only_what_pays_and_finds_it_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    lines: list[str] = []
    engine = Engine("auto", say=lines.append)
    chain(SAMPLERS["langevin"], stock(), engine)
    assert engine.path == "plain"
    assert "too few steps" in lines[0]
    assert not cache_folder().exists()
    patient = Engine("auto", expected_steps=10**7)
    chain(SAMPLERS["langevin"], stock(), patient)
    assert patient.path == "native"
    assert len(list(cache_folder().iterdir())) == 1
    again = Engine("auto", threads=2, say=lines.append)
    chain(SAMPLERS["langevin"], stock(), again)
    assert again.path == "native"
    assert lines[-1] == "chains: native code, up to 2 threads"
    assert library(build=False).library is library(build=False).library


class Untraceable(nn.Module):
    """Looks at its own values in Python, which no graph can."""

    def forward(self, x: Tensor) -> Tensor:
        factor = 1.0 if float(x.detach().sum()) > 1e9 else 0.5
        return factor * x.square().sum(1)


def test_an_energy_that_cannot_be_traced_runs_plainly_with_a_line() -> None:
    lines: list[str] = []
    engine = Engine("always", say=lines.append)
    result = chain(SAMPLERS["langevin"], Untraceable(), engine)
    assert engine.path == "plain"
    assert lines[0] == "chains: a compiled graph"
    assert "could not be compiled" in lines[1]
    assert_same(result, chain(SAMPLERS["langevin"], Untraceable(), Engine("never")), 1e-12)
    chain(SAMPLERS["langevin"], Untraceable(), engine)
    assert len(lines) <= 3


def test_an_error_of_the_energy_itself_comes_up() -> None:
    sampler = Langevin(0.02, T)
    state = sampler.init(lambda x: x.square().sum(1), start())
    with pytest.raises(InputError, match="one number for each input"):
        run(sampler, lambda x: x, state, num_steps=2, generator=stream(), engine=Engine("always"))


def test_a_choice_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match="auto, never, always"):
        Engine("sometimes")  # type: ignore[arg-type]


def test_plain_chains_keep_their_memory_and_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The block that teaches malloc to keep memory is let go at once, once in a process."""
    made: list[int] = []
    empty = torch.empty

    def noted(*size: int, **options: Any) -> Tensor:
        made.append(size[0])
        return empty(*size, **options)

    keep_freed_memory.cache_clear()
    monkeypatch.setattr(torch, "empty", noted)
    keep_freed_memory()
    keep_freed_memory()
    assert made == [LARGE_BLOCK]
    assert LARGE_BLOCK < 32 * 2**20
