"""The page escapes what came from data, and its pictures are drawn, not blank, without pyplot."""

from __future__ import annotations

import functools
import html
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from burnin.core import Density
from burnin.data import Rings, Table, eight_gaussians
from burnin.diagnostics import diagnose
from burnin.energies import MLP, GaussianFactor
from burnin.evaluation.assess import Assessment, Effort, Units, assess
from burnin.evaluation.goodness import fit_test
from burnin.evaluation.grid import PlaneGrid
from burnin.evaluation.model import Chain, Model
from burnin.report import Page, figures
from burnin.report.check import check_figure
from burnin.report.cost import Cost
from burnin.report.drawn import Panel
from burnin.report.overview import overview_figure
from burnin.report.page import (
    Answer,
    Code,
    Explorer,
    Facts,
    Headline,
    Listing,
    Notes,
    Panels,
    Section,
    digest,
)
from burnin.report.summary import Material, build_page, numbers, training_blocks, write_report
from burnin.reporting import likelihoods, score_data
from burnin.rng import Streams
from burnin.samplers import Langevin
from burnin.starts import FromNoise

EVIL = '<script>alert("x")</script>'
EFFORT = Effort(60, 5, 40, 20, 40, 20, 21, 20, 8)
KINDS = ["rings", "toy", "table", "plane", "line"]
SIZES = {"table": 4, "plane": 2, "line": 1}
METRICS: list[dict[str, Any]] = [
    {"step": i, "loss": 0.1, "d/noise": 0.1 * (-1) ** i, "r/noise": 1.0 + i, "seconds": 0.1}
    for i in range(1, 60)
]


