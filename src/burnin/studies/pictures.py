"""Pictures by chains at their steady state and by short runs (convergent paper): what is left after long."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
from matplotlib.figure import Figure

from burnin.assemble_data import build_data
from burnin.data import Pictures, clean, held_out
from burnin.evaluation.assess import Assessment
from burnin.evaluation.model import Model
from burnin.report import figures
from burnin.rng import Streams
from burnin.settings import Config
from burnin.studies.rows import Study

SHORT_RUN = [
    'scheme={name="noise", bank_size=5000}',
    "data.noise=0.03",
    "model.temperature=5e-5",
    "model.average=0.0",
    "sampler={num_steps=100, step_size=1.0}",
    "sampler_at_test={}",
    'model.gaussian_factor="none"',
    "run.updates=6000",
    'optimizer={name="Adam", learning_rate=1e-4}',
]
"""The original's numbers for short-run pictures: ε = 0.01, uniform start, data noise 0.03, Adam at 1e-4;
fewer updates."""
PERSISTENT = ['scheme={name="persistent", bank_size=5000}', "run.updates=20000"]
"""A bank whose chains never begin anew, as the paper has it."""


def measure(model: Model, result: Assessment) -> dict[str, Any]:
    """Where short and long chains end, and the verdict."""
    evidence = result.evidence
    return {
        "sample_distance": result.sample_distance,
        "long_run_distance": result.long_run,
        "long_energies": evidence.long.energies,
        "adjusted_distance": evidence.stayed.distance,
        "verdict": str(result.verdict.standing),
    }


def draw(out: Path, config: Config, rows: Sequence[str]) -> None:
    """A column for each row: its short chains above, the same chains much later below; and the data."""
    data = clean(held_out(build_data(config)))
    assert isinstance(data, Pictures)
    figure = Figure(figsize=(3.2 * (1 + len(rows)), 6.8), layout="constrained")
    above, below = figure.subplots(2, 1 + len(rows))
    panels = [(above[0], "data", data.sample(64, Streams(0)["figure"]))]
    below[0].axis("off")
    for short, long, name in zip(above[1:], below[1:], rows, strict=True):
        tensors = safetensors.torch.load_file(out / f"{name}.safetensors")
        panels.append((short, f"{name}: short chains", tensors["samples"]))
        panels.append((long, f"{name}: {config.study.long_steps:,} steps later", tensors["long"]))
    for axes, title, x in panels:
        figures.draw_pictures(axes, data.brightness(x))
        axes.set_title(title, fontsize=10)
    figures.save(figure, out / "figure.png")


CONVERGENT_MNIST = Study(
    name="convergent-mnist",
    about="MNIST by chains at their steady state and by short runs, and what 20,000 further steps leave",
    recipe="convergent-mnist",
    quick_recipe=None,
    rows={"convergent": [], "persistent": PERSISTENT, "short-run": SHORT_RUN},
    quick_rows=(),
    metrics=("sample_distance", "long_run_distance", "long_energies", "verdict", "ended", "seconds_training"),
    measure=measure,
    draw=draw,
)
