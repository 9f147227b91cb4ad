"""A fit that is stopped and goes on comes to the same bits as one that never was."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

from burnin.assemble import build_trainer
from burnin.choosing import ACCEPTANCE, LONGEST, PILOT_CHAINS, Wishes, choose, in_training, settle
from burnin.core import Outcome
from burnin.correcting import LAST_FOLDER, Effort, Listener
from burnin.data import EncodedRows, Encoding, Frame
from burnin.fitted import FITTED_FILE
from burnin.fitting import fit_rows, resume_rows
from burnin.training import RunFolder, load_checkpoint, read_metrics
from burnin.training.checkpoint import checkpoint_steps

UPDATES, STOP = 60, 37
EFFORT = Effort(particles=16)


def table() -> EncodedRows:
    x = np.random.default_rng(0).normal(size=(60, 1))
    frame = Frame({"a": x[:, 0], "b": x[:, 0] ** 2})
    encoding = Encoding.fit(frame)
    return EncodedRows.split(encoding, encoding.codes(frame), share=0.2, seed=0)


def fit(folder: Path, on_update: Callable[[int, Mapping[str, float]], None] | None = None) -> Outcome:
    wishes = Wishes(width=8, batch_size=16, max_updates=UPDATES)
    listener = Listener(on_update)
    return fit_rows(
        table(), wishes, EFFORT, seed=3, contamination=0.1, folder=RunFolder(folder), listener=listener
    )[2]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fit that was never stopped."""
    folder = tmp_path_factory.mktemp("fit") / "whole"
    assert fit(folder) is Outcome.OK
    return folder


def same(one: Path, other: Path) -> None:
    """Both folders hold the same weights, streams and judgement, to the bit."""
    first, second = load_checkpoint(one), load_checkpoint(other)
    assert first.tensors.keys() == second.tensors.keys()
    assert all(torch.equal(value, second.tensors[name]) for name, value in first.tensors.items())
    told = [json.loads((folder / FITTED_FILE).read_text(encoding="utf-8")) for folder in (one, other)]
    for content in told:
        del content["about"]["choice"]["seconds"]
    assert told[0] == told[1]
    assert told[0]["contamination"] == 0.1


def test_ctrl_c_and_resume(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "stopped"

    def stop(step: int, _: object) -> None:
        if step == STOP:
            signal.raise_signal(signal.SIGINT)

    assert fit(folder, stop) is Outcome.INTERRUPTED
    assert checkpoint_steps(folder / LAST_FOLDER) == [STOP]
    early = json.loads((folder / FITTED_FILE).read_text(encoding="utf-8"))
    assert early["about"]["trained_for"] == STOP
    fitted, outcome = resume_rows(RunFolder(folder, resume=True), EFFORT)
    assert outcome is Outcome.OK
    assert fitted.about["trained_for"] == UPDATES
    same(whole, folder)
    assert not (folder / LAST_FOLDER).exists()
    steps = [[row["step"] for row in read_metrics(run / "metrics.jsonl")] for run in (whole, folder)]
    assert steps[0] == steps[1]


def test_a_killed_fit_goes_on_from_its_last_checkpoint(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    shutil.copytree(whole, folder)
    for step in checkpoint_steps(folder):
        if step > 0:
            (folder / f"checkpoint-{step:09d}.json").unlink()
    (folder / FITTED_FILE).unlink()
    resume_rows(RunFolder(folder, resume=True), EFFORT)
    same(whole, folder)


def test_a_fit_that_ended_goes_on_from_its_best_with_new_patience(whole: Path) -> None:
    assert load_checkpoint(whole).held("fit") is None
    assert load_checkpoint(whole, 0).held("fit") is not None


def test_chains_that_follow_are_shown_and_change_nothing(whole: Path, tmp_path: Path) -> None:
    """d of chains that have the law of the data is 0, within the error of two means of 64 energies."""
    seen: list[Mapping[str, float]] = []
    folder = tmp_path / "looked at"
    assert fit(folder, lambda _, numbers: seen.append(numbers)) is Outcome.OK
    same(whole, folder)
    assert len(seen) == UPDATES
    d = np.array([numbers["d/chains"] for numbers in seen])
    assert np.isfinite(d).all()
    assert len(set(d.tolist())) == 1 + UPDATES // 25, "new at the first update and at every look"
    # Two dimensions: energies have a standard deviation of about T = 1. Trained hardly at all, the law is
    # that of the base, fitted to 48 rows.
    assert np.abs(d).max() < 4 * np.sqrt(2 / 64) + 4 / np.sqrt(48)
    for numbers in seen:
        assert 0 < numbers["acceptance/chains"] <= 1
        assert numbers["r/chains"] > 0


def test_the_trained_network_has_chains_of_its_own() -> None:
    """A colder density is rougher: its steps are shorter, and accepted as aimed at all the same."""
    config, choice, base, rows = choose(table(), Wishes(width=8, batch_size=16, max_updates=UPDATES), seed=3)
    trainer = build_trainer(config, None, rows, base)
    trainer.train(UPDATES)
    warm = settle(trainer, config, choice, rows, base, 1.0)[1]
    settled, cold, model = settle(trainer, config, choice, rows, base, 0.02)
    assert model.temperature == cold.temperature == settled.model.temperature == 0.02
    assert settled.sampler.step_size == cold.step_size
    # A step of ε on E at T is one of ε·T on E/T.
    assert cold.step_size * 0.02 < warm.step_size <= LONGEST
    # A share of 256 chains, seen at the end of the search and again in the walk; steps of a chain are not
    # independent, so they do not make it smaller here.
    error = np.sqrt(2 * ACCEPTANCE * (1 - ACCEPTANCE) / PILOT_CHAINS)
    assert abs(cold.acceptance - ACCEPTANCE) < 4 * error
    assert in_training(settled, cold).model.temperature == 1.0


def test_what_is_told_is_not_chosen() -> None:
    wishes = Wishes(width=8, temperature=0.5, step_size=0.07, num_steps=4, batch_size=16, max_updates=UPDATES)
    choice = fit_rows(table(), wishes, EFFORT, seed=3, contamination=0.1)[0].about["choice"]
    assert (choice["temperature"], choice["step_size"], choice["num_steps"]) == (0.5, 0.07, 4)


def test_a_network_that_learned_by_heart_is_weakened() -> None:
    """T is the one of highest held-out likelihood, and the training goes on at its own."""
    fitted, trainer, _ = fit_rows(
        table(), Wishes(width=64, batch_size=16, max_updates=400), EFFORT, seed=3, contamination=0.1
    )
    choice = fitted.about["choice"]
    assert choice["trained_at"] == 1.0
    assert trainer.model.temperature == 1.0
    assert fitted.model.temperature == choice["temperature"] != 1.0