def pixels(png: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    image = matplotlib.image.imread(io.BytesIO(png), format="png")
    return np.asarray(image, dtype=np.float32)[..., :3]


def assert_drawn(png: bytes, least: float = 0.03) -> None:
    image = pixels(png)
    assert min(image.shape[:2]) > 100
    assert image.std() > least


def png_of(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=60)
    return buffer.getvalue()


@functools.cache
def judged(kind: str) -> tuple[Model, Assessment]:
    """A small untrained model of this kind of data, and what is measured of it."""
    known: dict[str, Density] = {"rings": Rings.paper(), "toy": eight_gaussians()}
    data = known[kind] if kind in known else table(SIZES[kind])
    dim = data.dim
    net = MLP(dim, width=4, depth=1, generator=torch.Generator().manual_seed(0))
    model = Model(
        energy=GaussianFactor(net, torch.zeros(dim), torch.ones(dim), temperature=0.5).requires_grad_(False),
        temperature=0.5,
        data=data,
        noise=FromNoise(),
        plain=Chain(Langevin(0.05, 0.5), 15),
        annealed=Chain(Langevin(0.05, 0.5), 15),
        trained_from_noise=True,
        scale=None,
        scheme=EVIL,
        num_updates=3,
    )
    streams = Streams(0)

    def silent(what: str, done: int, total: int) -> None:
        pass

    effort = replace(EFFORT, likelihood_particles=0) if kind == "rings" else EFFORT  # it would take seconds
    return model, assess(model, effort, Units.fit(model, effort, streams, silent), streams, silent)


def table(dim: int) -> Table:
    x = torch.randn(100, dim, generator=torch.Generator().manual_seed(0))
    return Table(x, tuple(f"{EVIL}{i}" for i in range(dim)))


def material(model: Model, result: Assessment, metrics: list[dict[str, Any]] | None = None) -> Material:
    """What a report of this model is made from, as `burnin report` gathers it from a folder."""
    generator, rows = torch.Generator().manual_seed(0), METRICS if metrics is None else metrics
    points, shown, scored = score_data(model, result, model.data, None, generator)
    return Material(
        title=EVIL,
        config=f"title = '{EVIL}'",
        model=model,
        result=result,
        points=points,
        shown=shown,
        scored=scored,
        fit_test=fit_test(model, model.data, generator),
        likelihoods=likelihoods(model, result, None, points),
        metrics=rows,
        diagnosis=diagnose(rows),
        cost=Cost(3, 3, 1.5, {"judging": 0.5}, {"machine": EVIL, "command": EVIL}, {}, 0),
    )


def scripts(text: str) -> list[str]:
    return re.findall(r"<script[^>]*>(.*?)</script>", text, re.S | re.I)


def test_everything_is_escaped_and_inside_one_file(tmp_path: Path) -> None:
    figure = Figure(figsize=(4, 3))
    figure.subplots().plot([1, 2, 3])
    blocks = (
        Panels((Panel(figure, EVIL + '" onload="', EVIL),), EVIL, title=EVIL),
        Facts(((EVIL, EVIL, EVIL),)),
        Notes((EVIL,)),
        Code(EVIL, EVIL),
        Listing(EVIL, (EVIL,), ((EVIL,), (1.5,))),
        Explorer({"columns": [{"name": EVIL}], "series": []}, EVIL, EVIL),
    )
    page = Page(
        title=EVIL,
        subtitle=EVIL,
        verdict=EVIL,
        tone="good",
        meaning=EVIL,
        answers=(Answer(EVIL, EVIL, EVIL, "poor"),),
        headlines=(Headline(EVIL, EVIL, EVIL),),
        sections=(Section("part", EVIL, EVIL, blocks),),
        overview=figure,
    )
    page.write(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert EVIL not in text
    assert text.count("&lt;script&gt;") >= 25
    assert '" onload="' not in text
    data, own = scripts(text)
    assert json.loads(data)["columns"][0]["name"] == EVIL
    # The browser runs the page's own script and no other.
    assert f"script-src '{digest(own)}'" in text
    assert not re.findall(r'(?:src|href)="(?!data:|#)', text)
    assert "http" not in text.replace("http-equiv", "")


def test_the_report_of_a_run_escapes_its_title_config_and_columns(tmp_path: Path) -> None:
    model, result = judged("table")
    path = write_report(build_page(material(model, result, [*METRICS, {"step": 5, "event": EVIL}])), tmp_path)
    text = path.read_text(encoding="utf-8")
    assert EVIL not in text
    assert len(scripts(text)) == 2
    assert text.count("&lt;script&gt;") >= 10
    assert html.escape(str(result.verdict.standing)).capitalize() in text
    assert_drawn((tmp_path / "report.png").read_bytes())


@pytest.mark.parametrize("kind", KINDS)
def test_every_part_is_there_in_its_order(kind: str) -> None:
    m = material(*judged(kind))
    page = build_page(m)
    parts = ["samples", "density", "energy", "outliers", "diagnostics", "goodness", "likelihood", "cost"]
    assert [section.anchor for section in page.sections] == parts
    assert all(section.blocks or section.lead for section in page.sections)
    assert [answer.answer for answer in page.answers if answer.answer not in ("yes", "no", "unknown")] == []
    assert len(page.answers) == 4
    panels = [
        panel
        for section in page.sections
        for block in section.blocks
        if isinstance(block, Panels)
        for panel in block.panels
    ]
    assert len(panels) >= 13
    assert all(len(panel.alt) >= 15 for panel in panels)
    likelihood, fit, samples, training = page.headlines
    assert fit.value.startswith("p = ")
    assert samples.value == f"{m.result.sample_distance:.3g} × chance"
    assert training.value == "1.5 s"
    assert ("nats" in likelihood.value) == bool(m.likelihoods)


@pytest.mark.parametrize("kind", KINDS)
def test_overviews_of_every_kind_of_data_are_drawn(kind: str) -> None:
    model, result = judged(kind)
    figure = overview_figure(model, result, model.data.sample(50, torch.Generator().manual_seed(0)))
    titles = [axes.get_title() for axes in figure.axes]
    assert len(titles) == 4
    assert all(titles)
    assert ("true density" in titles) == (kind in ("rings", "toy"))
    assert_drawn(png_of(figure))


@pytest.mark.parametrize("kind", ["line", "table"])
def test_what_the_verdict_rests_on_is_drawn(kind: str) -> None:
    model, result = judged(kind)
    figure = check_figure(model, result, table(SIZES[kind]).values)
    assert len(figure.axes) == 7
    assert all(axes.get_title() for axes in figure.axes)
    assert_drawn(png_of(figure))


def test_the_numbers_of_rings_are_listed() -> None:
    rows = numbers(*judged("rings"))
    names = [name for name, _, _ in rows]
    assert {"sample distance", "long-run distance", "density KL", "ring shares", "R-hat"} <= set(names)
    assert all(value for _, value, _ in rows)


def test_a_run_without_updates_has_no_training_picture() -> None:
    m = material(*judged("plane"), [])
    titles = [
        block.title for block in build_page(m).section("diagnostics").blocks if isinstance(block, Panels)
    ]
    assert titles == ["What the verdict rests on"]
    assert training_blocks(m.diagnosis, 1.0, []) == []


def test_kernel_density_is_a_density_at_the_right_place() -> None:
    grid = PlaneGrid(2.0, 41, 3)
    density = figures.kernel_density(torch.tensor([[1.0, -0.5, 9.0]]), grid)
    assert density.sum().item() == pytest.approx(1, abs=1e-5)
    assert grid.positions()[density.argmax(), :2].tolist() == pytest.approx([1.0, -0.5], abs=1e-6)


def test_a_density_is_drawn_with_x_to_the_right_and_y_up() -> None:
    grid = PlaneGrid(1.0, 3, 2)
    density = torch.zeros(9)
    density[6] = 1.0  # x = 1, y = -1
    axes = Figure().subplots()
    figures.draw_density(axes, density, grid)
    image = np.asarray(axes.images[0].get_array())
    assert image[0, 2] == 1.0
    assert axes.images[0].origin == "lower"


def test_fig_2_has_two_rows_and_a_column_for_data_and_each_scheme(tmp_path: Path) -> None:
    grid = PlaneGrid(4.0, 41, 10)
    rings = Rings.paper()
    truth, data = grid.log_truth(rings).exp(), rings.sample(300, torch.Generator().manual_seed(0))
    columns = dict.fromkeys(("data", "noise", "persistent", "refresh", "hybrid"), (data, truth))
    figure = figures.schemes_figure(truth, data, columns, grid)
    assert len(figure.axes) == 12
    tops = {axes.images[0].get_clim()[1] for axes in figure.axes}
    assert len(tops) == 2  # one colour scale for each row
    figures.save(figure, tmp_path / "new" / "figure.png")
    assert_drawn((tmp_path / "new" / "figure.png").read_bytes())


def test_figures_need_no_pyplot() -> None:
    code = """
import sys, torch
from burnin.diagnostics import diagnose
from burnin.report import summary, training
figure = training.diagnosis_figure(diagnose([{"step": 1, "loss": 0.0, "d/a": 0.1, "r/a": 1.0}]), 1.0)
import io
figure.savefig(io.BytesIO(), format="png")
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
