"""log Z between two bounds, on ten densities whose normaliser is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import mean
from typing import Annotated, Any, Literal

import torch
from pydantic import Field

from burnin.core import KnownDensity, Report
from burnin.data import (
    Funnel,
    Gaussian,
    GaussianMixture,
    LinearICA,
    Rings,
    StudentT,
    unequal_gaussians,
)
from burnin.energies import FromLogProb
from burnin.evaluation import LogNormaliser, MixtureBase, log_normaliser
from burnin.evaluation.normaliser import by_grid
from burnin.rng import Streams
from burnin.settings import Count, Part
from burnin.studies.measured import MeasuredRecipe, MeasuredStudy
from burnin.studies.table import Rows

STARTS = ("own", "exact")
"""Where the way back starts: at the first way's ends, as for a trained model, or at draws of the density."""
Name = Literal[
    "gaussian-2",
    "mixture-2",
    "rings-2",
    "mixture-10",
    "rings-10",
    "funnel-10",
    "ica-10",
    "student-10",
    "gaussian-50",
    "ica-50",
]


def _four_gaussians(generator: torch.Generator) -> GaussianMixture:
    """Four Gaussians in 10 dimensions, of unequal widths and weights, about nine of them apart."""
    means = (2 * torch.randn(4, 10, generator=generator)).tolist()
    return GaussianMixture(tuple(map(tuple, means)), (0.5, 0.7, 0.9, 1.1), (1, 2, 3, 4))


DENSITIES: dict[Name, tuple[str, Callable[[torch.Generator], KnownDensity]]] = {
    "gaussian-2": ("Gaussian, condition 100", lambda stream: Gaussian.conditioned(2, 100, stream)),
    "mixture-2": ("eight Gaussians, weights 1 to 8", lambda _: unequal_gaussians()),
    "rings-2": ("four rings", lambda _: Rings.four()),
    "mixture-10": ("four Gaussians, weights 1 to 4", _four_gaussians),
    "rings-10": ("the hybrid paper's rings", lambda _: Rings.paper()),
    "funnel-10": ("Neal's funnel", lambda _: Funnel(10)),
    "ica-10": ("ICA, Laplace sources", lambda stream: LinearICA.random(10, "laplace", stream)),
    "student-10": ("Student's t, 5 degrees of freedom", lambda _: StudentT(10, 5)),
    "gaussian-50": ("Gaussian, condition 10,000", lambda stream: Gaussian.conditioned(50, 1e4, stream)),
    "ica-50": ("ICA, logistic sources", lambda stream: LinearICA.random(50, "logistic", stream)),
}
NAMES: dict[str, str] = {name: words for name, (words, _) in DENSITIES.items()}


class TargetPart(Part):
    """Which density p; its energy is -T (log p + log_z), so that log Z is `log_z` at the temperature T."""

    density: Name = "gaussian-2"
    log_z: float = 7.0
    temperature: Annotated[float, Field(gt=0)] = 0.5


class EffortPart(Part):
    """As `log_normaliser` has it by default.

    `rows` of the density are what the base is fitted to; `components` of 0 chooses their number. `repeats`
    are runs with other seeds.
    """

    particles: Annotated[int, Field(ge=2)] = 512
    num_leapfrog: Count = 5
    components: Annotated[int, Field(ge=0)] = 0
    rows: Annotated[int, Field(ge=10)] = 5000
    repeats: Count = 3


class LogZRecipe(MeasuredRecipe):
    """A density and how much is spent on its normaliser."""

    target: TargetPart = TargetPart()
    effort: EffortPart = EffortPart()


def measure(recipe: LogZRecipe, report: Report) -> dict[str, Any]:
    """Bounds, intervals and effective draws of each run, with the way back from either start."""
    target, effort = recipe.target, recipe.effort
    density = DENSITIES[target.density][1](Streams(0)["density"])
    energy = FromLogProb(lambda x: density.log_prob(x) + target.log_z, target.temperature)
    found: dict[str, list[Any]] = {}
    for repeat in range(effort.repeats):
        streams = Streams(recipe.run.seed + repeat)
        data = density.sample(effort.rows, streams["data"])
        base = MixtureBase.fit(data, effort.components) if effort.components else MixtureBase.choose(data)
        found.setdefault("components", []).append(base.num_components)
        for start in STARTS:
            # The same stream, so the same way there: only the way back differs.
            z = log_normaliser(
                energy,
                target.temperature,
                base,
                generator=Streams(recipe.run.seed + repeat)["walk"],
                particles=effort.particles,
                num_leapfrog=effort.num_leapfrog,
                draws=None if start == "own" else density.sample(effort.particles, streams["draws"]),
                report=report,
            )
            for name, value in _numbers(z, target.log_z).items():
                found.setdefault(f"{start}_{name}", []).append(value)
        if density.dim <= 2:
            found.setdefault("grid", []).append(by_grid(energy, target.temperature, data))
    return {"dim": density.dim, "truth": target.log_z, **found}


