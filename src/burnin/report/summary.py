"""The report of one run: its overview picture, its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from burnin.core import evaluate
from burnin.data import Rings
from burnin.diagnostics import Diagnosis
from burnin.diagnostics.words import findings
from burnin.evaluation import count_rings
from burnin.evaluation.assess import Assessment
from burnin.evaluation.model import Model
from burnin.report import figures
from burnin.report.check import check_figure, energy_traces
from burnin.report.page import Page, Picture
from burnin.report.training import diagnosis_figure, direct_figure, losses_figure, monitors_figure

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


def build_page(
    model: Model,
    result: Assessment,
    data: torch.Tensor,
    metrics: Sequence[Mapping[str, Any]],
    diagnosis: Diagnosis,
    config_text: str,
    title: str,
) -> Page:
    """Everything a reader of the run wants to know, on one page."""
    pictures = [
        Picture(
            "What was learned",
            "Density and samples should look alike, and both like the data. The energy along the chains "
            "should settle, at the level of the data, wherever they started.",
            overview_figure(model, result, data),
        )
    ]
    pictures.append(
        Picture(
            "What the verdict rests on",
            "Chains that follow the model's law stay where the data is and have the data's energies, "
            "wherever they started: short and long from noise, Metropolis-adjusted from data, cooled from "
            "afar.",
            check_figure(model, result, data),
        )
    )
    if diagnosis.arms:
        pictures += training_pictures(diagnosis, model.temperature)
    elif (direct := direct_figure(metrics)) is not None:
        caption = "Trained without chains: the objective's loss and its own numbers, smoothed."
        pictures.append(Picture("Training", caption, direct))
    return Page(
        title=title,
        subtitle=f"scheme {model.scheme}, {model.num_updates:,} updates, temperature {model.temperature:g}",
        verdict=result.verdict.lines,
        numbers=_numbers(model, result),
        pictures=pictures,
        events=[str(row["event"]) for row in metrics if "event" in row],
        config=config_text,
    )


def training_pictures(diagnosis: Diagnosis, temperature: float) -> list[Picture]:
    """How training went: the diagnostics with what they say, the losses, the β monitors."""
    pictures = [
        Picture(
            "Training",
            "d is the difference of mean energies of data and negatives, in units of T. It is the "
            "gradient of the loss with respect to the energy's magnitude: it falls and rises around 0. "
            "r is the mean norm of the energy's gradient along the chains.",
            diagnosis_figure(diagnosis, temperature),
            tuple(findings(diagnosis)),
        )
    ]
    if (losses := losses_figure(diagnosis)) is not None:
        caption = "How well each update knows its loss: a large spread makes training unsteady."
        pictures.append(Picture("Spread of the losses", caption, losses))
    if (monitors := monitors_figure(diagnosis)) is not None:
        caption = "What the β-weighted contrast does with its negatives; f is -E/T."
        pictures.append(Picture("β-weights", caption, monitors))
    return pictures


def write_report(page: Page, folder: Path) -> Path:
    """Writes report.html and report.png (the overview) into the run's folder."""
    figures.save(page.pictures[0].figure, folder / "report.png")
    page.write(folder / "report.html")
    return folder / "report.html"


def _numbers(model: Model, result: Assessment) -> list[tuple[str, str, str]]:
    unit = (
        "energy distance to fresh data, in units of the 95th percentile between two data sets (1 is perfect)"
    )
    rows = [
        ("sample distance", f"{result.sample_distance:.3g}", f"short chains from noise: {unit}"),
        ("… plain chain", f"{result.plain:.3g}", "from noise, at T throughout"),
        ("… annealed chain", f"{result.annealed:.3g}", "from noise, as configured for chains from noise"),
        ("… matched noise", f"{result.matched:.3g}", "from noise with the data's mean and variances"),
        ("long-run distance", f"{result.long_run:.3g}", "the same chains, much later"),
        ("data-run distance", f"{result.data_run:.3g}", "chains that started at data, much later"),
    ]
    if result.density_kl is not None:
        rows.append(
            ("density KL", f"{result.density_kl:.4g} nats", "KL(true ‖ model) on the grid of the picture")
        )
    if isinstance(model.data, Rings) and model.data.dim == 10:
        counts = count_rings(result.samples.position, model.data.radii)
        shares = " / ".join(f"{share:.3f}" for share in counts.shares)
        rows.append(("ring shares", shares, "of samples from noise, within 0.35 of each ring"))
        rows.append(("off the manifold", f"{counts.off_manifold:.3f}", "share of samples on no ring"))
    return rows


def _draw_energies(axes: Any, model: Model, result: Assessment, data: torch.Tensor) -> None:
    with torch.no_grad():
        of_data = evaluate(model.energy, data) / model.temperature
        of_samples = evaluate(model.energy, result.samples.position) / model.temperature
    figures.draw_histogram(axes, {"data": of_data, "samples": of_samples})
    axes.set_title("energies / T")
