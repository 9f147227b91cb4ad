"""Figures of the natural-image study: Figs. 3 to 9 of the hybrid paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import safetensors.torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator
from numpy.typing import NDArray
from torch import Tensor

from burnin.assemble_data import build_data
from burnin.data import Pictures, clean, held_out
from burnin.data.matching import BRIGHTEST
from burnin.report import figures
from burnin.samplers import TargetAcceptance
from burnin.settings import Config
from burnin.studies.image_chains import FILE
from burnin.training import read_metrics

ACROSS = 6
KINDS: Mapping[str, str] = {
    "samples": "short, from noise",
    "long": "long, from noise",
    "from_data": "from data",
}
HYBRID = "hybrid-25"
"""The row that stands for the hybrids."""
TARGET = TargetAcceptance.hybrid_paper(until=None).target
SMOOTHED = 51
"""Logged updates that a curve of the losses is a median of."""


def draw(out: Path, config: Config, rows: Sequence[str]) -> None:
    """figure.png: the chains' ends (Figs. 3, 4); energies.png: of long chains and data (Fig. 5) and along the
    chains (Fig. 9); losses.png: their standard deviation and signal-to-noise ratio (Fig. 6); diversity.png:
    the bank, samples from it, and samples beside their nearest training pictures (Fig. 7); adjusted.png: the
    acceptance of Metropolis-adjusted chains, and their ends (Fig. 8)."""
    pictures = clean(held_out(build_data(config)))
    assert isinstance(pictures, Pictures)
    firsts = [name for name in rows if "-s" not in name]
    held = {name: safetensors.torch.load_file(out / f"{name}.safetensors") for name in firsts}
    figures.save(_ends(pictures, held), out / "figure.png")
    figures.save(_energies(held, config.model.temperature), out / "energies.png")
    figures.save(_losses(out, firsts), out / "losses.png")
    looked = {name: safetensors.torch.load_file(out / name / FILE) for name in firsts}
    figures.save(_diversity(pictures, looked), out / "diversity.png")
    adjusted = [name for name, tensors in looked.items() if "adjusted" in tensors][:1]
    for name in adjusted:
        figures.save(_adjusted(pictures, looked[name], name), out / "adjusted.png")


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
            axes.tick_params(which="both", labelsize=7)
    panels[0, 0].legend(frameon=False, fontsize=7)
    panels[1, 0].legend(frameon=False, fontsize=7)
    panels[0, 0].set_ylabel("density of energy / T", fontsize=8)
    panels[1, 0].set_ylabel("energy / T", fontsize=8)
    return figure


def _histogram(axes: Axes, energies: Mapping[str, Tensor]) -> None:
    # Of each by itself: there are far fewer chains than data, and they may be elsewhere.
    finite = [x[x.isfinite()].numpy() for x in energies.values()]
    ranges = np.array([np.quantile(x, (0.005, 0.995)) for x in finite if len(x)])
    low, high = float(ranges[:, 0].min()), float(ranges[:, 1].max())
    bins = np.linspace(low, high if high > low else low + 1, 50)
    for name, x, color in zip(energies, finite, (figures.DATA, figures.SAMPLES), strict=True):
        axes.hist(x, bins=bins.tolist(), density=True, alpha=0.5, label=name, color=color)


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


def _diversity(pictures: Pictures, looked: Mapping[str, Mapping[str, Tensor]]) -> Figure:
    """Fig. 7: A and B of the last row with a bank, the refreshed one; C of a hybrid, or of what there is."""
    banks = [name for name, tensors in looked.items() if "bank" in tensors][-1:]
    hybrids = [name for name in (HYBRID, *looked) if name in looked and name.startswith("hybrid")]
    shown = (hybrids or list(looked))[0]
    widths = [ACROSS, ACROSS] * len(banks) + [1, 3]
    figure = Figure(figsize=(0.5 * sum(widths) + 1, 3.6), layout=ConstrainedLayoutEngine(h_pad=0.1))
    panels = figure.subplots(1, len(widths), squeeze=False, width_ratios=widths)[0]
    for name in banks:
        words = {"bank": "A  bank", "from_bank": "B  from it"}
        for axes, (key, said) in zip(panels[:2], words.items(), strict=True):
            figures.draw_pictures(axes, pictures.brightness(looked[name][key]), ACROSS)
            axes.set_title(f"{said}, {name}", fontsize=10)
    samples, neighbours = (looked[shown][key].float() / BRIGHTEST for key in ("drawn", "nearest"))
    figures.draw_pictures(panels[-2], samples, 1, ACROSS)
    figures.draw_pictures(panels[-1], neighbours[:ACROSS].flatten(0, 1), neighbours.shape[1], ACROSS)
    panels[-2].set_title("C", fontsize=10)
    panels[-1].set_title(f"nearest to {shown}'s", fontsize=10)
    return figure


def _adjusted(pictures: Pictures, tensors: Mapping[str, Tensor], name: str) -> Figure:
    """Fig. 8: acceptance and step by step number, and where the chains are at the end."""
    step, acceptance, size = tensors["adjusted_trace"].numpy()
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.6, 1])
    left.axhline(TARGET, color="0.4", linestyle="--", linewidth=1, label=f"target, {TARGET:g}")
    left.plot(step, acceptance, color=figures.SAMPLES, label="acceptance", linewidth=1)
    left.set(xlabel="step", ylabel="acceptance", ylim=(0, 1), xlim=(0, step[-1]))
    sizes = left.twinx()
    sizes.plot(step, size, color=figures.DATA, linewidth=1, label="step size")
    low, high = float(size.min()), float(size.max())
    sizes.set(yscale="log", ylabel="step size", ylim=(low / 1.1, 1.5 * high**2 / low))  # below the acceptance
    sizes.yaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    sizes.yaxis.set_major_formatter("{x:g}")
    sizes.yaxis.set_minor_formatter("{x:g}")
    sizes.tick_params(which="both", labelsize=8)
    lines = [*left.get_lines(), *sizes.get_lines()]
    left.legend(handles=lines, frameon=False, fontsize=8, loc="upper right")
    left.set_title(f"A  {name}, Metropolis-adjusted", fontsize=10)
    figures.draw_pictures(right, pictures.brightness(tensors["adjusted"]), ACROSS)
    right.set_title(f"B  after {int(step[-1]):,} steps", fontsize=10)
    return figure


def _smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    width = min(SMOOTHED, max(1, len(values) // 4))
    if len(values) < 2 * width:
        return values
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(values, width), axis=1))
