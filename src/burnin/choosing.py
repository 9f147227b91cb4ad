"""What is chosen for a table by itself: the base, the network, and the chains that sample."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from burnin.assemble import build_trainer, model_of
from burnin.base_choice import BaseChoice, choose_base
from burnin.config import load_config
from burnin.core import Density, Report, Sampler
from burnin.data import EncodedRows
from burnin.evaluation import MixtureBase
from burnin.evaluation.model import Model
from burnin.rng import Streams
from burnin.samplers import MALA, Engine, RunResult, TargetAcceptance, run
from burnin.settings import Config, DataSettings
from burnin.training import Trainer

ROWS_FILE, BASE_FILE = "rows.npz", "base.npz"
PILOT_UPDATES = 10
PILOT_CHAINS = 256
PILOT_STEPS = 100
PILOT_RATE = 0.5
ACCEPTANCE = 0.574
FIRST, LONGEST = 0.1, 0.5
"""Of steps times T: in few dimensions an acceptance allows longer ones, which hardly move a chain further."""
LENGTHS = (20, 30, 50, 75, 100)
FORGOTTEN = 0.5
"""Displacement of chains from data that is enough: 1 is that of independent draws."""
NOISE = 0.2
"""Noise on the data, as a share of Scott's bandwidth n^(-1/(d + 4)): smooths what few rows cannot tell."""


