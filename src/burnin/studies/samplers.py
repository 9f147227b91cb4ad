"""Negatives of several samplers in one contrast (robust, section 5), where one sampler will not do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from burnin.assemble import load_model
from burnin.assemble_chains import build_arms
from burnin.config import read_run_config
from burnin.core import InputError
from burnin.data import two_scales
from burnin.data.mixtures import BLOB_DISTANCE, BLOB_SD, RING_RADIUS, RING_SD
from burnin.evaluation.assess import Assessment
from burnin.evaluation.grid import PlaneGrid, band_kl, band_masses
from burnin.evaluation.model import Model
from burnin.report import figures
from burnin.report.toys import Column, pairs_figure
from burnin.rng import Streams
from burnin.settings import Config
from burnin.studies.rows import Study
from burnin.studies.table import Rows, mean_and_error
from burnin.training.arms import run_arms

BETA = 0.3
SEEDS = (0, 1, 2)
LARGE = "step_size=0.05"
HMC = 'kind="hmc", step_size=0.15, num_leapfrog=4, num_steps=5'
SAMPLERS: dict[str, list[str]] = {
    "small": [],
    "large": [f"sampler.{LARGE}"],
    "both": ["sampler.num_chains=50", f"more_samplers=[{{{LARGE}}}]"],
    "quarter": ["sampler.num_chains=25", f"more_samplers=[{{{LARGE}, num_chains=75}}]"],
    "hmc": [f"sampler.{part}" for part in HMC.split(", ")],
    "small_hmc": ["sampler.num_chains=50", f"more_samplers=[{{{HMC}}}]"],
}
"""Changes of the recipe, whose own sampler is the small step. All have 100 chains in all, as many as there
are data points in a batch."""
MEANING = {
    "small": "Langevin, small step",
    "large": "Langevin, large step",
    "both": "both pooled, 50 chains each",
    "quarter": "both pooled, 25 small and 75 large",
    "hmc": "HMC",
    "small_hmc": "small step and HMC pooled, 50 chains each",
}
BORDER = RING_RADIUS + RING_SD * (BLOB_DISTANCE - RING_RADIUS) / (RING_SD + BLOB_SD)
"""Between ring and blobs, as many standard deviations from either."""
NAME = re.compile(r"(?P<samplers>\w+)-b(?P<beta>[\d.]+)-s(?P<seed>\d+)")
STUDIED = ("density_kl", "density_kl_within", "ring_mass")
DRAWN = {"small": "small step", "large": "large step", "both": "both, pooled"}
NEGATIVES = 4000
BANDWIDTH = 0.06
"""Of the pictures of the negatives: less than the ring's thickness."""


def row_name(samplers: str, beta: float, seed: int) -> str:
    """The name of a row.

    Example:
        >>> row_name("both", 0.3, 1)
        'both-b0.3-s1'
    """
    return f"{samplers}-b{beta:g}-s{seed}"


def _rows() -> dict[str, list[str]]:
    wanted = [(name, BETA, seed) for name in (*DRAWN, "quarter") for seed in SEEDS]
    wanted += [("both", 0.0, seed) for seed in SEEDS]
    wanted += [(name, BETA, 0) for name in ("hmc", "small_hmc")]
    wanted += [(name, beta, 0) for beta in (0.6, 0.9) for name in DRAWN]
    return {
        row_name(name, beta, seed): [*SAMPLERS[name], f"scheme.beta={beta}", f"run.seed={seed}"]
        for name, beta, seed in wanted
    }


def measure(model: Model, result: Assessment) -> dict[str, Any]:
    """KL(true ‖ model) on a grid, the part of it that is shape and not mass, and the ring's mass (½)."""
    if result.grid is None or result.log_truth is None or result.log_model is None:
        raise InputError("two-samplers needs a data set of the plane whose density is known")
    ring = result.grid.radius() < BORDER
    return {
        "density_kl": result.density_kl,
        "density_kl_within": band_kl(result.log_truth, result.log_model, [ring, ~ring]),
        "ring_mass": band_masses(result.log_model, [ring])[0],
    }


def summary(rows: Rows) -> str:
    """A line for each set of samplers and β: means over the seeds that finished, with standard errors.

    A run that diverged is counted but not averaged: its last good checkpoint may be of its first updates.
    """
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for name, metrics in rows.items():
        match = NAME.fullmatch(name)
        assert match is not None, name
        groups.setdefault((match["samplers"], match["beta"]), []).append(metrics)
    lines = ["| negatives | β | density_kl | density_kl_within | ring_mass | seeds |", "|---" * 6 + "|"]
    for (samplers, beta), members in groups.items():
        finished = [row for row in members if row["ended"] == "finished"]
        diverged = len(members) - len(finished)
        seeds = f"{len(members)}" + (f", {diverged} diverged" if diverged else "")
        numbers = [mean_and_error(finished, metric) if finished else "" for metric in STUDIED]
        lines.append(f"| {MEANING[samplers]} | {beta} | " + " | ".join([*numbers, seeds]) + " |")
    return "\n".join(lines) + "\n"


def draw(out: Path, config: Config, rows: Sequence[str]) -> None:
    """The truth, and for each sampler and for both its density and the negatives that it is trained with."""
    names = {name: row_name(name, BETA, 0) for name in DRAWN}
    present = {name: row for name, row in names.items() if row in rows}
    if not present:
        return
    density = two_scales()
    grid = PlaneGrid(BLOB_DISTANCE + 4 * BLOB_SD, config.study.grid_points, density.dim)
    columns = [Column("data", grid, grid.log_truth(density))]
    for name, row in present.items():
        model = load_model(out / row)
        columns.append(Column(DRAWN[name], grid, grid.log_density(model.energy, model.temperature)))
        estimate = figures.kernel_density(negatives_of(out / row, model), grid, BANDWIDTH)
        columns.append(Column("its negatives", grid, estimate.clamp(min=1e-12).log()))
    figures.save(pairs_figure({"ring and blobs": columns}), out / "figure.png")


def negatives_of(folder: Path, model: Model) -> Tensor:
    """What all arms of a trained run bring to its contrast, in the numbers that they have there."""
    config = read_run_config(folder)
    streams = Streams(config.run.seed)
    times = NEGATIVES // config.run.batch_size
    arms = [
        replace(arm, num_chains=times * (arm.num_chains or config.run.batch_size))
        for arm in build_arms(config, model.data.dim, streams["bank"])
    ]
    data = model.data.sample(times * config.run.batch_size, streams["figure"])
    runs = run_arms(arms, model.energy, data, model.scale, streams["negatives"], model.engine)
    return torch.cat([run.position for run in runs])


TWO_SAMPLERS = Study(
    name="two-samplers",
    about="negatives of two samplers, neither of which will do alone, in one contrast",
    recipe="two-samplers",
    quick_recipe="two-samplers-quick",
    rows=_rows(),
    quick_rows=tuple(row_name(name, BETA, 0) for name in DRAWN),
    metrics=(*STUDIED, "ended", "seconds_training", "seconds"),
    measure=measure,
    draw=draw,
    tabulate=summary,
)
