"""What training notices while it runs, and that a resume notices the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from burnin import FromNoise, Langevin, Streams
from burnin.data import make_density
from burnin.energies import MLP
from burnin.training import Arm, Parts, RunFolder, Trainer, read_metrics
from burnin.training.online import LOOK_EVERY, TrainingWatch
from tests.diagnostics.series import auto_regressive, white

UPDATES = 700


def degenerate() -> Trainer:
    """Chains of no steps: the energy tells data from noise ever better, and nothing answers (section C)."""
    streams = Streams(0)
    energy = MLP(2, width=16, depth=1, generator=streams["weights"])
    return Trainer(
        Parts(
            energy=energy,
            data=make_density("moons"),
            arms=[Arm("noise", FromNoise(scale=5.0), Langevin(0.01, 1.0), num_steps=0)],
            optimizer=torch.optim.Adam(energy.parameters(), lr=1e-2),
        ),
        batch_size=16,
        streams=streams,
    )


def events(folder: Path) -> list[dict[str, Any]]:
    return [row for row in read_metrics(folder / "metrics.jsonl") if "event" in row]


def test_a_collapse_is_told_once_and_written_down(tmp_path: Path) -> None:
    said: list[str] = []
    degenerate().train(UPDATES, folder=RunFolder(tmp_path), log_every=50, on_event=said.append)
    assert len(said) == 1
    assert "collapse" in said[0]
    assert "since update 1," in said[0]
    assert "data.noise" in said[0]
    assert [row["event"] for row in events(tmp_path)] == said


def test_what_was_before_a_collapse_is_put_back_during_one() -> None:
    """As a rollback does when d fell to its end since the last checkpoint."""
    trainer = degenerate()
    trainer.train(100)
    before = trainer.snapshot().clone()
    trainer.train(UPDATES)
    assert trainer.snapshot().state["online"]["noise"]["collapse"]["current"] is not None
    trainer.restore(before)
    assert trainer.snapshot().state["online"] == before.state["online"]


@pytest.mark.parametrize("cut", [250, 550])
def test_a_resume_notices_the_same(tmp_path: Path, cut: int) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    one = degenerate()
    one.train(UPDATES, folder=RunFolder(whole))
    first = degenerate()
    first.train(cut, folder=RunFolder(parts))
    (parts / "config.toml").touch()
    second = degenerate()
    second.restore(first.snapshot())
    second.train(UPDATES, folder=RunFolder(parts, resume=True))
    assert events(parts) == events(whole) != []
    assert second.snapshot().state == one.snapshot().state


def test_a_checkpoint_of_before_begins_anew() -> None:
    first, second = degenerate(), degenerate()
    first.train(120)
    snapshot = first.snapshot()
    del snapshot.state["online"]
    second.restore(snapshot)
    assert second.snapshot().state["online"] == {}
    assert second.step == 120


def test_a_kind_of_oscillation_is_news_when_two_looks_agree() -> None:
    """Weak, weak (news), strong (alone), weak, weak, strong, strong (news)."""
    weak, strong = white(LOOK_EVERY, 0), auto_regressive(-0.5, LOOK_EVERY, 0)
    watch, said = TrainingWatch(), {}
    update = 0
    for d in (weak, weak, strong, weak, weak, strong, strong):
        for value in d:
            update += 1
            for text in watch.look(update, {"d/noise": float(value), "r/noise": 1.0}):
                said[update] = text
    assert list(said) == [2 * LOOK_EVERY, 7 * LOOK_EVERY]
    assert "weak oscillation" in said[2 * LOOK_EVERY]
    assert "strong oscillation" in said[7 * LOOK_EVERY]
    assert "learning_rate" in said[7 * LOOK_EVERY]


def test_the_oscillation_of_a_weighted_contrast_is_not_told() -> None:
    watch = TrainingWatch()
    for update, value in enumerate(auto_regressive(-0.5, 3 * LOOK_EVERY, 0), 1):
        assert watch.look(update, {"d/noise": float(value), "grad_scale/noise": 0.9}) == []


def test_its_state_goes_through_json() -> None:
    watch, copy = TrainingWatch(), TrainingWatch()
    d = white(1700, 3)
    for i, value in enumerate(d[:1500]):
        watch.look(i + 1, {"d/a": float(value), "d/b": -float(value)})
    copy.restore(json.loads(json.dumps(watch.state())))
    for i, value in enumerate(d[1500:], 1500):
        for each in (watch, copy):
            each.look(i + 1, {"d/a": float(value), "d/b": -float(value)})
    assert copy.state() == watch.state()
    assert set(copy.state()) == {"a", "b"}
