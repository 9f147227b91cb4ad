"""What is chosen for a table by itself: network, temperature, steps and length of chains."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

import torch

from burnin.assemble import build_trainer
from burnin.config import Config, DataSettings, load_config
from burnin.core import ChainState, Energy, Sampler, evaluate
from burnin.data import EncodedRows
from burnin.energies import GaussianFactor
from burnin.rng import Streams
from burnin.samplers import MALA, Engine, Knots, Langevin, RunResult, TargetAcceptance, run
from burnin.training import Trainer

ROWS_FILE = "rows.npz"
PILOT_UPDATES = 40
PILOT_CHAINS = 256
PILOT_STEPS = 100
PILOT_RATE = 0.5
FAST, SURE = 0.574, 0.9
"""Acceptance, were there a Metropolis check, of the chains' first steps and of their last."""
LONGEST = (0.3, 0.05)
"""Of either, at most, those of the rings: in few dimensions an acceptance allows unstable steps."""
LENGTHS = (20, 30, 50, 75, 100)
FORGOTTEN = 0.5
"""Displacement of chains from data that is enough: 1 is that of independent draws."""
QUIET = 0.1
"""Spread of the untrained network's energies at the data, over T: it starts as the Gaussian factor alone."""
NOISE = 0.2
"""Noise on the data, as a share of Scott's bandwidth n^(-1/(d + 4)): smooths what few rows cannot tell."""
COOLING = (0.3, 0.85)
"""Shares of a chain from noise at which it begins to cool from HEAT · T, and is cool."""
HEAT = 8.0


@dataclass(frozen=True)
class Wishes:
    """What is told rather than chosen; None leaves a choice to the data."""

    width: int | None = None
    temperature: float | None = None
    step_size: float | None = None
    num_steps: int | None = None
    noise: float | None = None
    learning_rate: float | None = None
    batch_size: int = 128
    max_updates: int = 2000


@dataclass(frozen=True)
class Choice:
    """What was chosen, and what it rests on.

    Attributes:
        width: of the network's three layers.
        temperature: T.
        noise: on the data's whitened coordinates.
        first_step, last_step: step sizes along a chain, in units of the fitted scale.
        num_steps: length of chains from data; those from noise are twice as long.
        acceptance: of the last step, were there a Metropolis check.
        displacement: of chains from data over their length; 1 is that of independent draws.
        seconds: for an update, as the pilot measured it.
    """

    width: int
    temperature: float
    noise: float
    first_step: float
    last_step: float
    num_steps: int
    acceptance: float
    displacement: float
    seconds: float

    def describe(self) -> list[str]:
        """The choices in words."""
        return [
            f"network: 3 × {self.width} units, temperature {self.temperature:.3g}, "
            f"noise of {self.noise:.2g} standard deviations on the data",
            f"chains: {self.num_steps} steps of {self.first_step:.3g} falling to {self.last_step:.3g} "
            f"(acceptance {self.acceptance:.2f} at the last, displacement {self.displacement:.2f})",
        ]

    def as_dict(self) -> dict[str, float]:
        """Everything by name."""
        return asdict(self)


def choose(
    rows: EncodedRows, wishes: Wishes, seed: int, engine: Engine | None = None
) -> tuple[Config, Choice]:
    """A configuration for these rows: the recipe `table` with what a short pilot run finds.

    The width follows the number of rows. The temperature makes the untrained network quiet. A pilot trains
    for a few updates; Metropolis-adjusted chains from data then find the step that is accepted with `FAST`,
    which chains begin with, and with `SURE`, which they end with (`LONGEST` at most); their length is the
    shortest that moves them half as far as independent draws.
    """
    width = wishes.width or _width(len(rows))
    config = _configure(rows, wishes, seed, width, wishes.temperature or 0.5, (0.3, 0.05), 30)
    if wishes.temperature is None:
        config = config.model_copy(
            update={"model": config.model.model_copy(update={"temperature": _temperature(config, rows)})}
        )
    temperature = config.model.temperature
    trainer = build_trainer(config, engine, rows)
    updates = min(PILOT_UPDATES, wishes.max_updates)
    before = time.perf_counter()
    trainer.train(updates)
    seconds = (time.perf_counter() - before) / updates
    probe = _Probe(trainer, Streams(seed)["pilot"])
    first = wishes.step_size or min(LONGEST[0], probe.step_for(FAST))
    last = min(LONGEST[1], first, probe.step_for(SURE))
    lengths = (wishes.num_steps,) if wishes.num_steps is not None else LENGTHS
    length, displacement = lengths[0], 0.0
    for length in lengths:
        displacement = probe.displacement(first, last, length)
        if displacement >= FORGOTTEN:
            break
    # The pilot's chains had 30 and 60 steps.
    seconds *= max(1.0, length / 30)
    config = _configure(rows, wishes, seed, width, temperature, (first, last), length)
    chosen = (width, temperature, config.data.noise, first, last, length)
    return config, Choice(*chosen, probe.acceptance(last), displacement, seconds)


