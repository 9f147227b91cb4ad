"""Pictures with very small β: what weights do where chains are short (robust, appendix L, Figs. 12 to 15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from burnin.assemble import load_model
from burnin.core import InputError, Report
from burnin.evaluation import chains
from burnin.evaluation.assess import Assessment
from burnin.evaluation.energy_bands import energies_of
from burnin.evaluation.model import Chain, Model
from burnin.report import figures
from burnin.rng import Streams
from burnin.samplers import Knots, Langevin
from burnin.samplers.schedules import Times
from burnin.settings import Config
from burnin.studies.images import ImageStudy, Ruler, data_set, measure_pictures
from burnin.training import read_metrics

BETAS = ("0", "1e-6", "1e-5", "1e-4", "1e-3")
LARGER = 4.0
"""Times the step of training (Fig. 14): of a right sampler the law would not change."""
DRAWN = 500
ACROSS = 6


def measure(model: Model, result: Assessment, run: Path, report: Report) -> dict[str, Any]:
    """Mean f = -E/T of data, of chains as in training and of chains with larger steps; and the pictures'
    measures."""
    data = _f(model, model.data.sample(DRAWN, Streams(0)["data"]))
    own, larger = (_f(model, drawn) for drawn in _both(model))
    dataset = data_set(run)
    pictures = measure_pictures(result, dataset, Ruler.of(model, dataset))
    return {
        "gap": (data.mean() - own.mean()).item(),
        "gap_larger_step": (data.mean() - larger.mean()).item(),
        **{name: pictures[name] for name in ("features", "frechet", "frechet_real", "auroc", "verdict")},
    }


def _f(model: Model, x: Tensor) -> Tensor:
    return -energies_of(model, x).double()


def _both(model: Model) -> tuple[Tensor, Tensor]:
    """Ends of chains from the same noise, with the step of training and with a larger one."""
    own = model.own
    step = own.sampler.step_size if isinstance(own.sampler, Langevin) else None
    if not isinstance(own.sampler, Langevin) or not isinstance(step, float | Knots):
        raise InputError("the small-β study needs plain Langevin chains whose step does not adapt")
    larger = LARGER * step if isinstance(step, float) else Times(step, LARGER)
    longer = Chain(replace(own.sampler, step_size=larger), own.num_steps)
    found = [chains.from_noise(model, DRAWN, Streams(0)["chains"], chain=one) for one in (own, longer)]
    return found[0].position, found[1].position


def draw(out: Path, config: Config, rows: Sequence[str]) -> None:
    """figure.png, a column for each β: the gap f⁺ - f⁻ along training (Fig. 12), histograms of f by either
    step (Figs. 13, 14) and pictures (Fig. 15)."""
    figure = Figure(figsize=(2.5 * len(rows), 10), layout="constrained")
    panels = figure.subplots(4, len(rows), squeeze=False)
    for column, name in zip(panels.T, rows, strict=True):
        model = load_model(out / name)
        column[0].set_title(f"β = {name.removeprefix('beta-')}", fontsize=10)
        logged = [row for row in read_metrics(out / name / "metrics.jsonl") if "d/noise" in row]
        gap = [-row["d/noise"] / model.temperature for row in logged]
        column[0].plot([row["step"] for row in logged], gap, linewidth=0.7)
        column[0].set_yscale("symlog", linthresh=100)
        data, drawn = _f(model, model.data.sample(DRAWN, Streams(0)["data"])), _both(model)
        for axes, x in zip(column[1:3], drawn, strict=True):
            _histogram(axes, data, _f(model, x))
        assert model.pictures is not None
        figures.draw_pictures(column[3], model.pictures.brightness(drawn[0]), ACROSS)
        for axes in column[:3]:
            axes.tick_params(labelsize=7)
    words = ("f⁺ - f⁻ by update", "f, step of training", f"f, {LARGER:g} × the step", "chains as in training")
    for axes, word in zip(panels[:, 0], words, strict=True):
        axes.set_ylabel(word, fontsize=9)
    panels[1, 0].legend(frameon=False, fontsize=7)
    figures.save(figure, out / "figure.png")


def _histogram(axes: Any, data: Tensor, drawn: Tensor) -> None:
    both = np.concatenate([data.numpy(), drawn.numpy()])
    low, high = (float(np.quantile(both[np.isfinite(both)], share)) for share in (0.005, 0.995))
    bins = np.linspace(low, high if high > low else low + 1, 40).tolist()
    axes.hist(data.numpy(), bins=bins, density=True, alpha=0.5, color=figures.DATA, label="data")
    axes.hist(drawn.numpy(), bins=bins, density=True, alpha=0.5, color=figures.SAMPLES, label="chains")


SMALL_BETA = ImageStudy(
    name="small-beta",
    about="the robust paper's appendix L: pictures with β from 0 to 1e-3, gaps and histograms of f",
    recipe="small-beta",
    quick_recipe="small-beta-quick",
    rows={
        f"beta-{beta}": ['scheme.name="noise"', f"scheme.beta={float(beta)}", "sampler_at_test={}"]
        for beta in BETAS
    },
    quick_rows=("beta-0", "beta-1e-3"),
    metrics=("gap", "gap_larger_step", "frechet", "frechet_real", "auroc", "verdict", "seconds_training"),
    measure=measure,
    draw=draw,
)
