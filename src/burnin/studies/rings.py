"""The hybrid paper's synthetic experiment: the 10-D rings, Fig. 2 and a table; and what decides there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from burnin.assemble_data import build_data
from burnin.core import InputError
from burnin.data import Rings
from burnin.evaluation import band_kl, band_masses, count_rings, ring_bands
from burnin.evaluation.assess import Assessment, plane_of
from burnin.evaluation.model import Model
from burnin.report import figures
from burnin.rng import Streams
from burnin.settings import Config
from burnin.studies.rows import Study
from burnin.studies.table import Rows, format_value, mean_and_error

METRICS = (
    "density_kl",
    "density_kl_within",
    "density_masses",
    "sample_distance",
    "sample_distance_matched",
    "sample_distance_plain",
    "sample_distance_annealed",
    "long_run_distance",
    "data_run_distance",
    "ring_shares",
    "ring_shares_long",
    "off_manifold",
    "thin_width",
    "seconds_training",
    "seconds",
)
PLAIN = "sampler_from_noise={}"
UNWEIGHTED = ["scheme.beta=0.0", 'scheme.beta_on="both"']
SCHEMES: dict[str, list[str]] = {
    "data": ['scheme.name="data"', *UNWEIGHTED],
    "noise": ['scheme.name="noise"', *UNWEIGHTED, PLAIN],
    "persistent": ['scheme.name="persistent"', *UNWEIGHTED],
    "refresh": ['scheme.name="refresh"', *UNWEIGHTED],
    "hybrid": ['scheme.name="hybrid"', *UNWEIGHTED],
    "hybrid-beta": [],
    "noise-annealed": ['scheme.name="noise"', *UNWEIGHTED],
}
"""The five schemes of the paper, the recipe's own β-weighted hybrid, and the noise scheme with the hybrid's
chains, as changes of the recipe.

The noise scheme is the paper's: plain short chains. The hybrid's chains from noise are annealed; the last
row, and "no-annealing" below, exchange the chains, to tell what the scheme does from what the chain does.
"""
CHANGES: dict[str, list[str]] = {
    "baseline": [],
    "no-fourier": ["model.frequencies=[]"],
    "no-annealing": [PLAIN],
    "no-resampling": ["sampler_from_noise.resample_below=0"],
    "one-step": [
        'sampler.scale="none"',
        "sampler.step_size=1e-4",
        "sampler_from_noise.step_size=1e-4",
    ],
    "no-factor": ['model.gaussian_factor="none"'],
    "no-average": ["model.average=0.0"],
    "no-decay": ['optimizer.decay="none"'],
    "no-average-no-decay": ["model.average=0.0", 'optimizer.decay="none"'],
    "lam-1": ["scheme.lam=1.0"],
    "T-0.05": ["model.temperature=0.05"],
    "steps-5": ["sampler.num_steps=5", "sampler.step_size=[[0, 0.3], [5, 0.05]]"],
    "step-0.4": ["sampler.step_size=0.4"],
    "batch-32": ["run.batch_size=32", "sampler_from_noise.num_chains=32"],
    "wide": ["model.width=128"],
    "leaky": ['model.activation="leaky"'],
}
"""What is taken away from, or changed in, the small hybrid to see what decides."""


def measure(model: Model, result: Assessment) -> dict[str, Any]:
    """The table's numbers for one row; docs/rings.md says what each means."""
    rings = model.data
    if not isinstance(rings, Rings) or result.grid is None:
        raise InputError("the rings study needs the data set 'rings10'")
    assert result.log_truth is not None
    assert result.log_model is not None
    bands = ring_bands(result.grid, rings.radii)
    counts = count_rings(result.samples.position, rings.radii)
    return {
        "density_kl": result.density_kl,
        "density_kl_within": band_kl(result.log_truth, result.log_model, bands),
        "density_masses": band_masses(result.log_model, bands),
        "sample_distance": result.sample_distance,
        "sample_distance_matched": result.matched,
        "sample_distance_plain": result.plain,
        "sample_distance_annealed": result.annealed,
        "long_run_distance": result.long_run,
        "data_run_distance": result.data_run,
        "ring_shares": counts.shares,
        "ring_shares_long": count_rings(result.long_sampled.position, rings.radii).shares,
        "off_manifold": counts.off_manifold,
        "thin_width": thin_width(result.long_sampled.position, rings),
    }


def thin_width(samples: Tensor, rings: Rings) -> float:
    """Standard deviation of the thin dimensions of long-run samples over the truth's: 1 is right."""
    return samples[:, -rings.thin_dims :].square().mean().sqrt().item() / rings.thin_sd


