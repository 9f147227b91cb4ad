"""Rejection rates of Stein tests on perturbed RBMs (stein, section 7.1, Fig. 5), and what savings cost."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from burnin.core import Report
from burnin.discrepancies import RBF, Learned, Method, Points, fit_locations, fssd, ksd, linear_ksd
from burnin.discrepancies.critics import power_of
from burnin.discrepancies.finite_set import Null
from burnin.discrepancies.kernel_settings import divided
from burnin.discrepancies.kernelised import normal_quantile
from burnin.discrepancies.kernels import median_bandwidth
from burnin.report import figures
from burnin.rng import Streams
from burnin.studies.machine_trials import (
    SIZES,
    block_rows,
    draw_trials,
    group_name,
    grouped,
    learn_trials,
    machine_changes,
    place_of,
)
from burnin.studies.measured import MeasuredStudy
from burnin.studies.table import Rows
from burnin.studies.trial_settings import KernelPart, TrialsRecipe

TESTS: dict[str, str] = {
    "lsd": "LSD",
    "lsd_normal": "LSD, t taken for normal",
    "ksd": "KSD, all pairs",
    "lksd": "KSD, linear time",
    "fssd": "FSSD, 5 locations",
    "fssd_signs": "FSSD, null by signs",
}
"""What is told apart, in words; the second is the paper's rule for the same critics, the last two are one
statistic with the original's null and burnin's."""
LINEAR = ("lksd", "fssd")
BLOCKS: dict[int, int] = {50: 5, 100: 5, 200: 10}
"""Blocks of 20 trials of a setting, by dimension."""
NULL_BLOCKS = 10
"""Where the model is right: a rate of 5% of 200 trials is between 2% and 8.5% with a probability of 0.97."""
SETTLED_PLACES = (*((dim, 0.0) for dim in SIZES), (200, 0.01), (200, 0.02), (200, 0.04))
"""Settings that are also made with data from the machine's own law."""


def _groups() -> dict[str, list[str]]:
    """The paper's settings, and some of them with data that has settled."""
    changes = machine_changes()
    settled = {
        group_name(dim, perturbation, settled=True): [
            *changes[group_name(dim, perturbation)],
            "machine.block_steps=0",
        ]
        for dim, perturbation in SETTLED_PLACES
    }
    return changes | settled


def _blocks(group: str) -> int:
    place = place_of(group)
    if place.perturbation == 0:
        return NULL_BLOCKS
    return BLOCKS[place.dim] if not place.settled else 5


def measure(recipe: TrialsRecipe, report: Report) -> dict[str, Any]:
    """The p values of every test in every trial, on the same data, and what each took.

    With fresh points also `foretold`: the chance of rejection that they give each trial's critic by the
    paper's rule, Φ(√n μ/σ - Φ⁻¹(1 - α)) with n test points. Its mean over trials is the power, with less
    chance in it than a share of rejections has.
    """
    streams, seconds = Streams(recipe.run.seed), {}
    number, tested = recipe.trials.number, round(0.1 * recipe.trials.points)
    start = time.process_time()
    trials = draw_trials(recipe, streams, report)
    seconds["data"] = time.process_time() - start
    p_values: dict[str, list[float]] = {}
    metrics: dict[str, Any] = {"trials": number, "level": recipe.level, "p_values": p_values}
    for method in recipe.methods:
        start = time.process_time()
        if method == "lsd":
            p_values |= {"lsd": [], "lsd_normal": []}
            metrics |= {"updates": [], "foretold": []}
            for learned in learn_trials(recipe, trials.points, streams["critics"], "power", report):
                test = Learned(learned.terms[:, :tested], learned.validation_terms, learned.updates)
                p_values["lsd"] += test.p_value.tolist()
                p_values["lsd_normal"] += test.normal_p_value.tolist()
                metrics["updates"] += test.updates.tolist()
                if recipe.trials.fresh:
                    metrics["foretold"] += foretold(learned.terms[:, tested:], tested, recipe.level).tolist()
        else:
            for index in range(number):
                report(f"{method} tests", index, number)
                rows = recipe.trials.points
                points = Points(trials.points.x[index, :rows], trials.points.scores[index, :rows])
                for test_name, p_value in kernel_p_values(method, points, recipe.kernel, streams).items():
                    p_values.setdefault(test_name, []).append(p_value)
        seconds[method] = time.process_time() - start
    return metrics | {"cpu_seconds_of": seconds}


def foretold(terms: Tensor, tested: int, level: float) -> Tensor:
    """The chance that a test with so many points rejects, of critics whose Stein terms these are.

    Example:
        >>> foretold(torch.tensor([[-1.0, 1.0]]), tested=100, level=0.05).round(decimals=3)
        tensor([0.0500])
    """
    chance: Tensor = torch.special.ndtr(math.sqrt(tested) * power_of(terms) - normal_quantile(1 - level))
    return chance


def kernel_p_values(
    method: Method, points: Points, settings: KernelPart, streams: Streams
) -> dict[str, float]:
    """A kernel test as the paper has it: a fifth of the points for the median bandwidth and the locations
    (and bandwidth) of FSSD, the others tested. FSSD's statistic is held against both its nulls."""
    generator = streams[method]
    train, rest = divided(points, settings.train_share, standardise=False)
    kernel = RBF(median_bandwidth(train.x, generator))
    if method == "ksd":
        return {method: ksd(rest, kernel, num_bootstrap=settings.num_draws, generator=generator).p_value}
    if method == "lksd":
        return {method: linear_ksd(rest, kernel).normal_p_value}
    locations, fitted = fit_locations(
        train, kernel, num_locations=settings.num_locations, generator=generator
    )

    def against(null: Null, drawn_by: torch.Generator) -> float:
        drawn = settings.num_draws
        return fssd(rest, locations, fitted, num_simulations=drawn, null=null, generator=drawn_by).p_value

    return {method: against("spectrum", generator), f"{method}_signs": against("signs", streams["signs"])}


