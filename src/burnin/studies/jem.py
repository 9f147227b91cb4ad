"""JEM in seven scenarios, with β and the guard and without (robust, 4.3 and appendix M.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from burnin.assemble import build_engine, guard_settings, load_model
from burnin.core import DivergedError, Outcome, Report
from burnin.data import Pictures, clean, held_out
from burnin.energies import joint_of
from burnin.evaluation.attack import robust_accuracy
from burnin.evaluation.calibration import class_probabilities, judge_classes
from burnin.evaluation.energy_bands import energies_of
from burnin.evaluation.model import Model
from burnin.evaluation.outliers import separation
from burnin.runs import opened_run, train_further
from burnin.settings import Config
from burnin.studies.images import outliers
from burnin.studies.jem_curves import CURVE_FILE, Looker, divergence
from burnin.studies.jem_figures import draw
from burnin.studies.jem_tables import POOLED, by_way, pool, summary
from burnin.studies.rows import TrainedRows, seconds_spent
from burnin.studies.table import Rows, json_safe
from burnin.studies.workers import Maker
from burnin.training import read_metrics

SCENARIOS: Mapping[str, tuple[float, list[str]]] = {
    "default": (5e-5, []),
    "few-steps": (5e-5, ["sampler.num_steps=5"]),
    "few-negatives": (5e-5, ["sampler.num_chains=8"]),
    "scale-double": (2.5e-5, ["model.temperature=2.5e-5", "sampler.step_size=2.0"]),
    "scale-half": (1e-4, ["model.temperature=1e-4", "sampler.step_size=0.5"]),
    "step-4x": (2e-4, ["model.temperature=2e-4", "optimizer.learning_rate=2.5e-4"]),
    "step-quarter": (5e-5, ["sampler.step_size=0.25"]),
}
"""The seven of appendix M.1, in its order: T = 1/o, and what is changed. The original's step α and scale o
are a step of αo/2 with T = 1/o here; with four times the step, the scale and the rate are a quarter."""
STARS = (0.5, 2.0, 10.0)
"""β·o, the paper's β*: weights are exp(β* E), whatever T is."""
SEEDS = (0, 1, 2)
UNGUARDED = ["guard.enabled=false"]
PLAIN = ["joint.weight=0.0", "sampler.num_steps=0", *UNGUARDED]
"""The same network as a classifier only."""
RADII = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4)
"""Of the attack, where black and white are -1 and 1."""
ATTACKED = 300
METRICS = (
    "accuracy",
    "ece",
    "cross_entropy",
    "auroc_energy",
    "auroc_max_probability",
    "inception_score",
    "frechet",
    "diverged_at",
    "gap_last",
    "rollbacks",
    "ended",
    "seconds_training",
    *POOLED,
)


@dataclass(frozen=True, kw_only=True)
class JemStudy(TrainedRows):
    """Rows that are looked at while they train, as a classifier and by their bank."""

    def judged(self, rows: Rows) -> Rows:
        """Pooled over seeds."""
        return pool(rows)

    def maker(self) -> Maker[Config]:
        """Trains, looks, and judges the classifier."""
        return make


def make(out: Path, name: str, config: Config, report: Report, threads: int) -> dict[str, Any]:
    """Makes a row: trains it to its end or to its divergence, with a look at every checkpoint."""
    torch.set_num_threads(max(1, config.run.threads))
    folder, ended = out / name, "finished"
    engine = build_engine(config, threads=threads)
    resume = (folder / "config.toml").exists()
    with opened_run(folder, config, resume=resume, engine=engine) as (trainer, run, config):
        looker = Looker(trainer, config, folder / CURVE_FILE)

        def on_update(step: int, _: Mapping[str, float]) -> None:
            if step % config.run.checkpoint_every == 0:
                looker.look(step)
            if step % 10 == 0:
                report("training", step, config.run.updates)

        try:
            if train_further(trainer, run, config, on_update=on_update) is not Outcome.OK:
                raise KeyboardInterrupt
        except DivergedError as error:
            ended = str(error)
    report("judging", 0, 0)
    logged = list(read_metrics(folder / "metrics.jsonl"))
    looks = looker.looks
    best = max(looks, key=lambda look: look.validation)
    metrics = {
        "accuracy": best.accuracy,
        "accuracy_last": looks[-1].accuracy,
        "inception_score": max(look.inception_score for look in looks),
        "frechet": min(look.frechet for look in looks),
        "features": looker.features.name,
        **divergence(logged, ended, guard_settings(config)),
        **judged(load_model(folder), config),
        "ended": ended,
        "seconds_training": seconds_spent(logged),
    }
    return {"seed": config.run.seed, "metrics": json_safe(metrics)}


