"""Long runs that are interrupted anywhere and resumed equal those that never were, to the bit."""

from __future__ import annotations

import os
import signal
from dataclasses import fields
from pathlib import Path

import pytest
import torch

from burnin.core import ChainState, CheckpointError, Energy, InputError, Sampler, StepInfo
from burnin.energies import MLP, ConvNet
from burnin.evaluation.long_runs import forget, run_resumable
from burnin.samplers import MALA, Annealed, Engine, Knots, Langevin, RunResult, TargetAcceptance, run
from burnin.samplers.run import Progress

STEPS = 95
POINTS = 10  # pieces of 10 steps, the last of 5
ENERGIES: dict[str, Energy] = {
    "perceptron": MLP(64, width=8, depth=2, generator=torch.Generator().manual_seed(0)),
    "convnet": ConvNet((1, 8, 8), width=2, generator=torch.Generator().manual_seed(0)),
}
SAMPLERS: dict[str, Sampler] = {
    "langevin": Langevin(0.01, 1.0),
    "scheduled": Langevin(Knots(((0, 0.1), (STEPS, 0.001))), 1.0),
    "adapting": MALA(0.01, 1.0, TargetAcceptance.hybrid_paper(until=60)),
    "annealed": Annealed(Langevin(0.01, 1.0), Knots(((0, 5.0), (60, 1.0))), 0.9),
}


class StopError(Exception):
    """A crash."""