@dataclass(frozen=True)
class Wishes:
    """What is told rather than chosen; None leaves a choice to the data."""

    components: int | None = None
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
        base: the mixture that the network corrects, in words.
        network: its size, in words.
        temperature: T; `trained_at`, that of the training, which `settle` leaves for a better one.
        noise: standard deviation of that on the data's coordinates.
        step_size: of the chains that sample.
        num_steps: their length.
        acceptance: of a step.
        displacement: of chains from data over their length; 1 is that of independent draws.
        seconds: for an update, as the pilot measured it.
        told: what of `temperature`, `step_size` and `num_steps` was told rather than chosen.
    """

    base: str
    network: str
    temperature: float
    noise: float
    step_size: float
    num_steps: int
    acceptance: float
    displacement: float
    seconds: float
    trained_at: float
    told: tuple[str, ...] = ()

    def describe(self) -> list[str]:
        """The choices in words."""
        return [
            self.base,
            f"network: {self.network}, noise of {self.noise:.2g} on the data",
            self.describe_settled(),
        ]

    def describe_settled(self) -> str:
        """In words what is settled once more after the training."""
        return (
            f"temperature {self.temperature:.3g}; chains that sample: {self.num_steps} steps of "
            f"{self.step_size:.3g} (acceptance {self.acceptance:.2f}, displacement {self.displacement:.2f})"
        )

    def as_dict(self) -> dict[str, Any]:
        """Everything by name."""
        return asdict(self)


def choose(
    rows: EncodedRows,
    wishes: Wishes,
    seed: int,
    engine: Engine | None = None,
    report: Report | None = None,
) -> tuple[Config, Choice, MixtureBase, EncodedRows]:
    """A configuration for these rows: the recipe `table` with what the rows and a short pilot run say.

    The base is chosen by cross-validation (`choose_base`), the width follows the number of rows. Where the
    base is diagonal along the columns, the rows that are returned have coordinates along them. A pilot
    trains for a few updates; Metropolis-adjusted chains from data then find the step that is accepted with
    `ACCEPTANCE` (`LONGEST` at most), and the shortest length that moves them half as far as independent
    draws. `settle` does this again for the trained network, and chooses T.
    """
    base, chosen, rows = _base(rows, wishes, seed, report)
    width = wishes.width or _width(len(rows))
    config = _configure(rows, wishes, seed, width)
    trainer = build_trainer(config, engine, rows, base)
    seconds = pilot(trainer, config)
    settled = ("temperature", "step_size", "num_steps")
    told = tuple(name for name in settled if getattr(wishes, name) is not None)
    first = Choice(
        chosen.describe(),
        f"3 × {width} units",
        config.model.temperature,
        config.data.noise,
        wishes.step_size or FIRST,
        wishes.num_steps or LENGTHS[0],
        acceptance=0.0,
        displacement=0.0,
        seconds=seconds,
        trained_at=config.model.temperature,
        told=told,
    )
    probe = Probe(model_of(trainer, config, base), trainer.parts.data, Streams(seed)["pilot"])
    return *probe.settle(config, first), base, rows


def pilot(trainer: Trainer, config: Config) -> float:
    """Trains for a few updates; seconds for each."""
    updates, before = min(PILOT_UPDATES, config.run.updates), time.perf_counter()
    trainer.train(updates)
    return (time.perf_counter() - before) / updates


def in_training(config: Config, choice: Choice) -> Config:
    """The configuration of the training, whose T is not that of the finished density."""
    return _at(config, choice.trained_at)


def settle(
    trainer: Trainer, config: Config, choice: Choice, data: Density, base: MixtureBase, temperature: float
) -> tuple[Config, Choice, Model]:
    """T and the chains for a network that has been trained, and the model that it makes with them.

    The pilot chose the chains for one that had hardly begun; a trained one is rougher and wants shorter
    steps.

    Arguments:
        trainer: has the network.
        config: of the training.
        choice: of the pilot.
        data: from which chains start.
        base: what the network corrects.
        temperature: the best for it, taken unless another was told.
    """
    config = _at(config, choice.trained_at if "temperature" in choice.told else temperature)
    choice = replace(choice, temperature=config.model.temperature)
    settled = build_trainer(config, trainer.engine, data, base)
    settled.restore(trainer.snapshot())
    model, stream = model_of(settled, config, base), Streams(config.run.seed)["settled"]
    # The trainer's data has its noise.
    config, choice = Probe(model, settled.parts.data, stream).settle(config, choice)
    return config, choice, model_of(settled, config, base)


def _at(config: Config, temperature: float) -> Config:
    model = config.model.model_copy(update={"temperature": temperature})
    return config.model_copy(update={"model": model})


def _base(
    rows: EncodedRows, wishes: Wishes, seed: int, report: Report | None
) -> tuple[MixtureBase, BaseChoice, EncodedRows]:
    """The base, and the rows in the coordinates that suit it."""
    plain = rows.along_columns()
    base, chosen = choose_base(plain.each(Streams(seed)["base"]), seed, report, components=wishes.components)
    if chosen.shape == "columns":
        return base, chosen, plain
    # From coordinates along the columns to whitened ones; both have the same mean.
    matrix = torch.linalg.inv(plain.encoding.affine[1]) @ rows.encoding.affine[1]
    return base.moved(matrix, torch.zeros_like(base.means[0])), chosen, rows


class Probe:
    """Chains from data under what has been learned."""

    def __init__(self, model: Model, data: Density, generator: torch.Generator) -> None:
        self._model, self._generator = model, generator
        self._start = data.sample(PILOT_CHAINS, generator)
        self._temperature = model.temperature

    def settle(self, config: Config, choice: Choice) -> tuple[Config, Choice]:
        """Both with the step that is accepted as aimed at, and the shortest length that moves far enough."""
        step_size = choice.step_size
        if "step_size" not in choice.told:
            step_size = min(LONGEST / self._temperature, self.step_size())
        lengths = (choice.num_steps,) if "num_steps" in choice.told else LENGTHS
        length, acceptance, displacement = lengths[0], 0.0, 0.0
        for length in lengths:
            acceptance, displacement = self.walk(step_size, length)
            if displacement >= FORGOTTEN:
                break
        sampler = config.sampler.model_copy(update={"num_steps": length, "step_size": step_size})
        found = replace(
            choice, step_size=step_size, num_steps=length, acceptance=acceptance, displacement=displacement
        )
        return config.model_copy(update={"sampler": sampler}), found

    def step_size(self) -> float:
        """The step that is accepted with `ACCEPTANCE`."""
        first = FIRST / self._temperature
        sampler = MALA(first, self._temperature, TargetAcceptance(ACCEPTANCE, until=None, rate=PILOT_RATE))
        return float(self._run(sampler, PILOT_STEPS).state.step_size)

    def walk(self, step_size: float, num_steps: int) -> tuple[float, float]:
        """Acceptance, and the mean squared way of chains from data over that between independent draws."""
        result = self._run(MALA(step_size, self._temperature), num_steps)
        way = (result.state.position - self._start).square().mean(0)
        return result.acceptance, (way / (2 * self._start.var(0).clamp(min=1e-12))).mean().item()

    def _run(self, sampler: Sampler, num_steps: int) -> RunResult:
        state = sampler.init(self._model.energy, self._start, scale=self._model.scale)
        return run(
            sampler,
            self._model.energy,
            state,
            num_steps=num_steps,
            generator=self._generator,
            engine=self._model.engine,
        )


def _width(n: int) -> int:
    return 32 if n < 500 else 64 if n < 5000 else 128


def _configure(rows: EncodedRows, wishes: Wishes, seed: int, width: int) -> Config:
    table = load_config("table")
    noise = NOISE * len(rows) ** (-1 / (rows.dim + 4)) if wishes.noise is None else wishes.noise
    run = {"seed": seed, "updates": wishes.max_updates, "batch_size": wishes.batch_size}
    model = {
        "width": width,
        "temperature": wishes.temperature or table.model.temperature,
        "frequencies": _frequencies(rows),
        "gaussian_factor": "none",
        "base": BASE_FILE,
    }
    rate = wishes.learning_rate or table.optimizer.learning_rate
    return table.model_copy(
        update={
            "title": "a table",
            "data": DataSettings(rows=ROWS_FILE, noise=noise),
            "run": table.run.model_copy(update=run),
            "model": table.model.model_copy(update=model),
            "optimizer": table.optimizer.model_copy(update={"learning_rate": rate}),
        }
    )


def _frequencies(rows: EncodedRows) -> list[float]:
    """Those of the network's sines and cosines: fine structure needs rows to learn it from."""
    return [1.0, 2.0, 4.0] if len(rows) / rows.dim >= 400 else [1.0, 2.0]
