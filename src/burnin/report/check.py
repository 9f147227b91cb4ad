"""The picture under a verdict: where the chains are, what energies they have, how they got there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from burnin.evaluation.assess import Assessment
from burnin.evaluation.model import Model
from burnin.evaluation.verdict import Seen
from burnin.report import figures
from burnin.samplers import Trace

SHOWN = 2000
BINS = 60


def check_figure(model: Model, result: Assessment, data: Tensor) -> Figure:
    """Above: data and the ends of each kind of chains. Below: their energies, and the energy by step.

    The law of the energies is what tells a density: chains that follow it have the data's energies
    (hybrid, Figs. 5 and 9).
    """
    evidence = result.evidence
    populations: dict[str, tuple[Tensor, Seen | None]] = {
        "data": (data, None),
        "short chains from noise": (result.samples.position, evidence.short),
        "long chains from noise": (result.long_sampled.position, evidence.long),
        "adjusted, from data": (result.stayed.position, evidence.stayed),
        "cooled from afar": (result.anywhere.position, evidence.anywhere),
    }
    figure = Figure(figsize=(13, 6.5), layout="constrained")
    rows: Any = figure.subfigures(2, 1)
    for axes, (name, (x, seen)) in zip(rows[0].subplots(1, 5), populations.items(), strict=True):
        if model.pictures is not None:
            figures.draw_pictures(axes, model.pictures.brightness(x[torch.isfinite(x).all(1)]))
        elif x.shape[1] == 1:
            axes.hist(x[torch.isfinite(x)].numpy(), bins=BINS, color="#b5367a")
            axes.set_xlim(data.min().item(), data.max().item())
            axes.set_yticks([])
        else:
            figures.draw_scatter(axes, x[torch.isfinite(x).all(1)][:SHOWN], figures.frame_around(data))
        told = "" if seen is None else f"\n{seen.distance:.3g} × chance"
        axes.set_title(name + told, fontsize=9)
    left, right = rows[1].subplots(1, 2)
    t = model.temperature
    _draw_energies(left, {name: values / t for name, values in result.energies.items()})
    left.set_title("energies / T of the data and at the chains' ends", fontsize=9)
    figures.draw_energy_traces(right, energy_traces(model, result), result.data_energy / t)
    right.set_title("mean energy along the chains", fontsize=9)
    return figure


def energy_traces(model: Model, result: Assessment) -> dict[str, Trace]:
    """The energy along each kind of chains, in units of T."""
    kinds = {
        "from noise": _joined(result.samples.result.trace, result.long_sampled.result.trace),
        "from data": result.data_sampled.result.trace,
        "adjusted, from data": result.stayed.result.trace,
        "cooled from afar": result.anywhere.result.trace,
    }
    t = model.temperature
    return {
        name: replace(trace, energy=[value / t for value in trace.energy]) for name, trace in kinds.items()
    }


def _draw_energies(axes: Axes, energies: Mapping[str, Tensor]) -> None:
    """Steps, not bars: five histograms over each other must stay readable. Far outliers are left out."""
    of_data = energies["data"].double()
    low, high = of_data.quantile(0.001).item(), of_data.quantile(0.999).item()
    room = 1.5 * max(high - low, 1e-6)
    bins = torch.linspace(low - room, high + room, BINS + 1)
    for index, (name, values) in enumerate(energies.items()):
        finite = values.double()[torch.isfinite(values)]
        shown = finite[(finite >= bins[0]) & (finite <= bins[-1])]
        outside = 1 - len(shown) / max(1, len(values))
        label = name if outside < 0.01 else f"{name} ({outside:.0%} outside)"
        weights = torch.full((len(shown),), 1 / len(values))
        filled = index == 0
        axes.hist(
            shown.numpy(),
            bins=bins.tolist(),
            weights=weights.numpy(),
            histtype="stepfilled" if filled else "step",
            color="0.5" if filled else f"C{index - 1}",
            alpha=0.4 if filled else 1.0,
            label=label,
        )
    axes.legend(frameon=False, fontsize=8)


def _joined(first: Trace, later: Trace) -> Trace:
    return Trace(
        first.iteration + later.iteration,
        first.energy + later.energy,
        first.gradient_norm + later.gradient_norm,
        first.acceptance + later.acceptance,
        first.step_size + later.step_size,
    )
