"""The robust paper's toys (section 4.1, appendix K): what β does to the density and to the sampler."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from burnin.config import load_config
from burnin.core import InputError
from burnin.evaluation.assess import Assessment
from burnin.evaluation.model import Model
from burnin.objectives import VARIANTS
from burnin.report import figures
from burnin.report.toys import pairs_figure
from burnin.settings import Config
from burnin.studies.columns import toy_columns
from burnin.studies.rows import Study
from burnin.studies.table import Rows, mean_and_error

BETAS = (0.0, 0.1, 0.5, 0.9)
SEEDS = (0, 1, 2)
DATA: dict[str, list[str]] = {
    "mixture": ['data.name="mixture8-unequal"', "noise.scale=1.0"],
    "circles": ['data.name="circles"', "noise.scale=2.0"],
}
SHIFTED: dict[str, list[str]] = {
    "mixture": ["noise.scale=0.5", "noise.shift=[1.0, -1.0]"],
    "circles": ["noise.scale=1.0", "noise.shift=[2.0, -2.0]"],
}
SETUPS: dict[str, list[str]] = {
    "default": [],
    "long": ["run.updates=200000"],
    "shifted": ["sampler.step_size=10.0"],
    "restricted": ["sampler.num_steps=3", "sampler.num_chains=3"],
    "degenerate": ["sampler.num_steps=0", "sampler.num_chains=1"],
}
"""As the paper has them: twice as long (Fig. 5), start at the bottom right with half the spread and ten
times the step (Fig. 6), 3 negatives of 3 steps (Figs. 10, 11), 1 negative of 0 steps (Figs. 8, 9)."""
NAME = re.compile(r"(?P<data>\w+)-(?P<setup>\w+)-(?P<variant>\w+)-b(?P<beta>[\d.]+)-s(?P<seed>\d+)")


def row_name(data: str, setup: str, variant: str, beta: float, seed: int) -> str:
    """The name of a row.

    Example:
        >>> row_name("mixture", "default", "default", 0.1, 0)
        'mixture-default-default-b0.1-s0'
    """
    return f"{data}-{setup}-{variant}-b{beta:g}-s{seed}"


def _rows() -> dict[str, list[str]]:
    wanted: list[tuple[str, str, str, float, int]] = []
    for data in DATA:
        for seed in SEEDS:
            wanted += [(data, "default", "default", beta, seed) for beta in BETAS]
            wanted += [(data, "restricted", "default", 0.0, seed)]
            wanted += [(data, "restricted", v, beta, seed) for v in VARIANTS for beta in BETAS[1:]]
            wanted += [(data, "degenerate", "default", beta, seed) for beta in BETAS]
            wanted += [(data, "shifted", "default", beta, seed) for beta in BETAS]
        wanted += [(data, "default", v, beta, 0) for v in VARIANTS[1:] for beta in BETAS[1:]]
        wanted += [(data, "degenerate", v, beta, 0) for v in VARIANTS[1:] for beta in BETAS[1:]]
    wanted += [("circles", "long", "default", beta, 0) for beta in BETAS]
    return {row_name(*row): changes_of(*row) for row in wanted}


def changes_of(data: str, setup: str, variant: str, beta: float, seed: int) -> list[str]:
    """A row as changes of the recipe."""
    return [
        *DATA[data],
        *SETUPS[setup],
        *(SHIFTED[data] if setup == "shifted" else []),
        f"scheme.beta={beta}",
        f'scheme.variant="{variant}"',
        f"run.seed={seed}",
    ]


def measure(model: Model, result: Assessment) -> dict[str, Any]:
    """KL(true ‖ model) on a grid, and how far the training's own chains end from the data."""
    if result.density_kl is None:
        raise InputError("the robust toys need a data set of the plane whose density is known")
    return {
        "density_kl": result.density_kl,
        "sample_distance": result.sample_distance,
        "long_run_distance": result.long_run,
    }


def summary(rows: Rows) -> str:
    """KL and the sampler's distance by setup and β, averaged over seeds with their standard error; and the
    seconds that training took, from the fastest row to the slowest."""
    groups: dict[tuple[str, str, str], dict[float, list[Mapping[str, Any]]]] = {}
    for name, metrics in rows.items():
        match = NAME.fullmatch(name)
        assert match is not None, name
        key = (match["data"], match["setup"], match["variant"])
        groups.setdefault(key, {}).setdefault(float(match["beta"]), []).append(metrics)
    head = [f"β = {beta:g}" for beta in BETAS]
    lines = [
        "| density_kl (sampler's distance) | " + " | ".join(head) + " | seconds |",
        "|---" * (len(BETAS) + 2) + "|",
    ]
    for key, by_beta in groups.items():
        cells = [_cell(by_beta.get(beta, [])) for beta in BETAS]
        spent = [row["seconds_training"] for made in by_beta.values() for row in made]
        lines.append(f"| {', '.join(key)} | " + " | ".join(cells) + f" | {min(spent):.0f}–{max(spent):.0f} |")
    return "\n".join(lines) + "\n"


def _cell(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return ""
    diverged = sum(row["ended"] != "finished" for row in rows)
    text = f"{mean_and_error(rows, 'density_kl')} ({mean_and_error(rows, 'sample_distance')})"
    return text + (f", {diverged} of {len(rows)} diverged" if diverged else "")


def draw(out: Path, config: Config, rows: Sequence[str]) -> None:
    """Figures like the paper's, one for each setup and variant that has rows of seed 0."""
    kinds = sorted({(m["setup"], m["variant"]) for name in rows if (m := NAME.fullmatch(name)) is not None})
    for setup, variant in kinds:
        panels = {}
        for data in DATA:
            names = {beta: row_name(data, setup, variant, beta, 0) for beta in BETAS}
            present = {f"β = {beta:g}": name for beta, name in names.items() if name in rows}
            if present:
                known = load_config("robust-toy", DATA[data]).data.name or ""
                panels[data] = toy_columns(out, known, present, "its chains")
        if panels:
            target = "figure.png" if (setup, variant) == ("default", "default") else f"{setup}-{variant}.png"
            figures.save(pairs_figure(panels), out / target)


ROBUST_TOY = Study(
    name="robust-toy",
    about="the robust paper's toys: β in 0, 0.1, 0.5, 0.9, five setups, four variants",
    recipe="robust-toy",
    quick_recipe="robust-toy-quick",
    rows=_rows(),
    quick_rows=tuple(row_name("mixture", "default", "default", beta, 0) for beta in (0.0, 0.5)),
    metrics=("density_kl", "sample_distance", "long_run_distance", "ended", "seconds_training", "seconds"),
    measure=measure,
    draw=draw,
    tabulate=summary,
)
