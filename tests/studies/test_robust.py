"""The robust toys: rows that are valid runs, a table over seeds, figures like the paper's."""

from __future__ import annotations

from pathlib import Path

import pytest
import safetensors.torch
import torch

from burnin.assemble_chains import build_arms
from burnin.config import load_config
from burnin.data import make_density
from burnin.evaluation.assess import plane_of
from burnin.rng import Streams
from burnin.samplers import Langevin
from burnin.studies.robust import BETAS, NAME, ROBUST_TOY, draw, row_name, summary


def test_the_rows_are_the_papers() -> None:
    rows = list(ROBUST_TOY.rows)
    assert len(rows) == len(set(rows)) == 190
    assert all(NAME.fullmatch(name) for name in rows)
    for data in ("mixture", "circles"):
        for seed in range(3):
            assert {row_name(data, "default", "default", beta, seed) for beta in BETAS} <= set(rows)
    assert set(ROBUST_TOY.quick_rows) <= set(rows)


@pytest.mark.parametrize(
    ("row", "num_steps", "num_chains", "step_size"),
    [
        ("mixture-default-default-b0.1-s0", 20, None, 1.0),
        ("circles-shifted-default-b0.9-s0", 20, None, 10.0),
        ("mixture-restricted-no_positive-b0.5-s2", 3, 3, 1.0),
        ("circles-degenerate-true_objective-b0.9-s0", 0, 1, 1.0),
    ],
)
def test_what_a_row_means(row: str, num_steps: int, num_chains: int | None, step_size: float) -> None:
    config = load_config(ROBUST_TOY.recipe, ROBUST_TOY.rows[row])
    (arm,) = build_arms(config, 2, Streams(0)["bank"])
    match = NAME.fullmatch(row)
    assert match is not None
    assert arm.beta_at(0) == float(match["beta"])
    assert arm.variant == match["variant"]
    assert config.run.seed == int(match["seed"])
    assert (arm.num_steps, arm.num_chains) == (num_steps, num_chains)
    assert isinstance(arm.sampler, Langevin)
    assert arm.sampler.step_size == step_size


def test_the_table_averages_over_seeds() -> None:
    rows: dict[str, dict[str, object]] = {
        row_name("mixture", "default", "default", 0.1, seed): {
            "density_kl": value,
            "sample_distance": 2.0,
            "ended": "finished" if seed else "diverged at update 7",
            "seconds_training": 10.0 + seed,
        }
        for seed, value in enumerate((0.1, 0.2, 0.3))
    }
    rows[row_name("mixture", "default", "default", 0.5, 0)] = {
        "density_kl": None,
        "sample_distance": 3.0,
        "ended": "finished",
        "seconds_training": 40.0,
    }
    line = summary(rows).splitlines()[2]
    assert line == (
        "| mixture, default, default |  | 0.2 ± 0.058 (2 ± 0), 1 of 3 diverged | not finite (3) |  | 10–40 |"
    )


def test_figures_are_drawn_for_what_there_is(tmp_path: Path) -> None:
    density = make_density("mixture8-unequal")
    grid = plane_of(density, density.sample(20_000, Streams(0)["figure"]), 31)
    assert grid is not None
    rows = [row_name("mixture", setup, "default", 0.5, 0) for setup in ("default", "restricted")]
    for name in rows:
        tensors = {
            "samples": density.sample(100, Streams(0)["samples"]),
            "log_density": torch.zeros(31 * 31).log_softmax(0),
        }
        safetensors.torch.save_file(tensors, tmp_path / f"{name}.safetensors")
    draw(tmp_path, load_config("robust-toy"), rows)
    assert (tmp_path / "figure.png").stat().st_size > 5000
    assert (tmp_path / "restricted-default.png").stat().st_size > 5000
