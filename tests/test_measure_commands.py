"""burnin features train, ood and measure, as a user runs them, on a small run of the 8×8 digits."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from burnin.assemble import load_model
from burnin.core import evaluate
from burnin.data import digits8
from burnin.data.folders import read_folder
from tests.test_cli import Burnin, assert_refused, burnin

__all__ = ["burnin"]

HAS_TORCHMETRICS = importlib.util.find_spec("torchmetrics") is not None


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a run of pictures is made by the first test that needs it, to be copied."""
    return tmp_path_factory.mktemp("measured")


@pytest.fixture
def run(burnin: Burnin, made: Path, tmp_path: Path) -> Path:
    if not (made / "run").exists():
        small = ("run.updates=20", "model.width=[16]", "sampler.num_steps=5")
        changes = [word for change in small for word in ("--set", change)]
        result = burnin("train", "digits", *changes, "--out", str(made / "run"))
        assert result.code == 0, result.err
    shutil.copytree(made / "run", tmp_path / "run")
    return tmp_path / "run"


def pictures(folder: Path, n: int, seed: int = 0) -> None:
    """Noise, in the digits' size and twice as large."""
    stream = np.random.default_rng(seed)
    folder.mkdir()
    for index in range(n):
        side = 8 if index % 2 else 16
        Image.fromarray(stream.integers(0, 256, (side, side)).astype(np.uint8)).save(
            folder / f"{index:03d}.png"
        )


def test_features_are_trained_and_used(burnin: Burnin, run: Path) -> None:
    refused = burnin("measure", "run", "--samples", "60")
    assert_refused(refused, "burnin features train --dataset digits8 --side 8")
    result = burnin("features", "train", "--dataset", "digits8", "--updates", "40", "--json")
    assert result.code == 0, result.err
    trained = json.loads(result.out)
    assert trained["folder"] == "features/digits8-8"
    assert trained["name"].startswith("burnin-digits8-8 (own classifier, accuracy 0.")
    assert_refused(burnin("features", "train", "--dataset", "digits8"), "already holds something")
    result = burnin("measure", "run", "--samples", "60", "--json")
    assert result.code == 0, result.err
    answer = json.loads(result.out)
    assert answer["features"] == trained["name"]
    measures = {one["name"]: one for one in answer["measures"]}
    assert set(measures) == {
        *("Fréchet distance", "kernel distance (KID)", "Inception Score"),
        *("precision", "recall", "density", "coverage", "memorisation"),
    }
    assert all(one["features"] == trained["name"] and one["n"] == 60 for one in measures.values())
    assert measures["memorisation"]["value"] is None  # the digits have no test pictures
    assert "--data" in measures["memorisation"]["note"]
    kernel = measures["kernel distance (KID)"]
    # After 20 updates samples are noise: farther from digits than digits are, by many standard errors.
    assert kernel["value"] - kernel["real"] > 4 * kernel["error"]
    assert measures["coverage"]["value"] < measures["coverage"]["real"]
    if HAS_TORCHMETRICS:
        frechet = measures["Fréchet distance"]
        assert frechet["value"] > 2 * frechet["real"] > 0
        assert measures["Inception Score"]["value"] < measures["Inception Score"]["real"]
    else:
        assert "burnin[images]" in measures["Fréchet distance"]["note"]
    assert (run / "energies.png").stat().st_size > 5000
    assert not (run / "neighbours.png").exists()


@pytest.mark.usefixtures("run")
def test_samples_are_measured_against_a_folder(burnin: Burnin, tmp_path: Path) -> None:
    pictures(tmp_path / "noise", 90)
    result = burnin("measure", "run", "--data", "noise", "--features", "pixels", "--samples", "45")
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert lines[0] == "45 samples of run beside noise, 90 pictures"
    assert all("pixels" in line for line in lines[1:])  # the features' name beside every number
    (score,) = [line for line in lines if line.startswith("Inception Score")]
    assert "not measured  [pixels]  this network has no classes" in score
    (nearer,) = [line for line in lines if line.startswith("nearer than held-out")]
    assert "1797 training and 45 held-out pictures" in nearer
    assert (tmp_path / "run" / "neighbours.png").stat().st_size > 5000
    assert_refused(burnin("measure", "run", "--features", "pixels", "--samples", "12"), "at least 40")
    assert_refused(burnin("measure", "run", "--features", "none.pt"), "no such file")
    assert_refused(burnin("measure", "run", "--features", "pixels", "--data", "rows.csv"), "64")


def test_energies_tell_two_sets_apart(burnin: Burnin, run: Path, tmp_path: Path) -> None:
    pictures(tmp_path / "noise", 30)
    result = burnin(
        "ood", "run", "--inside", "digits8", "--outside", "noise", "--json", "--out", "fig/roc.png"
    )
    assert result.code == 0, result.err
    answer = json.loads(result.out)
    assert answer["inside"] == {"name": "digits8, 1797 pictures", "n": 1797}
    assert answer["outside"] == {"name": "noise, 30 pictures", "n": 30}
    assert Path("fig/roc.png").stat().st_size > 5000
    # By counting, from the model itself: digits as they are, noise by its own energies.
    model, digits = load_model(run), digits8()
    bytes_ = read_folder(tmp_path / "noise", side=8, channels=1).pixels
    with torch.no_grad():
        inside = evaluate(model.energy, digits.rows(digits.pixels))
        outside = evaluate(model.energy, digits.rows((bytes_.float() * 16 / 255).round().to(torch.uint8)))
    above = (outside.unsqueeze(1) > inside).double() + 0.5 * (outside.unsqueeze(1) == inside).double()
    assert answer["AUROC"]["value"] == pytest.approx(above.mean().item(), abs=1e-6)


def test_rows_are_told_apart_too(burnin: Burnin) -> None:
    assert burnin("train", "small.toml", "--out", "small").code == 0
    np.save("far.npy", np.full((20, 2), 40.0) + np.arange(40).reshape(20, 2))
    np.save("near.npy", np.random.default_rng(0).normal(size=(50, 2)))
    result = burnin("ood", "small", "--inside", "near.npy", "--outside", "far.npy")
    assert result.code == 0, result.err
    # The energy has a Gaussian factor, which grows.
    assert "AUROC                  1.0000 ± 0.0000" in result.out
    assert "FPR@95                 0.0000 ± 0.0000" in result.out
    assert Path("small/ood.png").exists()
    assert_refused(burnin("ood", "small", "--inside", "mixture8", "--outside", "digits8"), "holds pictures")
    assert_refused(burnin("ood", "small", "--inside", "mixture8", "--outside", "rings10"), "10 numbers")
    assert_refused(burnin("ood", "small", "--inside", "mixture8", "--outside", "nothing"), "no data set")
    assert_refused(
        burnin("ood", "small", "--inside", "mixture8", "--outside", "far.npy", "--out", "x.pdf"), ".png"
    )
    assert_refused(burnin("measure", "small"), "model of no pictures")


def test_an_interrupted_training_leaves_nothing(
    burnin: Burnin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from burnin.evaluation import classifier_training

    def interrupted(step: int, updates: int) -> float:
        if step == 3:
            raise KeyboardInterrupt
        return 1.0

    monkeypatch.setattr(classifier_training, "_rate", interrupted)
    result = burnin("features", "train", "--dataset", "digits8", "--out", "own")
    assert result.code == 130
    assert not (tmp_path / "own").exists()