def draw(out: Path, config: Config, rows: Sequence[str]) -> None:
    """Fig. 2: samples above, densities below, the data and one column for each row."""
    rings = build_data(config)
    data = rings.sample(config.study.samples, Streams(config.run.seed)["figure"])
    grid = plane_of(rings, data, config.study.grid_points)
    assert grid is not None
    assert isinstance(rings, Rings)
    columns = {}
    for name in rows:
        tensors = safetensors.torch.load_file(out / f"{name}.safetensors")
        columns[name] = (tensors["samples"], tensors["log_density"].double().exp())
    figure = figures.schemes_figure(grid.log_truth(rings).exp(), data, columns, grid)
    figures.save(figure, out / "figure.png")


BETA: dict[str, list[str]] = {
    "beta-0": [],
    **{
        f"{where}-{beta}": [f"scheme.beta={beta}", f'scheme.beta_on="{where}"']
        for where in ("noise", "data", "both")
        for beta in (0.05, 0.1, 0.3)
    },
    **{f"pooled-{beta}": [f"scheme.beta={beta}", "scheme.pooled=true"] for beta in (0.05, 0.1, 0.3)},
    "pooled-down": ["scheme.beta=[[1000, 0.1], [2000, 0.0]]", "scheme.pooled=true"],
}
"""How β enters the hybrid: on which arm, how much, with all negatives in one contrast, or in one whose β
falls to 0 over the second half."""
SEEDS = {"beta-0": 3, "noise-0.1": 3, "noise-0.3": 3, "pooled-0.05": 2}
"""Of the rows that keep the masses, those that are made with more than the first seed."""
PLAIN_SEEDS = {"beta-0": 3, "noise-0.1": 1, "noise-0.3": 3, "pooled-0.1": 1}
"""Made once more with the paper's chains, short and plain, in the noise arm; with these, without β, the
masses are nearly free: chains from noise end where they may, and chains from data do not cross."""
BETA_ROWS: dict[str, list[str]] = {
    **BETA,
    **{
        f"{name}-s{seed}": [*BETA[name], f"run.seed={seed}"]
        for seed in (1, 2)
        for name, seeds in SEEDS.items()
        if seed < seeds
    },
    **{
        f"plain-{name}-s{seed}": [*BETA[name], PLAIN, f"run.seed={seed}"]
        for seed in (0, 1, 2)
        for name, seeds in PLAIN_SEEDS.items()
        if seed < seeds
    },
}

SEED = re.compile(r"(?P<name>.+?)(-s(?P<seed>\d+))?")


def beta_summary(rows: Rows) -> str:
    """Mean and standard error over the seeds of each way that β enters; the masses are the first seed's."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for name, metrics in rows.items():
        match = SEED.fullmatch(name)
        assert match is not None, name
        groups.setdefault(match["name"], []).append(metrics)
    shown = ("density_kl", "density_kl_within", "sample_distance", "long_run_distance", "thin_width")
    lines = ["| | seeds | " + " | ".join(shown) + " | density_masses |", "|---" * (len(shown) + 3) + "|"]
    for name, made in groups.items():
        cells = [mean_and_error(made, metric) for metric in shown]
        masses = format_value(made[0]["density_masses"])
        lines.append(f"| {name} | {len(made)} | " + " | ".join(cells) + f" | {masses} |")
    return "\n".join(lines) + "\n"


RINGS = Study(
    name="rings",
    about="the five schemes of the hybrid paper on the 10-D rings (Fig. 2)",
    recipe="rings",
    quick_recipe="rings-quick",
    rows=SCHEMES,
    quick_rows=("data", "noise", "persistent", "refresh", "hybrid"),
    metrics=METRICS,
    measure=measure,
    draw=draw,
)
RINGS_CHANGES = Study(
    name="rings-changes",
    about="what decides on the rings: the small hybrid with one thing changed at a time",
    recipe="rings-changes",
    quick_recipe=None,
    rows=CHANGES,
    quick_rows=(),
    metrics=METRICS,
    measure=measure,
    draw=draw,
)
RINGS_BETA = Study(
    name="rings-beta",
    about="the hybrid with the robust paper's weights: β on the noise arm, the data arm, both, or pooled",
    recipe="rings-beta",
    quick_recipe=None,
    rows=BETA_ROWS,
    quick_rows=(),
    metrics=(*METRICS, "thin_width"),
    measure=measure,
    draw=draw,
    tabulate=beta_summary,
)
