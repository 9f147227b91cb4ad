"""Pictures by the learned Stein discrepancy (stein, section 8.3, B.6, C.2, C.3): trained without chains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from burnin.assemble import load_model
from burnin.core import Energy, InputError
from burnin.data import held_out
from burnin.energies import RBMInUnits
from burnin.evaluation.assess import Assessment
from burnin.evaluation.model import Model
from burnin.objectives import score_matching_terms
from burnin.report import figures
from burnin.rng import Streams
from burnin.samplers import Langevin, run
from burnin.settings import Config
from burnin.studies.machine_trials import mean_with_error
from burnin.studies.rows import Study

DATA = ("mnist", "fashion-mnist", "digits8")
KINDS: Mapping[str, Sequence[str]] = {
    "deep": [],
    "rbm": [
        'model.kind="rbm"',
        'model.gaussian_factor="none"',
        "run.updates=4000",
    ],
}
"""A machine has a fifth of the network's weights, and takes fewer updates. It sees pixels in units of their
spread, as the network does: its visible units have variance 1 there."""
QUICK = "digits8"
"""Of 8×8 pixels, in the package: what the small variant learns."""
GIBBS_STEPS = 2000
JUDGED = 1000
SHOWN = 64
SOFTER: Mapping[str, tuple[float, int]] = {
    "σ = 0.01, 30 steps": (0.01, 30),
    "σ = 0.01, 300 steps": (0.01, 300),
    "σ = 0.01, 1,000 steps": (0.01, 1000),
    "σ = 0.1, 300 steps": (0.1, 300),
}
"""The paper's samplers (B.6.1, C.2): ε = 1, noise σ, steps. The first column of its Figs. 12 and 13 and the
others, all from the same start."""


def row_name(data: str, kind: str) -> str:
    """The name of a row.

    Example:
        >>> row_name("mnist", "rbm")
        'mnist-rbm'
    """
    return f"{data}-{kind}"


ROWS = {
    row_name(data, kind): [f"data.name={data}", *changes] for data in DATA for kind, changes in KINDS.items()
}


def measure(model: Model, result: Assessment) -> dict[str, Any]:
    """How much nearer to unseen pictures than a Gaussian it is; what chains at its own temperature make of
    it: where they end, and the verdict."""
    gain, error = score_gain(model, Streams(0))
    return {
        "score_gain": gain,
        "score_gain_error": error,
        "sample_distance": result.sample_distance,
        "long_run_distance": result.long_run,
        "verdict": str(result.verdict.standing),
    }


def score_gain(model: Model, streams: Streams) -> tuple[float, float]:
    """By how much ½ E ‖s - s_data‖² falls from a Gaussian of the pixels' own means and spreads, where such
    a model starts, to the model: the difference of their losses of score matching on unseen pictures, with
    its standard error. What training minimises, up to a factor, judged without its critic."""
    train = model.data.sample(10 * JUDGED, streams["train"])
    mean, spread = train.mean(0), train.std(0)
    x = held_out(model.data).sample(JUDGED, streams["test"])

    def gaussian(at: Tensor) -> Tensor:
        return 0.5 * ((at - mean) / spread).square().sum(1)

    def losses(energy: Energy, temperature: float, name: str) -> Tensor:
        half, trace = score_matching_terms(
            energy, x, temperature, trace="rademacher", generator=streams[name]
        )
        return (half + trace).detach()

    gains = losses(gaussian, 1.0, "gaussian") - losses(model.energy, model.temperature, "model")
    return mean_with_error(gains.tolist())


def tempered_temperature(sigma: float, step: float) -> float:
    """The temperature at which x - ε∇E + σz is a Langevin step of exp(-E/T): σ² = 2εT.

    The paper's σ = 0.01 with ε = 1 so samples the model at 1/20,000 of its temperature: it looks for modes.

    Example:
        >>> round(1 / tempered_temperature(0.01, 1.0))
        20000
    """
    return sigma**2 / (2 * step)


def paper_samples(model: Model, sigma: float, num_steps: int, streams: Streams, n: int = SHOWN) -> Tensor:
    """Chains of the paper's tempered sampler (equation 19) from its uniform start: the same start and
    noise for every σ and length.

    The start is uniform over the pictures, that is, over brightness, as the data is.
    """
    pictures = model.pictures
    if pictures is None or not pictures.logit:
        raise InputError("the paper's sampler of pictures starts in logit space; set data.logit")
    start = torch.rand(n, pictures.dim, generator=streams["start"]).clamp(1e-4, 1 - 1e-4).logit()
    sampler = Langevin(1.0, model.temperature * tempered_temperature(sigma, 1.0))
    chains = run(
        sampler,
        model.energy,
        sampler.init(model.energy, start),
        num_steps=num_steps,
        generator=streams["chains"],
        engine=model.engine,
    )
    return chains.state.position


def draw(out: Path, config: Config, rows: Sequence[str]) -> None:
    """figure.png: data beside what each model generates (Figs. 9, 14); sampler.png: what the sampler's noise
    and length do to the pictures of one model (Figs. 12, 13)."""
    models = {name: load_model(out / name) for name in rows}
    present = [data for data in DATA if any(name.startswith(f"{data}-") for name in rows)]
    figure = Figure(figsize=(9.6, 3.4 * len(present)), layout="constrained")
    panels = figure.subplots(len(present), 1 + len(KINDS), squeeze=False)
    for line, data in zip(panels, present, strict=True):
        for axes in line:
            axes.axis("off")
        for axes, kind in zip(line[1:], KINDS, strict=True):
            model = models.get(row_name(data, kind))
            if model is None:
                continue
            _show(line[0], model, model.data.sample(SHOWN, Streams(0)["figure"]), data)
            words = "deep: 1,000 cold steps" if kind == "deep" else f"RBM: {GIBBS_STEPS:,} Gibbs steps"
            _show(axes, model, generated(model), words)
    figures.save(figure, out / "figure.png")
    deep = [name for name in rows if name.endswith("-deep")]
    if not deep:
        return
    figure = Figure(figsize=(3.2 * len(SOFTER), 3.4 * len(deep)), layout="constrained")
    for line, name in zip(figure.subplots(len(deep), len(SOFTER), squeeze=False), deep, strict=True):
        for axes, (words, (sigma, num_steps)) in zip(line, SOFTER.items(), strict=True):
            _show(axes, models[name], paper_samples(models[name], sigma, num_steps, Streams(0)), words)
    figures.save(figure, out / "sampler.png")


def generated(model: Model) -> Tensor:
    """As the paper draws its pictures: a machine's by Gibbs sampling, any other's by cold Langevin chains."""
    if isinstance(model.energy, RBMInUnits):
        streams = Streams(0)
        start = torch.randn(SHOWN, model.data.dim, generator=streams["start"])
        return model.energy.gibbs(start, GIBBS_STEPS, streams["chains"])
    return paper_samples(model, 0.01, 1000, Streams(0))


def _show(axes: Any, model: Model, x: Tensor, words: str) -> None:
    assert model.pictures is not None
    figures.draw_pictures(axes, model.pictures.brightness(x))
    axes.set_title(words, fontsize=10)


STEIN_IMAGES = Study(
    name="stein-images",
    about="MNIST and Fashion-MNIST in logit space by the learned Stein discrepancy: a deep energy and an RBM",
    recipe="stein-images",
    quick_recipe="stein-images-quick",
    rows=ROWS,
    quick_rows=(row_name(QUICK, "deep"),),
    metrics=(
        "score_gain",
        "score_gain_error",
        "sample_distance",
        "long_run_distance",
        "verdict",
        "ended",
        "seconds_training",
    ),
    measure=measure,
    draw=draw,
)
