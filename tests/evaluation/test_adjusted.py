"""Adjusted chains from noise: their law, the acceptance that they hold, and how they go on when stopped."""

from __future__ import annotations

import math
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from burnin.core import ChainState, InputError, StepInfo
from burnin.data import Table
from burnin.evaluation.adjusted import acceptance_off, adjusted_from_noise, windows
from burnin.evaluation.chains import Sampled
from burnin.evaluation.model import Chain, Model
from burnin.samplers import MALA, Langevin, Trace
from burnin.starts import FromNoise

DIM, CHAINS, STEPS = 10, 36, 1000
T = 0.1


class Quadratic(nn.Module):
    """E = |x|²/2, of which exp(-E/T) has the variance T."""

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * x.square().sum(1)


def model(step_size: float) -> Model:
    chain = Chain(Langevin(step_size, temperature=T), 10)
    data = Table(math.sqrt(T) * torch.randn(50, DIM, generator=stream()), tuple("abcdefghij"))
    return Model(Quadratic(), T, data, FromNoise(scale=3.0), chain, chain, True, None, "known", 0)


def stream() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture(scope="module")
def sampled() -> Sampled:
    return adjusted_from_noise(model(5.0), CHAINS, STEPS, stream())


@pytest.mark.parametrize("step_size", [0.02, 5.0])
def test_the_step_is_found_and_the_acceptance_held(step_size: float) -> None:
    """From steps at which almost all or nothing is accepted, and from noise that is nine times too wide.

    A mean over 90 steps of 36 chains has a standard error of at most 0.5 / sqrt(3240) = 0.009.
    """
    made = adjusted_from_noise(model(step_size), CHAINS, STEPS, stream())
    assert acceptance_off(made) < 0.05
    first = made.result.trace.acceptance[0]
    assert abs(first - 0.67) > 0.25, "there was nothing to adapt"


def test_the_law_is_the_models(sampled: Sampled) -> None:
    """360 numbers of variance T: their mean square is off by T·sqrt(2/360) on average."""
    assert sampled.position.square().mean().item() == pytest.approx(T, abs=4 * T * math.sqrt(2 / 360))


def test_stopped_and_gone_on_is_the_same(sampled: Sampled, tmp_path: Path) -> None:
    def press(done: int, state: ChainState, info: StepInfo) -> None:
        if done == 600:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        adjusted_from_noise(model(5.0), CHAINS, STEPS, stream(), progress=press, folder=tmp_path)
    told: list[int] = []
    again = adjusted_from_noise(
        model(5.0), CHAINS, STEPS, stream(), progress=lambda done, *_: told.append(done), folder=tmp_path
    )
    assert told[0] == 605
    assert torch.equal(again.position, sampled.position)
    assert again.result.trace == sampled.result.trace


def test_off_is_the_worst_part_after_the_first_tenth(sampled: Sampled) -> None:
    values = [0.0] * 10 + [0.67] * 90
    values[40:49] = [0.60] * 9
    trace = Trace(iteration=list(range(1, 101)), acceptance=values)
    off = acceptance_off(replace(sampled, result=replace(sampled.result, trace=trace)))
    parts = [mean for _, mean in windows(trace, 10)]
    assert off == pytest.approx(max(abs(mean - 0.67) for mean in parts))
    assert 0.03 < off <= 0.07 + 1e-12


def test_what_holds_no_acceptance(sampled: Sampled) -> None:
    with pytest.raises(InputError, match="adapted step"):
        acceptance_off(replace(sampled, chain=Chain(MALA(0.1, T), STEPS)))
    with pytest.raises(InputError, match="run longer"):
        windows(Trace(iteration=[1, 2], acceptance=[0.5, 0.5]))
