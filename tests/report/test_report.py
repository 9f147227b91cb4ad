"""The page escapes what came from data, and its pictures are drawn, not blank, without pyplot."""

from __future__ import annotations

import base64
import html
import io
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from burnin.data import Rings, Table, eight_gaussians
from burnin.diagnostics import diagnose
from burnin.energies import MLP, GaussianFactor
from burnin.evaluation.assess import Assessment, Effort, Units, assess
from burnin.evaluation.grid import PlaneGrid
from burnin.evaluation.model import Chain, Model
from burnin.report import Page, Picture, figures
from burnin.report.check import check_figure
from burnin.report.summary import build_page, overview_figure, write_report
from burnin.rng import Streams
from burnin.samplers import Langevin
from burnin.starts import FromNoise

EVIL = '<script>alert("x")</script>'
EFFORT = Effort(60, 5, 40, 20, 40, 20, 21, 20, 8)
METRICS = [
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


def judged(data: Rings | Table | object, dim: int) -> tuple[Model, Assessment]:
    net = MLP(dim, width=4, depth=1, generator=torch.Generator().manual_seed(0))
    model = Model(
        energy=GaussianFactor(net, torch.zeros(dim), torch.ones(dim), temperature=0.5).requires_grad_(False),
        temperature=0.5,
        data=data,  # type: ignore[arg-type]
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

    return model, assess(model, EFFORT, Units.fit(model, EFFORT, streams, silent), streams, silent)


def table(dim: int) -> Table:
    x = torch.randn(100, dim, generator=torch.Generator().manual_seed(0))
    return Table(x, tuple(f"{EVIL}{i}" for i in range(dim)))


def test_everything_is_escaped_and_inside_one_file(tmp_path: Path) -> None:
    figure = Figure(figsize=(4, 3))
    figure.subplots().plot([1, 2, 3])
    page = Page(
        title=EVIL,
        subtitle=EVIL,
        verdict=(EVIL, "second & <b>bold</b>", "third"),
        numbers=[(EVIL, EVIL, EVIL)],
        pictures=[Picture(EVIL + '" onload="', EVIL, figure, (EVIL,))],
        events=[EVIL],
        config=f'[data]\nfile = "{EVIL}"\n',
    )
    page.write(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script" not in text.lower()
    assert "<b>" not in text
    assert text.count("&lt;script&gt;") == 13
    assert '" onload="' not in text
    assert not re.findall(r'(?:src|href)="(?!data:image/png;base64,)', text)
    assert "http" not in text


def test_the_report_of_a_run_escapes_its_title_config_and_columns(tmp_path: Path) -> None:
    model, result = judged(table(3), 3)
    metrics = [*METRICS, {"step": 5, "event": EVIL}]
    page = build_page(model, result, table(3).values, metrics, diagnose(metrics), f"title = '{EVIL}'", EVIL)
    path = write_report(page, tmp_path)
    text = path.read_text(encoding="utf-8")
    assert "<script" not in text.lower()
    assert text.count("&lt;script&gt;") >= 4
    for line in result.verdict.lines:
        assert html.escape(line.split("(")[0].strip(), quote=True).replace("&#x27;", "&#39;") in text
    pngs = [base64.b64decode(match) for match in re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", text)]
    assert len(pngs) == 3
    for png in pngs:
        assert_drawn(png)
    assert_drawn((tmp_path / "report.png").read_bytes())


@pytest.mark.parametrize("kind", ["rings", "toy", "table", "plane", "line"])
def test_overviews_of_every_kind_of_data_are_drawn(kind: str) -> None:
    data, dim = {
        "rings": (Rings.paper(), 10),
        "toy": (eight_gaussians(), 2),
        "table": (table(4), 4),
        "plane": (table(2), 2),
        "line": (table(1), 1),
    }[kind]
    model, result = judged(data, dim)
    figure = overview_figure(model, result, model.data.sample(50, torch.Generator().manual_seed(0)))
    titles = [axes.get_title() for axes in figure.axes]
    assert len(titles) == 4
    assert all(titles)
    assert ("true density" in titles) == (kind in ("rings", "toy"))
    assert_drawn(png_of(figure))


@pytest.mark.parametrize(("data", "dim"), [(table(1), 1), (table(4), 4)])
def test_what_the_verdict_rests_on_is_drawn(data: Table, dim: int) -> None:
    model, result = judged(data, dim)
    figure = check_figure(model, result, data.values)
    assert len(figure.axes) == 7
    assert all(axes.get_title() for axes in figure.axes)
    assert_drawn(png_of(figure))


def test_the_numbers_of_rings_are_listed() -> None:
    model, result = judged(Rings.paper(), 10)
    page = build_page(model, result, torch.zeros(5, 10), METRICS, diagnose(METRICS), "", "rings")
    names = [name for name, _, _ in page.numbers]
    assert {"sample distance", "long-run distance", "density KL", "ring shares", "off the manifold"} <= set(
        names
    )
    assert all(value for _, value, _ in page.numbers)


def test_a_run_without_updates_has_no_training_picture() -> None:
    model, result = judged(table(2), 2)
    assert len(build_page(model, result, table(2).values, [], diagnose([]), "", "new").pictures) == 2


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
