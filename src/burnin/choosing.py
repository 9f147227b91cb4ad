"""What is chosen for a table by itself: the base, the network, and the chains that sample."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import torch

from burnin.assemble import build_trainer
from burnin.base_choice import BaseChoice, choose_base
from burnin.config import load_config
from burnin.core import ChainState, Energy, Report, Sampler
from burnin.data import EncodedRows
from burnin.evaluation import MixtureBase
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
LONGEST = 0.5
"""Of steps: in few dimensions an acceptance allows longer ones, which hardly move a chain further."""
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
        width: of the network's three layers.
        temperature: T.
        noise: on the data's whitened coordinates.
        step_size: of the chains that sample.
        num_steps: their length.
        acceptance: of a step.
        displacement: of chains from data over their length; 1 is that of independent draws.
        seconds: for an update, as the pilot measured it.
    """

    base: str
    width: int
    temperature: float
    noise: float
    step_size: float
    num_steps: int
    acceptance: float
    displacement: float
    seconds: float

    def describe(self) -> list[str]:
        """The choices in words."""
        return [
            self.base,
            f"network: 3 × {self.width} units, temperature {self.temperature:.3g}, "
            f"noise of {self.noise:.2g} standard deviations on the data",
            f"chains that sample: {self.num_steps} steps of {self.step_size:.3g} "
            f"(acceptance {self.acceptance:.2f}, displacement {self.displacement:.2f})",
        ]

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
    draws.
    """
    base, chosen, rows = _base(rows, wishes, seed, report)
    width = wishes.width or _width(len(rows))
    config = _configure(rows, wishes, seed, width, 0.1, LENGTHS[0])
    trainer = build_trainer(config, engine, rows, base)
    updates, before = min(PILOT_UPDATES, wishes.max_updates), time.perf_counter()
    trainer.train(updates)
    seconds = (time.perf_counter() - before) / updates
    probe = _Probe(trainer, Streams(seed)["pilot"])
    step_size = wishes.step_size or min(LONGEST, probe.step_size())
    lengths = (wishes.num_steps,) if wishes.num_steps is not None else LENGTHS
    length, acceptance, displacement = lengths[0], 0.0, 0.0
    for length in lengths:
        acceptance, displacement = probe.walk(step_size, length)
        if displacement >= FORGOTTEN:
            break
    config = _configure(rows, wishes, seed, width, step_size, length)
    settled = (width, config.model.temperature, config.data.noise, step_size, length)
    return config, Choice(chosen.describe(), *settled, acceptance, displacement, seconds), base, rows


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


class _Probe:
    """Chains from data under what the pilot has learned."""

    def __init__(self, trainer: Trainer, generator: torch.Generator) -> None:
        self._energy: Energy = trainer.model.eval()
        self._start = trainer.parts.data.sample(PILOT_CHAINS, generator)
        self._generator, self._engine = generator, trainer.engine
        self._temperature: float = trainer.model.temperature  # type: ignore[assignment]

    def step_size(self) -> float:
        """The step that is accepted with `ACCEPTANCE`."""
        sampler = MALA(0.1, self._temperature, TargetAcceptance(ACCEPTANCE, until=None, rate=PILOT_RATE))
        return float(self._run(sampler, PILOT_STEPS).state.step_size)

    def walk(self, step_size: float, num_steps: int) -> tuple[float, float]:
        """Acceptance, and the mean squared way of chains from data over that between independent draws."""
        result = self._run(MALA(step_size, self._temperature), num_steps)
        way = (result.state.position - self._start).square().mean(0)
        return result.acceptance, (way / (2 * self._start.var(0).clamp(min=1e-12))).mean().item()

    def _run(self, sampler: Sampler, num_steps: int) -> RunResult:
        state: ChainState = sampler.init(self._energy, self._start)
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


def _configure(
    rows: EncodedRows, wishes: Wishes, seed: int, width: int, step_size: float, length: int
) -> Config:
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
            "sampler": table.sampler.model_copy(update={"num_steps": length, "step_size": step_size}),
            "optimizer": table.optimizer.model_copy(update={"learning_rate": rate}),
        }
    )


def _frequencies(rows: EncodedRows) -> list[float]:
    """Those of the network's sines and cosines: fine structure needs rows to learn it from."""
    return [1.0, 2.0, 4.0] if len(rows) / rows.dim >= 400 else [1.0, 2.0]