def judged(model: Model, config: Config) -> dict[str, Any]:
    """The last good model as a classifier: calibration, outliers, attacks."""
    held = clean(held_out(model.data))
    assert isinstance(held, Pictures)
    assert held.labels is not None
    assert config.data.name is not None
    test = held.rows(held.pixels)[1::2]
    labels = held.labels[1::2]
    found = judge_classes(class_probabilities(model.energy, test), labels)
    stream = torch.Generator().manual_seed(0)
    outside = held.rows(outliers(config.data.name, held, stream))
    scores = [
        (
            energies_of(model, x).double().numpy(),
            1 - class_probabilities(model.energy, x).max(1).values.numpy(),
        )
        for x in (test, outside)
    ]
    by_energy, by_chance = (
        separation(np.asarray(inside, float), np.asarray(other, float))
        for inside, other in zip(*scores, strict=True)
    )
    logits, few = joint_of(model.energy).logits, slice(0, ATTACKED)
    bounds = (held.low, held.high)
    return {
        "accuracy_end": found.accuracy.value,
        "accuracy_error": found.accuracy.error,
        "cross_entropy": found.cross_entropy.value,
        "ece": found.ece.value,
        "ece_error": found.ece.error,
        "ece_by_chance": found.ece_by_chance,
        "reliability": [
            found.reliability.confidence.tolist(),
            found.reliability.accuracy.tolist(),
            found.reliability.count.tolist(),
        ],
        "auroc_energy": by_energy.auroc.value,
        "auroc_energy_error": by_energy.auroc.error,
        "auroc_max_probability": by_chance.auroc.value,
        "auroc_max_probability_error": by_chance.auroc.error,
        "radii": list(RADII),
        "robust_accuracy": robust_accuracy(logits, test[few], labels[few], RADII, stream, bounds=bounds),
    }


def _rows(scenarios: Sequence[str], stars: Sequence[float], guarded: Sequence[str]) -> dict[str, list[str]]:
    """A row for each scenario, β and seed, and the guard's for some; the plain classifier's."""
    made = {f"plain-s{seed}": [*PLAIN, f"run.seed={seed}"] for seed in SEEDS}
    for name in scenarios:
        temperature, changes = SCENARIOS[name]
        for star in (0.0, *stars):
            for guard in (False, True) if name in guarded and star in (0.0, stars[0]) else (False,):
                words = f"{name}-{star:g}" + "-guard" * guard
                beta = [f"scheme.beta={star * temperature:g}"]
                for seed in SEEDS:
                    seeded = [*changes, *beta, *UNGUARDED * (not guard), f"run.seed={seed}"]
                    made[f"{words}-s{seed}"] = seeded
    return made


def _few_labels(number: int, star: float) -> dict[str, list[str]]:
    """Rows that know so many labels: as a classifier only, and as a joint energy of all pictures."""
    temperature, _ = SCENARIOS["default"]
    known = [f"joint.labels={number}"]
    joint = [f"scheme.beta={star * temperature:g}", *UNGUARDED]
    return {
        f"{way}-s{seed}": [*known, *changes, f"run.seed={seed}"]
        for way, changes in ((f"plain-{number}-labels", PLAIN), (f"{number}-labels-{star:g}", joint))
        for seed in SEEDS
    }


def _long(updates: int, stars: Sequence[float]) -> dict[str, list[str]]:
    """Rows that train for longer, until the plain classifier grows too sure: as one only, and joint."""
    temperature, _ = SCENARIOS["default"]
    ways = {f"long-{star:g}": [f"scheme.beta={star * temperature:g}", *UNGUARDED] for star in stars}
    return {
        f"{way}-s{seed}": [f"run.updates={updates}", *changes, f"run.seed={seed}"]
        for way, changes in {"plain-long": PLAIN, **ways}.items()
        for seed in SEEDS
    }


def _ways(rows: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return tuple(by_way({name: {} for name in rows}))


FASHION_ROWS = _rows(("default", "few-steps"), STARS, ("few-steps",)) | _long(30_000, STARS[1:])
ROWS = _rows(tuple(SCENARIOS), STARS, tuple(SCENARIOS)) | _few_labels(50, STARS[1])

JEM_FASHION = JemStudy(
    name="jem-fashion",
    about="JEM on 14×14 Fashion-MNIST: the default scenario and that of few steps, and a plain classifier",
    recipe="jem-fashion",
    quick_recipe=None,
    rows=FASHION_ROWS,
    quick_rows=(),
    metrics=METRICS,
    pooled=_ways(FASHION_ROWS),
    draw=draw,
    tabulate=summary,
)
JEM = JemStudy(
    name="jem",
    about="JEM in the robust paper's seven scenarios, with β and the guard and without, on 8×8 digits",
    recipe="jem",
    quick_recipe="jem-quick",
    rows=ROWS,
    quick_rows=("plain-s0", "default-0-s0"),
    metrics=METRICS,
    pooled=_ways(ROWS),
    draw=draw,
    tabulate=summary,
)
