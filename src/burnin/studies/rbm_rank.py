"""How far perturbed RBMs are from their data (stein, section 7.2, Fig. 6): LSD, both KSDs and the bound."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from burnin.core import Report
from burnin.discrepancies import (
    RBF,
    KernelSettings,
    Points,
    ksd,
    linear_ksd,
    optimal_terms,
    optimise_bandwidth,
    standardised,
)
from burnin.discrepancies.kernel_settings import divided
from burnin.discrepancies.kernels import median_bandwidth
from burnin.discrepancies.learned import split_sizes
from burnin.report import figures
from burnin.rng import Streams
from burnin.studies.machine_trials import (
    Trials,
    block_rows,
    draw_trials,
    grouped,
    learn_trials,
    machine_changes,
    mean_with_error,
    place_of,
    split_of,
)
from burnin.studies.measured import MeasuredStudy
from burnin.studies.table import Rows
from burnin.studies.trial_settings import TrialsRecipe

METHODS: dict[str, str] = {"lsd": "LSD", "ksd": "KSD, all pairs", "lksd": "KSD, linear time"}
KERNELS = ("ksd", "lksd")


def measure(recipe: TrialsRecipe, report: Report) -> dict[str, Any]:
    """Discrepancies of every trial with their standard errors, and equation 9's on the same points.

    LSD maximises equation 11 less the penalty and is chosen by μ - σ (appendix A); the bandwidths of the
    kernels maximise the discrepancy on a fifth of the points (B.2). The bound is in the critic's units.
    """
    streams = Streams(recipe.run.seed)
    trials = draw_trials(recipe, streams, report)
    found: dict[str, list[float]] = {"bound": bounds(recipe, trials)}
    for learned in learn_trials(recipe, trials.points, streams["critics"], "discrepancy", report):
        found.setdefault("lsd", []).extend(learned.discrepancy.tolist())
        found.setdefault("lsd_error", []).extend(learned.standard_error.tolist())
        found.setdefault("updates", []).extend(learned.updates.tolist())
    number = recipe.trials.number
    for index in range(number):
        report("kernels", index, number)
        one = Points(trials.points.x[index], trials.points.scores[index])
        estimates = kernel_discrepancies(
            one, recipe.kernel.settings(), streams["kernels"], standardise=recipe.critic.standardise
        )
        for method, (value, error) in estimates.items():
            found.setdefault(method, []).append(value)
            found.setdefault(f"{method}_error", []).append(error)
    return {"trials": number, **found}


def bounds(recipe: TrialsRecipe, trials: Trials) -> list[float]:
    """The mean of ‖s_model - s_truth‖² / 2λ over each trial's test points: the discrepancy of the critic that
    is best under the penalty (equation 9)."""
    x, difference = trials.points.x, trials.points.scores - trials.truth
    first, _, tested = split_sizes(x.shape[1], split_of(recipe))
    apart = Points(x, difference)
    if recipe.critic.standardise:
        apart = standardised(apart, by=x[:, :first])
    terms = optimal_terms(apart.scores, torch.zeros_like(x), recipe.critic.lam)
    values: list[float] = terms[:, -tested:].mean(1).tolist()
    return values


def kernel_discrepancies(
    points: Points, settings: KernelSettings, generator: torch.Generator, *, standardise: bool
) -> dict[str, tuple[float, float]]:
    """Both KSDs of one trial, each with its standard error."""
    train, rest = divided(points, settings.train_share, standardise=standardise)
    kernel = optimise_bandwidth(train, RBF(median_bandwidth(train.x, generator)), "discrepancy")
    quadratic, linear = ksd(rest, kernel), linear_ksd(rest, kernel)
    return {
        "ksd": (quadratic.u, quadratic.sigma / math.sqrt(len(rest.x))),
        "lksd": (linear.mean, linear.values.std().item() / math.sqrt(len(linear.values))),
    }


def pool(rows: Rows) -> dict[str, dict[str, Any]]:
    """Means over the trials of each setting.

    - `lsd`, `ksd`, `lksd`, `bound`: with `_error`, the standard error over trials.
    - `lsd_from_zero`: the size of LSD in its standard errors.
    - `share`: LSD over the bound; `above_bound`: by how many standard errors of the difference, trial by
      trial, LSD is above it.
    - `lsd_relative`, …: the standard error that one trial says of itself, over the mean discrepancy.
    - `times_surer`: the smaller one of the KSDs' over LSD's.
    """
    pooled: dict[str, dict[str, Any]] = {}
    for group, members in grouped(rows).items():
        blocks = list(members.values())

        def all_of(name: str, blocks: Sequence[Mapping[str, Any]] = blocks) -> list[float]:
            return [value for block in blocks for value in block[name]]

        numbers: dict[str, Any] = {"trials": sum(block["trials"] for block in blocks)}
        for name in (*METHODS, "bound"):
            numbers[name], numbers[f"{name}_error"] = mean_with_error(all_of(name))
        numbers["lsd_from_zero"] = abs(numbers["lsd"]) / numbers["lsd_error"]
        apart = [lsd - bound for lsd, bound in zip(all_of("lsd"), all_of("bound"), strict=True)]
        above, error = mean_with_error(apart)
        if numbers["bound"] > 0:
            numbers |= {"share": numbers["lsd"] / numbers["bound"], "above_bound": above / error}
            for name in METHODS:
                numbers[f"{name}_relative"] = mean_with_error(all_of(f"{name}_error"))[0] / numbers[name]
            surest = min(abs(numbers[f"{name}_relative"]) for name in KERNELS)
            numbers["times_surer"] = surest / abs(numbers["lsd_relative"])
        pooled[group] = numbers
    return pooled


def summary(rows: Rows) -> str:
    """Discrepancies by perturbation, a table for each dimension; relative errors in brackets."""
    pooled = {place_of(group)[:2]: numbers for group, numbers in pool(rows).items()}
    lines = []
    for dim in sorted({dim for dim, _ in pooled}):
        at = {place: numbers for (size, place), numbers in sorted(pooled.items()) if size == dim}
        lines += [f"| {dim} dimensions | " + " | ".join(f"{place:g}" for place in at) + " |"]
        lines += ["|---" * (len(at) + 1) + "|"]
        for name, words in METHODS.items():
            lines += [f"| {words} | " + " | ".join(_cell(numbers, name) for numbers in at.values()) + " |"]
        for name, words in (("bound", "bound"), ("share", "LSD's share of it")):
            cells = [f"{numbers[name]:.3g}" if name in numbers else "" for numbers in at.values()]
            lines += [f"| {words} | " + " | ".join(cells) + " |"]
        lines += ["| trials | " + " | ".join(str(numbers["trials"]) for numbers in at.values()) + " |", ""]
    return "\n".join(lines)


def _cell(numbers: Mapping[str, Any], name: str) -> str:
    relative = numbers.get(f"{name}_relative")
    told = f" ({abs(relative):.0%})" if relative is not None else ""
    return f"{numbers[name]:.3g} ± {numbers[f'{name}_error']:.2g}{told}"


def draw(out: Path, recipe: TrialsRecipe, rows: Sequence[str]) -> None:
    """Discrepancies over their value at the largest perturbation, a panel for each dimension (Fig. 6).

    LSD and its bound have the same unit, the bound's last value; each KSD has its own. Bars are the standard
    errors that one trial says of itself.
    """
    made = {name: json.loads((out / f"{name}.json").read_text(encoding="utf-8")) for name in rows}
    metrics = {name: row["metrics"] for name, row in made.items()}
    errors = {
        (place_of(group)[:2], name): mean_with_error(
            [v for block in members.values() for v in block[f"{name}_error"]]
        )[0]
        for group, members in grouped(metrics).items()
        for name in METHODS
    }
    pooled = {place_of(group)[:2]: numbers for group, numbers in pool(metrics).items()}
    dims = sorted({dim for dim, _ in pooled})
    figure = Figure(figsize=(1 + 3.6 * len(dims), 3.6), layout="constrained")
    panels = figure.subplots(1, len(dims), sharey=True, squeeze=False)[0]
    for axes, dim in zip(panels, dims, strict=True):
        at = {place: numbers for (size, place), numbers in sorted(pooled.items()) if size == dim}
        last = at[max(at)]
        for index, (name, words) in enumerate(METHODS.items()):
            unit = last["bound"] if name == "lsd" else last[name]
            unit = unit if unit > 0 else 1.0
            axes.errorbar(
                list(at),
                [numbers[name] / unit for numbers in at.values()],
                [errors[(dim, place), name] / unit for place in at],
                fmt="o-",
                color=f"C{index}",
                label=words,
                capsize=2,
            )
        unit = last["bound"] if last["bound"] > 0 else 1.0
        bound = [numbers["bound"] / unit for numbers in at.values()]
        axes.plot(list(at), bound, "--", color="0.4", label="LSD's bound")
        axes.set(title=f"{dim} dimensions", xlabel="perturbation")
    panels[0].set_ylabel("discrepancy, in units of its last value")
    panels[0].legend(frameon=False, fontsize=7)
    figures.save(figure, out / "figure.png")


RBM_RANK = MeasuredStudy(
    name="rbm-rank",
    about="discrepancies of perturbed RBMs in 50, 100 and 200 dimensions: LSD, both KSDs and LSD's bound",
    recipe="measured/rbm-rank",
    quick_recipe="measured/rbm-rank-quick",
    settings=TrialsRecipe,
    # Where the model is right, LSD is to be told from 0, which takes more trials than a large discrepancy.
    rows=block_rows(machine_changes(), lambda group: 6 if place_of(group)[1] == 0 else 2),
    quick_rows=("d50-p0-b0", "d50-p0.06-b0"),
    metrics=("lsd", "lsd_from_zero", "share", "above_bound", "times_surer", "ksd", "lksd", "bound"),
    measure=measure,
    pool=pool,
    pooled=tuple(machine_changes()),
    draw=draw,
    tabulate=summary,
)
