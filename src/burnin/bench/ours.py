"""burnin's own chains and updates, compiled and plain."""

from __future__ import annotations

import torch

from burnin.bench.cases import (
    ARM_WEIGHTS,
    LEARNING_RATE,
    NUM_LEAPFROG,
    SEEDS,
    STEP_SIZE,
    TEMPERATURE,
    Case,
    make_energy,
    make_start,
)
from burnin.bench.contestants import Work
from burnin.core import Sampler, Start
from burnin.data import make_density
from burnin.rng import Streams
from burnin.samplers import HMC, MALA, Engine, Langevin, run
from burnin.starts import FromData, FromNoise
from burnin.training import Arm, Parts, Trainer


def compiled(case: Case) -> Work:
    """The fastest path there is for the case."""
    return _make(case, Engine(compile="always"))


def plain(case: Case) -> Work:
    """Eager PyTorch."""
    return _make(case, Engine(compile="never"))


def _make(case: Case, engine: Engine) -> Work:
    return updates(case, engine) if case.kind == "training" else _chains(case, engine)


def _chains(case: Case, engine: Engine) -> Work:
    sampler, energy = make_sampler(case), make_energy(case)
    start = sampler.init(energy, make_start(case))
    stream = torch.Generator().manual_seed(SEEDS["chains"])

    def take(steps: int) -> None:
        run(sampler, energy, start, num_steps=steps, generator=stream, engine=engine)

    return Work(take, lambda: engine.path)


def updates(case: Case, engine: Engine, beta: float = 0.0) -> Work:
    """Hybrid updates, whose contrast is weighted by β in both arms."""
    energy, sampler = make_energy(case), Langevin(STEP_SIZE, TEMPERATURE)
    starts: dict[str, Start] = {"noise": FromNoise(), "data": FromData()}
    arms = [
        Arm(name, starts[name], sampler, case.arm_steps, weight=weight, beta=beta)
        for name, weight in ARM_WEIGHTS.items()
    ]
    trainer = Trainer(
        Parts(
            energy=energy,
            data=make_density(case.density),
            arms=arms,
            optimizer=torch.optim.Adam(energy.parameters(), lr=LEARNING_RATE),
            engine=engine,
        ),
        batch_size=case.chains,
        streams=Streams(SEEDS["chains"]),
    )

    def take(steps: int) -> None:
        for _ in range(steps):
            trainer.update()

    return Work(take, lambda: engine.path)


def make_sampler(case: Case) -> Sampler:
    """The case's sampler."""
    if case.kind == "mala":
        return MALA(STEP_SIZE, TEMPERATURE)
    if case.kind == "hmc":
        return HMC(STEP_SIZE, NUM_LEAPFROG, TEMPERATURE)
    return Langevin(STEP_SIZE, TEMPERATURE)
