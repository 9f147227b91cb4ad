"""Pictures in logit space without chains: the paper's cold sampler, and the figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from burnin.assemble import load_model
from burnin.config import load_config
from burnin.data import Pictures, held_out
from burnin.rng import Streams
from burnin.runs import train_in
from burnin.studies.stein_images import (
    KINDS,
    ROWS,
    STEIN_IMAGES,
    draw,
    paper_samples,
    score_gain,
    tempered_temperature,
)

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


class Wide(torch.nn.Module):
    def __init__(self, mean: Tensor, spread: Tensor) -> None:
        super().__init__()
        self.mean, self.spread = mean, spread

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * ((x - self.mean) / self.spread).square().sum(1)


def test_the_gain_of_a_gaussian_is_what_its_moments_say(runs: Path) -> None:
    """A Gaussian twice as wide is ½ Σ (1/σ² - 1/4σ²)² σ² = Σ 9/32σ² worse than the one of the moments."""
    model = load_model(runs / "mnist-deep")
    train = model.data.sample(10_000, Streams(0)["train"])
    mean, spread = train.mean(0), train.std(0)
    same, wide = (replace(model, energy=Wide(mean, times * spread), temperature=1.0) for times in (1, 2))
    assert score_gain(same, Streams(0)) == (0.0, 0.0)
    gain, error = score_gain(wide, Streams(0))
    x = held_out(model.data).sample(1000, Streams(0)["test"])
    squares = ((x - mean) / spread).square().mean(0)  # of the pictures that are judged
    wanted = (-(0.5 - 1 / 32) * squares + 0.75) / spread.square()
    assert gain == pytest.approx(-wanted.sum().item(), rel=1e-3)
    assert error > 0
