"""The small variant of the natural-image study: its rows, its measures, its figures."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from burnin.config import load_config
from burnin.data import Pictures
from burnin.studies import STUDIES, run_study
from burnin.studies.images import OUTSIDE, SCHEMES, outliers, summary


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Classifiers are kept in features/ below it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_small_variant(working_folder: Path) -> None:
    pytest.importorskip("torchmetrics")
    study = STUDIES["images-fashion-mnist-small"]
    table, _ = run_study(study, working_folder / "out", quick=True, jobs=1, status=lambda *_: None)
    assert set(table["rows"]) == {"data", "noise", "hybrid-25"}
    for row in table["rows"].values():
        numbers = row["metrics"]
        assert "digits8-8" in numbers["features"]
        assert 0 <= numbers["auroc"] <= 1
        # Hardly trained: none of the chains is as near as real pictures are.
        assert 0 < numbers["frechet_real"] < numbers["frechet"]
        assert numbers["frechet_long"] > 0
    for name in ("figure", "energies", "losses"):
        assert (working_folder / "out" / f"{name}.png").stat().st_size > 10_000
    assert "| hybrid-25 | 1 |" in (working_folder / "out" / "table.md").read_text(encoding="utf-8")


def test_rows_of_the_paper() -> None:
    small, paper = (STUDIES[f"images-{name}"] for name in ("fashion-mnist-small", "cifar10-paper"))
    assert set(paper.rows) == set(SCHEMES)
    assert set(small.rows) == {
        *SCHEMES,
        *(f"{name}-s{seed}" for name in ("data", "noise", "hybrid-25") for seed in (1, 2)),
    }
    config = load_config(paper.recipe, [*paper.rows["hybrid-25"]])
    # Section 3: n_f 128, L = 500, 50,000 iterations, T = 5e-5, ε = 1, λ = 25, a bank of 60,000.
    assert (config.model.width, config.sampler.num_steps, config.run.updates) == (128, 500, 50_000)
    assert (config.model.temperature, config.sampler.step_size, config.scheme.lam) == (5e-5, 1.0, 25.0)
    assert config.scheme.bank_size == 60_000
    at_test = config.test_sampler()
    assert at_test is not None
    assert (at_test.num_steps, at_test.step_size) == (1000, 2.0)


def test_outliers_are_of_the_other_set() -> None:
    assert set(OUTSIDE) >= {"fashion-mnist", "cifar10", "digits8"}
    pixels = torch.arange(4, dtype=torch.uint8).reshape(1, 1, 2, 2)
    held, stream = Pictures(pixels), torch.Generator().manual_seed(0)
    assert outliers("digits8", held, stream).tolist() == [[[[2, 3], [0, 1]]]]


def test_seeds_are_averaged() -> None:
    row = {"frechet": 1.0, "frechet_few": 1.0, "frechet_long": 2.0, "frechet_data_run": 1.0, "auroc": 0.9}
    row |= {"aupr": 0.9, "fpr95": 0.1}
    words = {"verdict": "a generator only", "features": "own", "frechet_real": 0.5, "outliers": "mnist"}
    rows = {"noise": {**row, **words}, "noise-s1": {**row, **words, "frechet": 3.0}}
    assert "| noise | 2 | 2 ± 1 |" in summary(rows)


def test_small_beta_in_small(working_folder: Path) -> None:
    """The gap is that of the energies, and the figure is drawn."""
    pytest.importorskip("torchmetrics")
    study = STUDIES["small-beta"]
    table, _ = run_study(study, working_folder / "out", quick=True, jobs=1, status=lambda *_: None)
    assert set(table["rows"]) == {"beta-0", "beta-1e-3"}
    for row in table["rows"].values():
        assert math.isfinite(row["metrics"]["gap"])
        assert row["metrics"]["gap"] != row["metrics"]["gap_larger_step"]
    assert (working_folder / "out" / "figure.png").stat().st_size > 10_000