def pool(rows: Rows) -> dict[str, dict[str, Any]]:
    """The share of rejections of every test in each setting, over all its blocks, with its standard error.

    `lsd_minus_ksd`, `lsd_over_lksd` and `lsd_over_fssd` hold LSD against the quadratic-time test and the
    linear ones, whose rate is taken for that of one rejection at least.
    """
    pooled = {}
    for group, members in grouped(rows).items():
        blocks = list(members.values())
        numbers: dict[str, Any] = {"trials": sum(block["trials"] for block in blocks)}
        for test in TESTS:
            found = [p <= block["level"] for block in blocks for p in block["p_values"].get(test, [])]
            if found:
                rate = sum(found) / len(found)
                numbers[test] = rate
                numbers[f"{test}_error"] = math.sqrt(rate * (1 - rate) / len(found))
        if {"lsd", "ksd"} <= numbers.keys():
            numbers["lsd_minus_ksd"] = numbers["lsd"] - numbers["ksd"]
        for test in LINEAR:
            if {"lsd", test} <= numbers.keys():
                numbers[f"lsd_over_{test}"] = numbers["lsd"] / max(numbers[test], 1 / numbers["trials"])
        numbers["seconds_of_a_trial"] = _seconds(blocks)
        pooled[group] = numbers
    return pooled


def _seconds(blocks: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Processor seconds of one trial, by what they were spent on."""
    trials = sum(block["trials"] for block in blocks)
    kinds = blocks[0]["cpu_seconds_of"]
    return {kind: sum(block["cpu_seconds_of"][kind] for block in blocks) / trials for kind in kinds}


def summary(rows: Rows) -> str:
    """Rejection rates by test and perturbation, a table for each dimension; then seconds of a trial."""
    lines = []
    for title, at in _tables(pool(rows)).items():
        lines += [f"| {title} | " + " | ".join(f"{place:g}" for place in at) + " |"]
        lines += ["|---" * (len(at) + 1) + "|"]
        lines += [
            f"| {words} | " + " | ".join(_cell(numbers, test) for numbers in at.values()) + " |"
            for test, words in TESTS.items()
            if any(test in numbers for numbers in at.values())
        ]
        lines += ["| trials | " + " | ".join(str(numbers["trials"]) for numbers in at.values()) + " |"]
        spent = next(iter(at.values()))["seconds_of_a_trial"]
        told = ", ".join(f"{kind} {value:.2g}" for kind, value in spent.items())
        lines += ["", f"Processor seconds of a trial: {told}.", ""]
    return "\n".join(lines)


def _tables(pooled: Rows) -> dict[str, dict[float, Mapping[str, Any]]]:
    """The settings by perturbation, for each dimension and kind of data."""
    tables: dict[str, dict[float, Mapping[str, Any]]] = {}
    for place in sorted((place_of(group) for group in pooled), key=lambda place: (place.settled, *place)):
        title = f"{place.dim} dimensions" + (", settled data" if place.settled else "")
        numbers = pooled[group_name(place.dim, place.perturbation, settled=place.settled)]
        tables.setdefault(title, {})[place.perturbation] = numbers
    return tables


def _cell(numbers: Mapping[str, Any], test: str) -> str:
    return f"{numbers[test]:.3f} ± {numbers[f'{test}_error']:.3f}" if test in numbers else ""


def draw(out: Path, recipe: TrialsRecipe, rows: Sequence[str]) -> None:
    """Rejection rate by perturbation, a panel for each dimension (Fig. 5)."""
    made = {name: json.loads((out / f"{name}.json").read_text(encoding="utf-8")) for name in rows}
    tables = _tables(pool({name: row["metrics"] for name, row in made.items()}))
    figure = Figure(figsize=(1 + 3.6 * len(tables), 3.6), layout="constrained")
    panels = figure.subplots(1, len(tables), sharey=True, squeeze=False)[0]
    for axes, (title, at) in zip(panels, tables.items(), strict=True):
        for index, (test, words) in enumerate(TESTS.items()):
            shown = {place: numbers for place, numbers in at.items() if test in numbers}
            if shown:
                rates = [numbers[test] for numbers in shown.values()]
                errors = [numbers[f"{test}_error"] for numbers in shown.values()]
                style = ":" if test == "lsd_normal" else "-"
                axes.errorbar(list(shown), rates, errors, fmt=f"o{style}", color=f"C{index}", label=words)
        axes.axhline(recipe.level, color="0.5", linewidth=0.8)
        axes.set(title=title, xlabel="perturbation", ylim=(-0.03, 1.03))
    panels[0].set_ylabel("share of rejections")
    panels[0].legend(frameon=False, fontsize=7)
    figures.save(figure, out / "figure.png")


RBM_POWER = MeasuredStudy(
    name="rbm-power",
    about="goodness-of-fit tests on perturbed RBMs in 50, 100 and 200 dimensions: LSD, KSD, linear KSD, FSSD",
    recipe="measured/rbm-power",
    quick_recipe="measured/rbm-power-quick",
    settings=TrialsRecipe,
    rows=block_rows(_groups(), _blocks),
    quick_rows=("d50-p0-b0", "d50-p0.06-b0"),
    metrics=(*TESTS, "lsd_minus_ksd", *(f"lsd_over_{test}" for test in LINEAR)),
    measure=measure,
    pool=pool,
    pooled=tuple(_groups()),
    draw=draw,
    tabulate=summary,
)
