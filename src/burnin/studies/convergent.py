"""The convergent paper's toys: learning from chains at their steady state, and from chains that are not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from burnin.config import load_config
from burnin.core import InputError
from burnin.evaluation.assess import Assessment
from burnin.evaluation.model import Model
from burnin.report import figures
from burnin.report.toys import Column, pairs_figure
from burnin.settings import Config
from burnin.studies.columns import toy_columns
from burnin.studies.rows import Study

DATA: dict[str, list[str]] = {"mixture": ['data.name="mixture8"'], "rings": ['data.name="rings4"']}
SHORT_RUN = [
    'scheme.name="noise"',
    'noise.kind="gaussian"',
    "model.temperature=5e-5",
    "model.average=0.0",
    "sampler={num_steps=100, step_size=1.0}",
    "sampler_at_test={}",
    'optimizer.name="Adam"',
    "optimizer.learning_rate=1e-4",
    'optimizer.decay="none"',
    "run.updates=20000",
    "run.log_every=10",
]
"""Short-run learning with the original's numbers: ε = 0.01, 100 steps from Gaussian noise, Adam; a fifth of
its 100,000 updates."""
START = {"mixture": "noise.scale=1.0", "rings": "noise.scale=2.0"}
ROWS: dict[str, list[str]] = {
    **{f"{data}-convergent": changes for data, changes in DATA.items()},
    "mixture-constant-step": [*DATA["mixture"], "sampler.step_size=1.0"],
    **{f"{data}-short-run": [*changes, *SHORT_RUN, START[data]] for data, changes in DATA.items()},
}


def measure(model: Model, result: Assessment) -> dict[str, Any]:
    """The divergence from the truth, where the chains end, and the verdict."""
    if result.density_kl is None:
        raise InputError("the convergent toys need a data set of the plane whose density is known")
    return {
        "density_kl": result.density_kl,
        "sample_distance": result.sample_distance,
        "long_run_distance": result.long_run,
        "verdict": str(result.verdict.standing),
    }


def draw(out: Path, config: Config, rows: Sequence[str]) -> None:
    """True density, learned density and short-run samples, densities above and their logarithms below."""
    panels: dict[str, list[Column]] = {}
    for data, changes in DATA.items():
        known = load_config("convergent-toy", changes).data.name or ""
        named = {name.removeprefix(f"{data}-"): name for name in rows if name.startswith(f"{data}-")}
        columns = toy_columns(out, known, named, "short chains from noise")
        if columns:
            panels[data] = columns
    figures.save(pairs_figure(panels), out / "figure.png")


CONVERGENT_TOY = Study(
    name="convergent-toy",
    about="the convergent paper's toys: steady-state chains against short runs, on a mixture and four rings",
    recipe="convergent-toy",
    quick_recipe="convergent-toy-quick",
    rows=ROWS,
    quick_rows=("mixture-convergent",),
    metrics=("density_kl", "sample_distance", "long_run_distance", "verdict", "ended", "seconds_training"),
    measure=measure,
    draw=draw,
)
