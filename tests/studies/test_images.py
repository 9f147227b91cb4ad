"""The small variant of the natural-image study: its rows, its measures, its figures."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import safetensors.torch
import torch

from burnin.assemble import load_model
from burnin.config import load_config
from burnin.data import Pictures
from burnin.evaluation.neighbours import nearest
from burnin.given_data import own_pictures
from burnin.runs import train_in
from burnin.studies import STUDIES, run_study
from burnin.studies.image_chains import ADJUSTED_FOLDER, FILE, look
from burnin.studies.images import OUTSIDE, SCHEMES, outliers, summary
from burnin.training import load_checkpoint
from tests.data.files import some_bytes, write_idx


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Classifiers are kept in features/ below it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_small_variant(working_folder: Path) -> None:
    pytest.importorskip("torchmetrics")
    study, out = STUDIES["images-fashion-mnist-small"], working_folder / "out"
    table, checks = run_study(study, out, quick=True, jobs=1, status=lambda *_: None)
    assert [check.text for check in checks if not check.holds] == []
    assert len(checks) == 3
    assert set(table["rows"]) == {"data", "noise", "refresh", "hybrid-25"}
    numbers = {name: row["metrics"] for name, row in table["rows"].items()}
    for row in numbers.values():
        assert "digits8-8" in row["features"]
        assert 0 <= row["auroc"] <= 1
        # Hardly trained: none of the chains is as near as real pictures are.
        assert 0 < row["frechet_real"] < row["frechet"]
        assert row["frechet_long"] > 0
    assert {name for name, row in numbers.items() if "frechet_bank" in row} == {"refresh"}
    # Ten steps do not lead far: by chance it were 1 of 200, 0.005 ± 0.007 of a hundred samples.
    assert numbers["refresh"]["bank_copies"] > 0.005 + 3 * 0.007
    assert {name for name, row in numbers.items() if "acceptance_off" in row} == {"hybrid-25"}
    for name in ("figure", "energies", "losses", "diversity", "adjusted"):
        assert (out / f"{name}.png").stat().st_size > 10_000
    assert "| hybrid-25 | 1 |" in (out / "table.md").read_text(encoding="utf-8")
    bank = load_checkpoint(out / "refresh").tensors["start.bank.position"]
    shown = safetensors.torch.load_file(out / "refresh" / FILE)["bank"]
    assert nearest(shown, bank).distance.max() == 0
    assert not (out / "hybrid-25" / ADJUSTED_FOLDER).exists()


def test_copies_are_told_where_pictures_are_held_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples that are training pictures: all nearer than any that was held out, and their own neighbours."""
    monkeypatch.setenv("BURNIN_DATA", str(tmp_path / "data"))
    for part, n in (("train", 40), ("t10k", 20)):
        path = tmp_path / "data" / "fashion-mnist" / f"{part}-images-idx3-ubyte"
        write_idx(path, some_bytes(n, 28, 28, seed=n))
    changes = ["run.updates=1", "model.width=2", "sampler.num_steps=1", "study.adjusted_steps=20"]
    config = load_config("images-fashion-mnist-small", [*changes, "run.batch_size=4", "data.noise=0.0"])
    run = tmp_path / "run"
    train_in(run, config, resume=False)
    pictures, _ = own_pictures(run)
    copies = pictures.rows(pictures.pixels[:10], torch.Generator().manual_seed(0))
    told: set[str] = set()
    numbers = look(load_model(run), copies, run, lambda x: float(len(x)), lambda what, *_: told.add(what))
    assert numbers["memorised"] == 1.0
    assert "frechet_bank" not in numbers
    assert 0 <= numbers["acceptance_off"] <= 1
    kept = safetensors.torch.load_file(run / FILE)
    assert torch.equal(kept["nearest"][:, 0], kept["drawn"])
    assert kept["nearest"].shape == (10, 3, 1, 14, 14)
    assert told == {"nearest training pictures", "adjusted chains from noise"}


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
    # Noise is sampled as it is trained; one of the hybrids is adjusted.
    assert load_config(paper.recipe, [*paper.rows["noise"]]).test_sampler() is None
    assert load_config(paper.recipe, [*paper.rows["hybrid-50"]]).study.adjusted_steps == 0
    assert config.study.adjusted_steps == 50_000


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
    judged = STUDIES["images-fashion-mnist-small"].judged({**rows, "data": {**row, "frechet": None}})
    assert (judged["noise"]["frechet"], judged["noise"]["auroc"]) == (2.0, 0.9)
    assert judged["data"]["frechet"] is None


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