def _numbers(z: LogNormaliser, truth: float) -> dict[str, Any]:
    low, high = z.interval
    return {
        "lower": z.lower,
        "lower_error": z.lower_error,
        "upper": z.upper,
        "upper_error": z.upper_error,
        "low": low,
        "high": high,
        "width": high - low,
        "inside": low <= truth <= high,
        "draws": [z.lower_draws, z.upper_draws],
        "trusted": z.trusted,
        "laws": z.num_laws,
        "acceptance": z.acceptance,
    }


def pool(rows: Rows) -> dict[str, dict[str, Any]]:
    """Of each density the share of runs whose interval holds the truth and the mean width; `all` of them.

    - `inside`, `exact_inside`: the number of densities whose first run holds the truth.
    - `share`, `exact_share`: the share of all runs that do.
    - `widest_10`: the largest mean width among those of at most 10 dimensions.
    - `grid_off`: the largest distance of a grid's log Z from the truth; None without a plane.
    """
    pooled: dict[str, dict[str, Any]] = {
        name: {
            "share": mean(row["own_inside"]),
            "exact_share": mean(row["exact_inside"]),
            "width": mean(row["own_width"]),
            "exact_width": mean(row["exact_width"]),
        }
        for name, row in rows.items()
    }
    grids = [abs(value - row["truth"]) for row in rows.values() for value in row.get("grid", ())]
    pooled["all"] = {
        "densities": len(rows),
        "inside": sum(row["own_inside"][0] for row in rows.values()),
        "exact_inside": sum(row["exact_inside"][0] for row in rows.values()),
        "share": mean(inside for row in rows.values() for inside in row["own_inside"]),
        "exact_share": mean(inside for row in rows.values() for inside in row["exact_inside"]),
        "widest_10": max(
            (pooled[name]["width"] for name, row in rows.items() if row["dim"] <= 10), default=0.0
        ),
        "grid_off": max(grids, default=None),
    }
    return pooled


def summary(rows: Rows) -> str:
    """The first run of each density; how many of all runs hold the truth, and the seconds of one."""
    lines = [
        "| density | dim | lower bound | upper bound | interval | width | truth | inside | ESS there, back | "
        "upper, exact draws | inside | seconds |",
        "|---" * 12 + "|",
    ]
    for name, row in rows.items():
        runs = len(row["own_inside"])
        lines.append(
            f"| {NAMES[name]} | {row['dim']} | {_bound(row, 'own_lower')} | {_bound(row, 'own_upper')} | "
            f"{row['own_low'][0]:.2f} to {row['own_high'][0]:.2f} | {row['own_width'][0]:.2f} | "
            f"{row['truth']:.2f} | {sum(row['own_inside'])} of {runs} | "
            f"{row['own_draws'][0][0]:.0f}, {row['own_draws'][0][1]:.0f} | {_bound(row, 'exact_upper')} | "
            f"{sum(row['exact_inside'])} of {runs} | {row['cpu_seconds'] / (2 * runs):.0f} |"
        )
    numbers = pool(rows)["all"]
    lines += [
        "",
        f"The truth lies in the first interval of {numbers['inside']} of {numbers['densities']} densities "
        f"and in {numbers['share']:.0%} of all intervals; with exact draws, of {numbers['exact_inside']} "
        f"and in {numbers['exact_share']:.0%}. Up to ten dimensions intervals are at most "
        f"{numbers['widest_10']:.2f} nats wide, on average over the runs of a density.",
    ]
    if numbers["grid_off"] is not None:
        lines.append(f"In the plane log Z by a grid is off by at most {numbers['grid_off']:.1g}.")
    return "\n".join(lines) + "\n"


def variants(made: Mapping[str, Rows]) -> str:
    """One line for each way in which the study was made."""
    lines = [
        "| | densities inside | runs inside | widest up to 10 dim | exact draws: densities, runs | seconds |",
        "|---" * 6 + "|",
    ]
    for words, rows in made.items():
        numbers = pool(rows)["all"]
        runs = sum(2 * len(row["own_inside"]) for row in rows.values())
        lines.append(
            f"| {words} | {numbers['inside']} of {numbers['densities']} | {numbers['share']:.0%} | "
            f"{numbers['widest_10']:.2f} nats | {numbers['exact_inside']}, {numbers['exact_share']:.0%} | "
            f"{sum(row['cpu_seconds'] for row in rows.values()) / runs:.1f} |"
        )
    return "\n".join(lines) + "\n"


def _bound(row: Mapping[str, Any], name: str) -> str:
    return f"{row[name][0]:.3f} ± {1.96 * row[f'{name}_error'][0]:.2f}"


LOG_Z = MeasuredStudy(
    name="log-z",
    about="log Z between two bounds on ten densities whose normaliser is known, in 2 to 50 dimensions",
    recipe="measured/log-z",
    quick_recipe="measured/log-z-quick",
    settings=LogZRecipe,
    rows={name: [f"target.density={name}"] for name in NAMES},
    quick_rows=("mixture-2", "mixture-10"),
    metrics=(
        "inside",
        "exact_inside",
        "share",
        "exact_share",
        "width",
        "exact_width",
        "widest_10",
        "grid_off",
    ),
    measure=measure,
    pool=pool,
    pooled=(*NAMES, "all"),
    draw=None,
    tabulate=summary,
)