def stream(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def start(sampler: Sampler, energy: Energy) -> ChainState:
    return sampler.init(energy, torch.randn(7, 64, generator=stream(2)))


def long_run(
    folder: Path,
    sampler: Sampler = SAMPLERS["langevin"],
    energy: Energy = ENERGIES["perceptron"],
    *,
    progress: Progress | None = None,
    generator: torch.Generator | None = None,
    steps: int = STEPS,
) -> RunResult:
    return run_resumable(
        sampler,
        energy,
        start(sampler, energy),
        num_steps=steps,
        generator=generator or stream(),
        folder=folder,
        trace_points=POINTS,
        save_seconds=0.0,
        progress=progress,
        engine=Engine("never"),
    )


def stop_at(steps: int) -> Progress:
    def stop(done: int, state: ChainState, info: StepInfo) -> None:
        if done >= steps:
            raise StopError

    return stop


def assert_same(a: RunResult, b: RunResult) -> None:
    for one in fields(ChainState):
        left, right = getattr(a.state, one.name), getattr(b.state, one.name)
        assert torch.equal(left, right) if isinstance(left, torch.Tensor) else left == right, one.name
    assert a.trace == b.trace
    assert (a.gradient_norm, a.acceptance, a.non_finite) == (b.gradient_norm, b.acceptance, b.non_finite)
    assert a.outcome is b.outcome


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("energy", ENERGIES)
def test_interrupted_at_a_random_piece_and_resumed(sampler: str, energy: str, tmp_path: Path) -> None:
    parts = SAMPLERS[sampler], ENERGIES[energy]
    whole_stream, stream_again = stream(), stream()
    whole = long_run(tmp_path / "whole", *parts, generator=whole_stream)
    for at in torch.randint(11, STEPS, (2,), generator=stream(len(sampler))).tolist():
        with pytest.raises(StopError):
            long_run(tmp_path / "stopped", *parts, progress=stop_at(at))
    assert_same(long_run(tmp_path / "stopped", *parts, generator=stream_again), whole)
    assert torch.equal(whole_stream.get_state(), stream_again.get_state())


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_pieces_are_the_run_in_one_go(sampler: str, tmp_path: Path) -> None:
    parts = SAMPLERS[sampler], ENERGIES["convnet"]
    pieces = long_run(tmp_path, *parts)
    whole = run(
        *parts,
        start(*parts),
        num_steps=STEPS,
        generator=stream(),
        trace_points=POINTS,
        engine=Engine("never"),
    )
    assert torch.equal(pieces.state.position, whole.state.position)
    assert pieces.trace == whole.trace
    assert pieces.gradient_norm == pytest.approx(whole.gradient_norm, rel=1e-12)
    assert pieces.acceptance == pytest.approx(whole.acceptance, rel=1e-12)


def test_it_really_goes_on(tmp_path: Path) -> None:
    told: list[int] = []
    with pytest.raises(StopError):
        long_run(tmp_path, progress=stop_at(61))
    long_run(tmp_path, progress=lambda done, *_: told.append(done))
    assert told == [70, 80, 90, 95]
    long_run(tmp_path, progress=stop_at(0))  # at its end: nothing is left to do


def test_ctrl_c_saves_what_was_done(tmp_path: Path) -> None:
    def press(done: int, state: ChainState, info: StepInfo) -> None:
        if done == 30:
            os.kill(os.getpid(), signal.SIGINT)

    told: list[int] = []
    parts = SAMPLERS["langevin"], ENERGIES["perceptron"]
    with pytest.raises(KeyboardInterrupt):
        run_resumable(
            *parts,
            start(*parts),
            num_steps=STEPS,
            generator=stream(),
            folder=tmp_path / "stopped",
            trace_points=POINTS,
            save_seconds=1e9,
            progress=press,
            engine=Engine("never"),
        )
    assert sorted(file.suffix for file in (tmp_path / "stopped").iterdir()) == [".json", ".safetensors"]
    made = long_run(tmp_path / "stopped", progress=lambda done, *_: told.append(done))
    assert told[0] == 40
    assert_same(made, long_run(tmp_path / "whole"))


def test_chains_of_another_model_start_anew(tmp_path: Path) -> None:
    with pytest.raises(StopError):
        long_run(tmp_path / "a", progress=stop_at(61))
    other = MLP(64, width=8, depth=2, generator=stream(9))
    assert_same(long_run(tmp_path / "a", energy=other), long_run(tmp_path / "b", energy=other))
    for changed in ({"generator": stream(5)}, {"steps": 40}, {"sampler": Langevin(0.02, 1.0)}):
        told: list[int] = []
        long_run(tmp_path / "a", progress=lambda done, *_, told=told: told.append(done), **changed)
        assert told[0] <= 10


@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
def test_a_damaged_file_is_an_error_that_says_what_to_do(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(StopError):
        long_run(tmp_path, progress=stop_at(61))
    newest = max(tmp_path.glob(f"*{suffix}"))
    payload = bytearray(newest.read_bytes())
    payload[len(payload) // 2] ^= 0xFF
    newest.write_bytes(payload)
    with pytest.raises(CheckpointError, match=r"damaged.*remove"):
        long_run(tmp_path)
    for file in tmp_path.glob(f"{newest.name[:20]}*"):
        file.unlink()
    assert_same(long_run(tmp_path), long_run(tmp_path / "whole"))  # by the one before


def test_a_short_run_leaves_no_file(tmp_path: Path) -> None:
    parts = SAMPLERS["langevin"], ENERGIES["perceptron"]
    run_resumable(*parts, start(*parts), num_steps=20, generator=stream(), folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_forgetting_leaves_other_files(tmp_path: Path) -> None:
    long_run(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    forget(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]
    long_run(tmp_path / "own")
    forget(tmp_path / "own")
    forget(tmp_path / "never")
    assert not (tmp_path / "own").exists()


def test_chains_that_are_not_finite_survive(tmp_path: Path) -> None:
    def cliff(x: torch.Tensor) -> torch.Tensor:
        value: torch.Tensor = -x.square().sum(1).square()
        return value

    whole = long_run(tmp_path / "whole", Langevin(0.1, 1.0), cliff)
    assert whole.non_finite == 7
    with pytest.raises(StopError):
        long_run(tmp_path / "stopped", Langevin(0.1, 1.0), cliff, progress=stop_at(40))
    again = long_run(tmp_path / "stopped", Langevin(0.1, 1.0), cliff)
    assert torch.equal(again.state.position, whole.state.position)
    assert again.outcome is whole.outcome
    assert len(again.trace.energy) == POINTS


@pytest.mark.parametrize(("steps", "points"), [(-1, 10), (5, 0)])
def test_bad_numbers_are_refused(steps: int, points: int, tmp_path: Path) -> None:
    parts = SAMPLERS["langevin"], ENERGIES["perceptron"]
    with pytest.raises(InputError, match="it must"):
        run_resumable(
            *parts,
            start(*parts),
            num_steps=steps,
            generator=stream(),
            folder=tmp_path,
            trace_points=points,
        )
