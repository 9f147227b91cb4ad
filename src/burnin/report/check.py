"""The picture under a verdict: where the chains are, what energies they have, how they got there."""

from __future__ import annotations

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
from burnin.report.drawn import Panel
from burnin.samplers import Trace

SHOWN = 2000
BINS = 60


def check_figure(model: Model, result: Assessment, data: Tensor) -> Figure:
    """Above: data and the ends of each kind of chains. Below: their energies, and the energy by step.

    The law of the energies is what tells a density: chains that follow it have the data's energies
    (hybrid, Figs. 5 and 9).
    """
    figure = Figure(figsize=(13, 6.5), layout="constrained")
    rows: Any = figure.subfigures(2, 1)
    for axes, (name, (x, seen)) in zip(
        rows[0].subplots(1, 5), _populations(result, data).items(), strict=True
    ):
        _draw_population(axes, model, x, data)
        told = "" if seen is None else f"\n{seen.distance:.3g} × chance"
        axes.set_title(name + told, fontsize=9)
    left, right = rows[1].subplots(1, 2)
    _draw_energies(left, result, model.temperature)
    left.set_title("energies / T of the data and at the chains' ends", fontsize=9)
    figures.draw_energy_traces(right, energy_traces(model, result), result.data_energy / model.temperature)
    right.set_title("mean energy along the chains", fontsize=9)
    return figure


def population_panels(model: Model, result: Assessment, data: Tensor) -> tuple[Panel, ...]:
    """Data and the ends of each kind of chains, one by one."""
    panels = []
    what = "pictures" if model.pictures is not None else "dots in the plane of the first two coordinates"
    what = "histogram of the values" if data.shape[1] == 1 else what
    for name, (x, seen) in _populations(result, data).items():
        figure, axes = figures.square(2.6)
        _draw_population(axes, model, x, data)
        told = "" if seen is None else f"; {seen.distance:.3g} times as far from the data as chance gives"
        title = name if seen is None else f"{name}, {seen.distance:.3g} × chance"
        panels.append(Panel(figure, f"{name}: {what}{told}.", title))
    return tuple(panels)


def energy_panels(model: Model, result: Assessment) -> tuple[Panel, ...]:
    """The mean energy along each kind of chains, and the energies at their ends beside the data's."""
    t = model.temperature
    traces = energy_traces(model, result)
    along, axes = figures.plain(4.8, 3.4)
    figures.draw_energy_traces(axes, traces, result.data_energy / t)
    ends = ", ".join(f"{name} {trace.energy[-1]:.4g}" for name, trace in traces.items() if trace.energy)
    told = (
        f"Curves of the mean energy over T by step. They end at: {ends}; data: {result.data_energy / t:.4g}."
    )
    law, axes = figures.plain(4.8, 3.4)
    _draw_energies(axes, result, t)
    axes.set_xlabel("energy / T")
    medians = ", ".join(
        f"{name} {values.median().item() / t:.4g}" for name, values in result.energies.items()
    )
    return (
        Panel(along, told, "mean energy along the chains"),
        Panel(law, f"Histograms of energies over T; medians: {medians}.", "energies at the chains' ends"),
    )


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


def _populations(result: Assessment, data: Tensor) -> dict[str, tuple[Tensor, Seen | None]]:
    """Where the data is and where each kind of chains ends, with how far it is from the data."""
    evidence = result.evidence
    return {
        "data": (data, None),
        "short chains from noise": (result.samples.position, evidence.short),
        "long chains from noise": (result.long_sampled.position, evidence.long),
        "adjusted, from data": (result.stayed.position, evidence.stayed),
        "cooled from afar": (result.anywhere.position, evidence.anywhere),
    }


def _draw_population(axes: Axes, model: Model, x: Tensor, data: Tensor) -> None:
    color = figures.DATA if x is data else figures.SAMPLES
    if model.pictures is not None:
        figures.draw_pictures(axes, model.pictures.brightness(x[torch.isfinite(x).all(1)]))
    elif x.shape[1] == 1:
        axes.hist(x[torch.isfinite(x)].numpy(), bins=BINS, color=color)
        axes.set_xlim(data.min().item(), data.max().item())
        axes.set_yticks([])
    else:
        frame = figures.frame_around(data)
        figures.draw_scatter(axes, x[torch.isfinite(x).all(1)][:SHOWN], frame, color)


def _draw_energies(axes: Axes, result: Assessment, temperature: float) -> None:
    """Steps, not bars: five histograms over each other must stay readable. Far outliers are left out."""
    energies = {name: values / temperature for name, values in result.energies.items()}
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
    seen = torch.cat([values[torch.isfinite(values)].double() for values in energies.values()])
    axes.set_xlim(max(low - room, seen.min().item()), min(high + room, seen.quantile(0.999).item()))
    figures.key_of(axes)


def _joined(first: Trace, later: Trace) -> Trace:
    return Trace(
        first.iteration + later.iteration,
        first.energy + later.energy,
        first.gradient_norm + later.gradient_norm,
        first.acceptance + later.acceptance,
        first.step_size + later.step_size,
    )
