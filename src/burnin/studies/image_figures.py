"""Figures of the natural-image study: the chains' ends, energies, the losses' spread (Figs. 3 to 6 and 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import safetensors.torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from burnin.assemble_data import build_data
from burnin.data import Pictures, clean, held_out
from burnin.report import figures
from burnin.settings import Config
from burnin.training import read_metrics

ACROSS = 6
KINDS: Mapping[str, str] = {
    "samples": "short, from noise",
    "long": "long, from noise",
    "from_data": "from data",
}
SMOOTHED = 51
"""Logged updates that a curve of the losses is a median of."""


def draw(out: Path, config: Config, rows: Sequence[str]) -> None:
    """figure.png: the chains' ends (Figs. 3, 4); energies.png: of long chains and data (Fig. 5) and along the
    chains (Fig. 9); losses.png: their standard deviation and signal-to-noise ratio (Fig. 6)."""
    pictures = clean(held_out(build_data(config)))
    assert isinstance(pictures, Pictures)
    firsts = [name for name in rows if "-s" not in name]
    held = {name: safetensors.torch.load_file(out / f"{name}.safetensors") for name in firsts}
    figures.save(_ends(pictures, held), out / "figure.png")
    figures.save(_energies(held, config.model.temperature), out / "energies.png")
    figures.save(_losses(out, firsts), out / "losses.png")


def _ends(pictures: Pictures, held: Mapping[str, Mapping[str, Tensor]]) -> Figure:
    figure = Figure(figsize=(2.3 * len(held), 2.4 * len(KINDS)), layout="constrained")
    panels = figure.subplots(len(KINDS), len(held), squeeze=False)
    for column, (name, tensors) in enumerate(held.items()):
        panels[0, column].set_title(name, fontsize=10)
        for line, (key, words) in zip(panels[:, column], KINDS.items(), strict=True):
            figures.draw_pictures(line, pictures.brightness(tensors[key][: ACROSS**2]), ACROSS)
            if column == 0:
                line.set_ylabel(words, fontsize=9)
    return figure


def _energies(held: Mapping[str, Mapping[str, Tensor]], temperature: float) -> Figure:
    figure = Figure(figsize=(2.6 * len(held), 4.8), layout="constrained")
    panels = figure.subplots(2, len(held), squeeze=False)
    for column, (name, tensors) in enumerate(held.items()):
        above, below = panels[:, column]
        data, long = (tensors[key].double() / temperature for key in ("energy_of_data", "energy_of_long"))
        _histogram(above, {"held-out data": data, "long chains": long})
        above.set_title(name, fontsize=10)
        step, energy = tensors["trace"].numpy()
        below.plot(
            np.maximum(step, 1), energy / temperature, color=figures.SAMPLES, label="long chains, mean"
        )
        below.axhline(float(data.mean()), color=figures.DATA, linestyle="--", label="held-out data, mean")
        below.set_xscale("log")
        below.set_xlabel("step", fontsize=8)
        for axes in (above, below):
            axes.tick_params(labelsize=7)
    panels[0, 0].legend(frameon=False, fontsize=7)
    panels[1, 0].legend(frameon=False, fontsize=7)
    panels[0, 0].set_ylabel("density of energy / T", fontsize=8)
    panels[1, 0].set_ylabel("energy / T", fontsize=8)
    return figure


def _histogram(axes: Axes, energies: Mapping[str, Tensor]) -> None:
    values = np.concatenate([x.numpy() for x in energies.values()])
    values = values[np.isfinite(values)]
    low, high = (float(np.quantile(values, share)) for share in (0.005, 0.995))
    bins = np.linspace(low, high if high > low else low + 1, 50)
    for (name, x), color in zip(energies.items(), (figures.DATA, figures.SAMPLES), strict=True):
        axes.hist(x.numpy(), bins=bins.tolist(), density=True, alpha=0.5, label=name, color=color)


def _losses(out: Path, rows: Sequence[str]) -> Figure:
    """By update, medians of neighbouring ones: a scheme's arms by themselves."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for index, name in enumerate(rows):
        logged = [row for row in read_metrics(out / name / "metrics.jsonl") if "event" not in row]
        arms = sorted({key.partition("/")[2] for row in logged for key in row if key.startswith("snr/")})
        for arm, style in zip(arms, ("-", "--", ":"), strict=False):
            label = name if len(arms) == 1 else f"{name}, {arm}"
            for axes, key in ((left, f"std/{arm}"), (right, f"snr/{arm}")):
                rows_with = [row for row in logged if key in row]
                step = np.array([row["step"] for row in rows_with])
                value = _smooth(np.abs(np.array([row[key] for row in rows_with], dtype=float)))
                axes.plot(step[: len(value)], value, style, color=f"C{index}", label=label, linewidth=1)
    left.set(title="standard deviation of the loss", yscale="log", xlabel="update")
    right.set(title="mean over standard deviation", yscale="log", xlabel="update")
    left.legend(frameon=False, fontsize=7)
    return figure


def _smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    width = min(SMOOTHED, max(1, len(values) // 4))
    if len(values) < 2 * width:
        return values
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(values, width), axis=1))
