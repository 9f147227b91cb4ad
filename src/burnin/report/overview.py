"""The picture of a run at a glance: true density, model density, samples, energy along the chains."""

from __future__ import annotations

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from burnin.core import evaluate
from burnin.evaluation.assess import Assessment
from burnin.evaluation.model import Model
from burnin.report import figures
from burnin.report.check import energy_traces

SHOWN = 4000


def overview_figure(model: Model, result: Assessment, data: torch.Tensor) -> Figure:
    """True density, model density, samples from noise, energy along the chains: what decides, at a glance.

    Where the density cannot be drawn, the data and histograms of energies take its place.
    """
    figure = Figure(figsize=(13, 3.6), layout="constrained")
    first, second, third, fourth = figure.subplots(1, 4)
    samples = result.samples.position
    if result.grid is not None and result.log_truth is not None and result.log_model is not None:
        half, truth = result.grid.half_width, result.log_truth.exp()
        top = float(truth.max())
        figures.draw_density(first, truth, result.grid, top)
        figures.draw_density(second, result.log_model.exp(), result.grid, top)
        first.set_title("true density")
        second.set_title(f"model density, KL {result.density_kl:.3g} nats")
        figures.draw_scatter(third, samples[:SHOWN], ((-half, half), (-half, half)))
    else:
        if model.pictures is not None:
            figures.draw_pictures(first, model.pictures.brightness(data))
            figures.draw_pictures(third, model.pictures.brightness(samples))
            first.set_title("data")
        elif data.shape[1] == 1:
            figures.draw_histogram(first, {"data": data})
            figures.draw_histogram(third, {"data": data, "samples": samples})
            first.set_title("data")
        else:
            frame = figures.frame_around(data)
            figures.draw_scatter(first, data[:SHOWN], frame)
            figures.draw_scatter(third, samples[:SHOWN], frame)
            first.set_title("data, first two coordinates")
        _draw_energies(second, model, result, data)
    third.set_title(f"samples from noise, {result.sample_distance:.3g} × chance")
    figures.draw_energy_traces(fourth, energy_traces(model, result), result.data_energy / model.temperature)
    fourth.set_title("energy along chains")
    for axes in (first, second, third, fourth):
        axes.title.set_fontsize(10)
    return figure


def _draw_energies(axes: Axes, model: Model, result: Assessment, data: torch.Tensor) -> None:
    with torch.no_grad():
        of_data = evaluate(model.energy, data) / model.temperature
        of_samples = evaluate(model.energy, result.samples.position) / model.temperature
    figures.draw_histogram(axes, {"data": of_data, "samples": of_samples})
    axes.set_title("energies / T")
