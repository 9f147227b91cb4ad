"""burnin classify and sample --class, as a user runs them, on a small joint energy of the 8×8 digits."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from burnin.assemble import load_model
from burnin.data import clean, digits8, held_out
from burnin.energies import joint_of
from tests.test_cli import Burnin, assert_refused, burnin

__all__ = ["burnin"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("joint")


@pytest.fixture
def run(burnin: Burnin, made: Path, tmp_path: Path) -> Path:
    if not (made / "run").exists():
        small = ("run.updates=60", "model.width=32", "sampler.num_steps=2", "scheme.bank_size=64")
        more = ("sampler_at_test.num_steps=5", "optimizer.warmup=0", "optimizer.learning_rate=3e-3")
        few = "long_chains=20, long_steps=20, data_chains=20, data_steps=20, cooling_steps=10"
        judged = f"study={{samples=60, distance_sets=5, {few}, likelihood_particles=0}}"
        changes = [word for change in (*small, *more, judged) for word in ("--set", change)]
        result = burnin("train", "jem-digits", *changes, "--out", str(made / "run"))
        assert result.code == 0, result.err
    shutil.copytree(made / "run", tmp_path / "run")
    return tmp_path / "run"


def test_a_classifier_is_judged_on_what_it_has_not_seen(burnin: Burnin, run: Path) -> None:
    result = burnin("classify", "run", "--outside", "digits8", "--attack", "--json")
    assert result.code == 0, result.err
    answer = json.loads(result.out)
    model = load_model(run)
    held = clean(held_out(model.data))
    assert held.labels is not None  # type: ignore[attr-defined]
    right = joint_of(model.energy).logits(held.rows(held.pixels)).argmax(1) == held.labels  # type: ignore[attr-defined]
    assert answer["pictures"] == len(right) == 359
    assert answer["accuracy"]["value"] == pytest.approx(float(right.double().mean()))
    curve = answer["attack"]["accuracy"]
    assert curve == sorted(curve, reverse=True)
    assert any(name.startswith("AUROC of digits8") for name in answer)
    assert (run / "classes.png").stat().st_size > 10_000
    said = burnin("classify", "run").out
    assert f"{answer['accuracy']['value']:.4f}" in said
    assert "calibration error by chance alone" in said


def test_a_report_shows_the_classifier(burnin: Burnin, run: Path) -> None:
    result = burnin("report", "run")
    assert result.code == 0, result.err
    page = (run / "report.html").read_text(encoding="utf-8")
    assert '<section id="classes"' in page
    accuracy = json.loads(burnin("classify", "run", "--json").out)["accuracy"]
    assert f"{accuracy['value']:.3f} ± {accuracy['error']:.3f}" in page


def test_pictures_are_classified_into_a_file(burnin: Burnin, run: Path, tmp_path: Path) -> None:
    result = burnin("classify", "run", "--data", "digits8", "-o", "classes.csv", "--json")
    assert result.code == 0, result.err
    assert sum(json.loads(result.out)["counts"].values()) == 1797
    with (tmp_path / "classes.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    model, digits = load_model(run), digits8().in_range(-1.0, 1.0)
    logits = joint_of(model.energy).logits(digits.rows(digits.pixels))
    assert [row["class"] for row in rows[:50]] == [str(k) for k in logits.argmax(1)[:50].tolist()]
    expected = model.energy(digits.rows(digits.pixels)).detach() / 5e-5
    np.testing.assert_allclose([float(row["energy/T"]) for row in rows], expected, rtol=1e-4)
    np.testing.assert_allclose(
        [float(row["probability"]) for row in rows], logits.softmax(1).max(1).values, rtol=1e-4
    )


def test_samples_of_a_class_are_draws_that_the_classifier_accepts(burnin: Burnin, run: Path) -> None:
    """Of chains' ends each is kept with the chance p(y|x), so that they are of p(x|y) (equation 41)."""
    result = burnin("sample", "run", "-n", "200", "-o", "all.npy")
    assert result.code == 0, result.err
    joint = joint_of(load_model(run).energy)
    chances = joint.logits(torch.from_numpy(np.load("all.npy"))).softmax(1).detach()
    likely = int(chances.mean(0).argmax())
    result = burnin("sample", "run", "-n", "100", "-o", "one.npy", "--class", str(likely))
    assert result.code == 0, result.err
    kept = joint.logits(torch.from_numpy(np.load("one.npy"))).softmax(1).detach()[:, likely]
    assert len(kept) == 100
    # ⟨p⟩ under p(x|y) is ⟨p²⟩/⟨p⟩ under p(x).
    own = chances[:, likely]
    expected = float(own.square().mean() / own.mean())
    error = float(kept.std() / 10 + own.square().std() / own.mean() / 200**0.5)
    assert abs(float(kept.mean()) - expected) < 4 * error


def test_what_cannot_be_classified_is_refused(burnin: Burnin, run: Path) -> None:
    assert_refused(
        burnin("sample", "run", "-n", "2", "-o", "x.npy", "--class", "ten"), "there is no class 'ten'"
    )
    assert_refused(burnin("classify", "run", "-o", "x.csv"), "give both, or neither")
    small = ("--set", "run.updates=2", "--set", "model.width=[8]", "--set", "sampler.num_steps=1")
    assert burnin("train", "digits", *small, "--out", "other").code == 0
    assert_refused(burnin("classify", "other"), "no classifier")
