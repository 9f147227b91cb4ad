"""A run that was trained without chains is judged, drawn and sampled like any other."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from burnin.assemble import load_model
from burnin.config import load_config
from burnin.core import Outcome
from burnin.drawing import Request, draw
from burnin.report.training import direct_panels
from burnin.reporting import report_run
from burnin.rng import Streams
from burnin.runs import diagnose_run, train_in
from burnin.terminal import live_numbers
from burnin.training import read_metrics
from tests.report.browser import Browser

RECIPE = """
title = "without chains"
[run]
updates = 30
batch_size = 32
tensorboard = false
[data]
name = "circles"
[model]
temperature = 0.5
width = 8
depth = 2
gaussian_factor = "learned"
[objective]
name = "nce"
[sampler]
num_steps = 10
step_size = 0.02
[sampler_from_noise]
num_steps = 20
[study]
samples = 60
distance_sets = 5
long_chains = 20
long_steps = 20
data_chains = 20
data_steps = 20
grid_points = 31
cooling_steps = 20
likelihood_particles = 8
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("without")
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    assert train_in(folder / "run", load_config(str(folder / "recipe.toml")), resume=False) is Outcome.OK
    return folder / "run"


def test_the_report_shows_the_objectives_own_numbers(run: Path, browser: Browser) -> None:
    logged = list(read_metrics(run / "metrics.jsonl"))
    answer = report_run(run, lambda *_: None)
    assert answer["goodness"]["rows"] == "1,000 fresh draws of the data"
    assert [one["of"] for one in answer["likelihood"]] == ["fresh data", "fresh data, by the truth"]
    text = (run / "report.html").read_text(encoding="utf-8")
    assert "Trained without chains" in text
    assert "scheme none (objective nce), 30 updates" in text
    assert browser.open(run / "report.html").faults() == []
    assert diagnose_run(run).arms == []
    panels = direct_panels(logged)
    assert [panel.title for panel in panels] == [
        "loss of the batch",
        "share of points told from noise",
        "log of the normaliser, as learned",
    ]
    shown = torch.tensor(panels[2].figure.axes[0].lines[0].get_ydata())
    assert shown.tolist() == [row["log_normaliser"] for row in logged]
    assert direct_panels([{"step": 1, "event": "nothing logged"}]) == ()


def test_samples_are_drawn_by_the_recipes_chains(run: Path, tmp_path: Path) -> None:
    model = load_model(run)
    assert model.own.num_steps == 20, "chains from noise are those that the recipe has for them"
    file = tmp_path / "samples.csv"
    assert draw(model, Request(7, file), Streams(0)["sample"], lambda *_: None) is Outcome.OK
    assert len(file.read_text(encoding="utf-8").splitlines()) == 8


def test_progress_shows_the_objectives_numbers() -> None:
    numbers = {"loss": 1.25, "learning_rate": 0.001, "accuracy": 0.7}
    assert live_numbers(numbers) == "loss 1.25  accuracy 0.7"
    arm = {"d/noise": 0.5, "r/noise": 2.0, "acceptance/noise": 0.75, "step_size/noise": 0.1}
    assert live_numbers(arm) == "noise: d +0.500 r 2 acc 0.75 step 0.1"