class _Probe:
    """Chains from data under what the pilot has learned."""

    def __init__(self, trainer: Trainer, generator: torch.Generator) -> None:
        self._energy: Energy = trainer.model.eval()
        self._temperature = trainer.parts.arms[0].sampler.temperature
        self._scale = trainer.parts.scale.value() if trainer.parts.scale is not None else None
        self._start = trainer.parts.data.sample(PILOT_CHAINS, generator)
        self._generator, self._engine = generator, trainer.engine

    def step_for(self, acceptance: float) -> float:
        """The step that is accepted so often."""
        sampler = MALA(0.1, self._temperature, TargetAcceptance(acceptance, until=None, rate=PILOT_RATE))
        state = sampler.init(self._energy, self._start, scale=self._scale)
        return float(self._run(sampler, state, PILOT_STEPS).state.step_size)

    def acceptance(self, step_size: float) -> float:
        """How often a step is accepted."""
        sampler = MALA(step_size, self._temperature)
        state = sampler.init(self._energy, self._start, scale=self._scale)
        return self._run(sampler, state, PILOT_STEPS // 2).acceptance

    def displacement(self, first: float, last: float, num_steps: int) -> float:
        """Mean squared way of plain chains from data, over that between independent draws."""
        sampler = Langevin(Knots(((0, first), (num_steps, last))), self._temperature)
        state = sampler.init(self._energy, self._start, scale=self._scale)
        way = (self._run(sampler, state, num_steps).state.position - self._start).square().mean(0)
        return (way / (2 * self._start.var(0).clamp(min=1e-12))).mean().item()

    def _run(self, sampler: Sampler, state: ChainState, num_steps: int) -> RunResult:
        return run(
            sampler,
            self._energy,
            state,
            num_steps=num_steps,
            generator=self._generator,
            engine=self._engine,
        )


def _width(n: int) -> int:
    return 32 if n < 500 else 64 if n < 5000 else 128


def _temperature(config: Config, rows: EncodedRows) -> float:
    """So that the untrained network's energies at the data spread by `QUIET` · T."""
    energy = build_trainer(config, None, rows).parts.energy
    assert isinstance(energy, GaussianFactor)
    with torch.no_grad():
        spread = evaluate(energy.net, rows.sample(PILOT_CHAINS, Streams(config.run.seed)["pilot"])).std()
    return min(1.0, max(0.05, spread.item() / QUIET))


def _configure(
    rows: EncodedRows,
    wishes: Wishes,
    seed: int,
    width: int,
    temperature: float,
    steps: tuple[float, float],
    length: int,
) -> Config:
    first, last = steps
    twice = 2 * length
    hot, cool = (max(1, round(share * twice)) for share in COOLING)
    table = load_config("table")
    batch = wishes.batch_size
    noise = NOISE * len(rows) ** (-1 / (rows.dim + 4)) if wishes.noise is None else wishes.noise
    return table.model_copy(
        update={
            "title": "a table",
            "data": DataSettings(rows=ROWS_FILE, noise=noise),
            "run": table.run.model_copy(
                update={"seed": seed, "updates": wishes.max_updates, "batch_size": batch}
            ),
            "model": table.model.model_copy(
                update={"width": width, "temperature": temperature, "frequencies": _frequencies(rows)}
            ),
            "sampler": table.sampler.model_copy(
                update={"num_steps": length, "step_size": [(0, first), (length, last)]}
            ),
            "sampler_from_noise": {
                **table.sampler_from_noise,
                "num_steps": twice,
                "num_chains": max(1, batch // 2),
                "step_size": [[hot, first * 5 / 3], [cool, first * 2 / 3], [twice, last]],
                "heat": [[hot, HEAT], [cool, 1.0]],
            },
            "optimizer": table.optimizer.model_copy(
                update={"learning_rate": wishes.learning_rate or table.optimizer.learning_rate}
            ),
        }
    )


def _frequencies(rows: EncodedRows) -> list[float]:
    """Sines and cosines where there are rows enough to learn fine structure from, for each coordinate."""
    each = len(rows) / rows.dim
    return [1.0, 2.0, 4.0] if each >= 400 else [1.0, 2.0] if each >= 100 else []
