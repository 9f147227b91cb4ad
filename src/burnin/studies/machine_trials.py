"""Trials on random Gaussian-Bernoulli RBMs: data of a perturbed machine, the model unperturbed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from burnin.core import Report
from burnin.discrepancies import Learned, Points, learn
from burnin.discrepancies.critics import Objective
from burnin.discrepancies.learned import SPLIT
from burnin.energies import GaussianBernoulliRBM
from burnin.rng import Streams
from burnin.studies.table import Rows
from burnin.studies.trial_settings import TrialsRecipe

SIZES: dict[int, int] = {50: 40, 100: 80, 200: 100}
"""The paper's machines: hidden units by dimension (stein, section 7.1)."""
PERTURBATIONS = (0.0, 0.01, 0.02, 0.04, 0.06)
BLOCK = re.compile(r"(?P<group>.+)-b(?P<block>\d+)")
"""The name of a row: a group, whose trials are put together, and a block of them."""
PLACE = re.compile(r"(?P<kind>settled-)?d(?P<dim>\d+)-p(?P<perturbation>[\d.]+)")
SETTLED = "settled-"
"""Before the name of a setting whose data are drawn by annealed sweeps where the study's are the paper's."""


class Trials(NamedTuple):
    """Data of every trial, and what the two machines say of it.

    Attributes:
        points: the data, (trials, n, dim), and the model's scores.
        truth: the scores of the machine that the data came from.
    """

    points: Points
    truth: Tensor


class Place(NamedTuple):
    """What the trials of a group have in common."""

    dim: int
    perturbation: float
    settled: bool = False


def group_name(dim: int, perturbation: float, *, settled: bool = False) -> str:
    """The name of a setting.

    Example:
        >>> group_name(50, 0.02), place_of("settled-d50-p0.02")
        ('d50-p0.02', Place(dim=50, perturbation=0.02, settled=True))
    """
    return f"{SETTLED if settled else ''}d{dim}-p{perturbation:g}"


def place_of(group: str) -> Place:
    """Dimension and perturbation of a setting's name, and whether its data are settled ones."""
    match = PLACE.fullmatch(group)
    assert match is not None, group
    return Place(int(match["dim"]), float(match["perturbation"]), match["kind"] is not None)


def block_rows(changes: Mapping[str, Sequence[str]], blocks: Callable[[str], int]) -> dict[str, list[str]]:
    """Rows of blocks of trials: each group's changes with a seed for each of its blocks.

    Example:
        >>> block_rows({"a": ["x=1"]}, lambda group: 2)
        {'a-b0': ['x=1', 'run.seed=0'], 'a-b1': ['x=1', 'run.seed=1']}
    """
    return {
        f"{group}-b{block}": [*wanted, f"run.seed={block}"]
        for group, wanted in changes.items()
        for block in range(blocks(group))
    }


def machine_changes() -> dict[str, list[str]]:
    """Every machine of the paper with every perturbation, as changes of a recipe, by group."""
    return {
        group_name(dim, perturbation): [
            f"machine.dim={dim}",
            f"machine.hidden={hidden}",
            f"machine.perturbation={perturbation}",
        ]
        for dim, hidden in SIZES.items()
        for perturbation in PERTURBATIONS
    }


def grouped(rows: Rows) -> dict[str, dict[int, Mapping[str, Any]]]:
    """The blocks of every group, by their numbers.

    Example:
        >>> grouped({"a-b0": {"x": 1}, "a-b2": {"x": 2}})
        {'a': {0: {'x': 1}, 2: {'x': 2}}}
    """
    groups: dict[str, dict[int, Mapping[str, Any]]] = {}
    for name, metrics in rows.items():
        match = BLOCK.fullmatch(name)
        assert match is not None, name
        groups.setdefault(match["group"], {})[int(match["block"])] = metrics
    return groups


def mean_with_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error; NaN where there are too few values for one.

    Example:
        >>> mean_with_error([1.0, 3.0])
        (2.0, 1.0)
    """
    count = len(values)
    mean = sum(values) / count if count else math.nan
    if count < 2:
        return mean, math.nan
    return mean, math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1) / count)


def draw_trials(recipe: TrialsRecipe, streams: Streams, report: Report) -> Trials:
    """Each trial's machine, its perturbation and its points: independent draws of the perturbed one.

    One machine after the other: many at a time leave the processor's cache.
    """
    machine, trials = recipe.machine, recipe.trials
    parts = []
    for index in range(trials.number):
        report("data", index, trials.number)
        model = GaussianBernoulliRBM.random(
            machine.dim, machine.hidden, streams["machines"], sweeps=machine.sweeps
        )
        source = model.perturbed(machine.perturbation, streams["perturbations"])
        x = _draws(source, trials.points + trials.fresh, machine.block_steps, streams["chains"])
        parts.append((x, model.score(x), source.score(x)))
    x, scores, truth = (torch.stack(tensors) for tensors in zip(*parts, strict=True))
    return Trials(Points(x, scores), truth)


def _draws(source: GaussianBernoulliRBM, n: int, block_steps: int, generator: torch.Generator) -> Tensor:
    """Points of a machine: by its own sampler, or as the paper draws them."""
    if not block_steps:
        return source.sample(n, generator)
    return source.gibbs(torch.randn(n, source.dim, generator=generator), block_steps, generator)


def split_of(recipe: TrialsRecipe) -> tuple[float, float, float]:
    """The paper's split of a trial's points, the fresh ones counted with the test's.

    Example:
        >>> split_of(TrialsRecipe(title="", trials={"points": 1000, "fresh": 1000}))
        (0.4, 0.05, 0.55)
    """
    points, fresh = recipe.trials.points, recipe.trials.fresh
    first, second, third = (share * points / (points + fresh) for share in SPLIT)
    return first, second, third + fresh / (points + fresh)


def learn_trials(
    recipe: TrialsRecipe, points: Points, generator: torch.Generator, objective: Objective, report: Report
) -> Iterator[Learned]:
    """Critics of all trials, so many together as the recipe says."""
    number, together = recipe.trials.number, recipe.trials.together
    for first in range(0, number, together):
        report("critics", first, number)
        some = slice(first, first + together)
        yield learn(
            Points(points.x[some], points.scores[some]),
            recipe.critic.settings(),
            generator,
            objective=objective,
            split=split_of(recipe),
            standardise=recipe.critic.standardise,
        )
