"""Energies along chains, with their spread, beside those of data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from burnin.evaluation.energy_bands import EnergyBand
from burnin.report import figures

COLORS = {"from noise": figures.SAMPLES, "from data": figures.DATA}
GREY = "0.45"
BINS = 40


def energies_figure(bands: Mapping[str, EnergyBand], of_data: Tensor, own_steps: int | None = None) -> Figure:
    """Energies by step with their quantiles, and where they end, beside energies of data.

    Arguments:
        bands: for each kind of chains, its energies over T.
        of_data: energies over T of data that was held out, (n,).
        own_steps: how many steps make a sample of the model; marked by a line.
    """
    figure = Figure(figsize=(9.4, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.4, 1))
    if own_steps:
        left.axvline(own_steps, color=GREY, linestyle="--", linewidth=1, label="steps of a sample")
    draw_bands(left, bands, of_data)
    draw_ends(right, bands, of_data)
    return figure


def draw_bands(axes: Axes, bands: Mapping[str, EnergyBand], of_data: Tensor) -> None:
    """The mean as a line, the middle half and nine tenths of the chains as shades; data's likewise."""
    quantiles = np.quantile(of_data.numpy(), (0.05, 0.5, 0.95))
    axes.axhspan(quantiles[0], quantiles[2], color=GREY, alpha=0.15, linewidth=0)
    axes.axhline(quantiles[1], color=GREY, linestyle=":", label="data, median and 90%")
    seen = [quantiles[0], quantiles[2]]
    for index, (name, band) in enumerate(bands.items()):
        color = COLORS.get(name, f"C{index}")
        # Step 0 has no place on a logarithmic axis: it is drawn at a half.
        step, spread = np.maximum(np.array(band.step, float), 0.5), np.array(band.quantiles)
        axes.fill_between(step, spread[:, 0], spread[:, 4], color=color, alpha=0.15, linewidth=0)
        axes.fill_between(step, spread[:, 1], spread[:, 3], color=color, alpha=0.25, linewidth=0)
        axes.plot(step, band.mean, color=color, label=f"chains {name}, mean")
        seen += [float(spread.min()), float(spread.max())]
    axes.set_xscale("log")
    if max(seen) - min(seen) > 50 * max(1e-12, quantiles[2] - quantiles[0]):
        axes.set_yscale("symlog", linthresh=max(1.0, float(np.abs(quantiles).max())))
    axes.set_xlabel("step (the start is drawn at ½)")
    axes.set_ylabel("energy / T")
    axes.legend(frameon=False, fontsize=8)


def draw_ends(axes: Axes, bands: Mapping[str, EnergyBand], of_data: Tensor) -> None:
    """Histograms of the energies at the chains' ends and of data, in the same bins, as shares."""
    ends = {f"chains {name}, at the end": band.ends.numpy() for name, band in bands.items()}
    both = np.concatenate([of_data.numpy(), *ends.values()])
    both = both[np.isfinite(both)]
    low, high = np.quantile(both, (0.002, 0.998))
    bins = np.linspace(low, high if high > low else low + 1, BINS + 1)
    data = of_data.numpy()
    axes.hist(
        data,
        bins=bins.tolist(),
        weights=np.full(len(data), 1 / len(data)),
        color=GREY,
        alpha=0.4,
        label="data",
    )
    for index, (name, values) in enumerate(ends.items()):
        color = list(COLORS.values())[index % len(COLORS)]
        weights = np.full(len(values), 1 / len(values))
        axes.hist(values, bins=bins.tolist(), weights=weights, histtype="step", color=color, label=name)
    axes.set_xlabel("energy / T")
    axes.set_ylabel("share")
    axes.locator_params(axis="x", nbins=4)
    axes.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0.2)
