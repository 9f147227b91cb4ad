"""Training that is told when it is enough."""

from __future__ import annotations

from pathlib import Path

from burnin.assemble import build_trainer
from burnin.config import load_config
from burnin.core import Outcome
from burnin.training import RunFolder, Trainer, load_checkpoint
from burnin.training.checkpoint import checkpoint_steps, forget_after

SMALL = [
    "run.updates=50",
    "run.batch_size=8",
    "model.width=4",
    "model.depth=1",
    "sampler.num_steps=2",
    "sampler_from_noise={num_steps=2, step_size=0.1}",
]


def small() -> Trainer:
    return build_trainer(load_config("table", SMALL))


def test_it_ends_with_a_checkpoint_where_it_was_enough(tmp_path: Path) -> None:
    trainer, asked = small(), list[int]()

    def enough(step: int) -> bool:
        asked.append(step)
        return step == 7

    folder = RunFolder(tmp_path / "run")
    assert trainer.train(50, folder=folder, enough=enough) is Outcome.OK
    assert trainer.step == 7
    assert asked == list(range(1, 8))
    assert checkpoint_steps(folder.path)[-1] == 7
    assert load_checkpoint(folder.path).state["step"] == 7


def test_later_checkpoints_are_forgotten(tmp_path: Path) -> None:
    trainer, folder = small(), RunFolder(tmp_path / "run")
    trainer.train(6, folder=folder, checkpoint_every=3)
    assert checkpoint_steps(folder.path)[-1] == 6
    forget_after(folder.path, 3)
    assert checkpoint_steps(folder.path)[-1] == 3
    assert load_checkpoint(folder.path).state["step"] == 3
