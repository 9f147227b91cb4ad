"""Pictures in logit space without chains: the paper's cold sampler, and the figures."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from burnin.assemble import load_model
from burnin.config import load_config
from burnin.data import Pictures
from burnin.rng import Streams
from burnin.runs import train_in
from burnin.studies.stein_images import KINDS, ROWS, STEIN_IMAGES, draw, paper_samples, tempered_temperature

SMALL = [
    "data.side=6",
    "run.updates=3",
    "run.batch_size=20",
    "model.width=[8, 8]",
    "model.hidden=4",
    "objective.critic_width=8",
    "objective.critic_steps=1",
]


@pytest.fixture
def runs(tmp_path: Path, small_pictures: None) -> Path:
    out = tmp_path / "runs"
    for name in ("mnist-deep", "mnist-rbm"):
        train_in(out / name, load_config(STEIN_IMAGES.recipe, [*ROWS[name], *SMALL]), resume=False)
    return out


def test_cold_chains_take_the_papers_steps(runs: Path) -> None:
    """x - ε∇E + σz: the mean step is the gradient, its spread σ."""
    model = load_model(runs / "mnist-deep")
    assert isinstance(model.pictures, Pictures)
    start = paper_samples(model, 0.01, 0, Streams(0), n=200)
    end = paper_samples(model, 0.01, 1, Streams(0), n=200)
    x = start.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(model.energy(x).sum(), x)
    noise = end - start + gradient
    assert noise.std().item() == pytest.approx(0.01, rel=4 / (2 * noise.numel()) ** 0.5)
    assert abs(noise.mean().item()) < 4 * 0.01 / noise.numel() ** 0.5
    assert tempered_temperature(0.1, 2.0) == pytest.approx(0.0025)


def test_figures_show_every_model(runs: Path) -> None:
    assert {name.split("-")[-1] for name in ROWS} == set(KINDS)
    draw(runs, load_config(STEIN_IMAGES.recipe, SMALL), ["mnist-deep", "mnist-rbm"])
    assert (runs / "figure.png").stat().st_size > 5000
    assert (runs / "sampler.png").stat().st_size > 5000
