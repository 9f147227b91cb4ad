"""Training a classifier that is also an energy: its loss, its labels, its resumption, what the guard does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from burnin.assemble import build_trainer, load_model
from burnin.assemble_data import build_data
from burnin.config import load_config
from burnin.core import DivergedError, InputError, Outcome
from burnin.data import clean, digits8, held_out
from burnin.data.labelled import labelled_draws
from burnin.energies import joint_of
from burnin.evaluation.calibration import class_probabilities, judge_classes
from burnin.objectives import Classification
from burnin.runs import train_in
from burnin.settings import Config
from burnin.training import GuardSettings, load_checkpoint
from burnin.training.guard import Remedy
from burnin.training.remedies import Remedies

SMALL = (
    'model={temperature=5e-5, kind="mlp", width=32, depth=2, standardise=false}',
    "run.batch_size=32",
    "scheme.bank_size=100",
    "sampler.num_steps=2",
    "optimizer.learning_rate=3e-3",
    "optimizer.warmup=0",
)


def small(*changes: str) -> Config:
    return load_config("jem", [*SMALL, *changes])


@pytest.mark.parametrize(
    "objective", [(), ('objective.name="denoising-score-matching"', "objective.noise_sd=0.1")]
)
def test_the_loss_is_the_cross_entropy_and_weight_times_the_objective(objective: Sequence[str]) -> None:
    """The first update's gradient is that of both parts, computed by hand from the same draws."""
    made = {}
    for weight in (0.0, 0.5, 1.0):
        trainer = build_trainer(small(*objective, f"joint.weight={weight}", 'optimizer.name="SGD"'))
        before = torch.cat([p.detach().flatten().clone() for p in trainer.parts.energy.parameters()])
        numbers = trainer.update()
        after = torch.cat([p.detach().flatten() for p in trainer.parts.energy.parameters()])
        made[weight] = (before - after) / 3e-3, numbers
        assert set(numbers) >= {"cross_entropy", "class_accuracy", "loss"}
    generator = build_trainer(small(*objective)).streams["labels"]
    trainer = build_trainer(small(*objective))
    part = trainer.parts.classification
    assert part is not None
    x, labels = part.draw(32, generator)
    entropy = -joint_of(trainer.parts.energy).logits(x).log_softmax(1)[torch.arange(32), labels].mean()
    by_hand = torch.autograd.grad(entropy, list(trainer.parts.energy.parameters()))
    torch.testing.assert_close(made[0.0][0], torch.cat([g.flatten() for g in by_hand]), rtol=1e-3, atol=2e-5)
    assert made[0.0][1]["cross_entropy"] == pytest.approx(entropy.item(), rel=1e-5)
    generative = made[1.0][0] - made[0.0][0]
    assert generative.norm() > 1e-4
    torch.testing.assert_close(made[0.5][0] - made[0.0][0], generative / 2, rtol=1e-2, atol=3e-5)


def test_a_classifier_learns_and_a_killed_run_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    config = small("run.updates=60", "run.checkpoint_every=20")
    assert train_in(tmp_path / "whole", config, resume=False) is Outcome.OK
    part = tmp_path / "part"
    ends = iter([20])

    def kill(step: int, _: object) -> None:
        if step == 27 and next(ends, None):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_in(part, config, resume=False, on_update=kill)
    assert train_in(part, None, resume=True) is Outcome.OK
    whole, cut = (load_checkpoint(path) for path in (tmp_path / "whole", part))
    for name, value in whole.tensors.items():
        assert torch.equal(value, cut.tensors[name]), name
    model = load_model(part)
    test = clean(held_out(build_data(config)))
    found = judge_classes(class_probabilities(model.energy, test.rows(test.pixels)), test.labels)  # type: ignore[attr-defined]
    # By chance 0.1 ± 0.016 of 359 pictures.
    assert found.accuracy.value > 0.2
    assert len(test) == 359  # type: ignore[arg-type]


def test_only_some_labels_may_be_known() -> None:
    data = digits8()
    draws = labelled_draws(data, 10, 37, torch.Generator().manual_seed(0))
    assert draws.pictures.labels is not None
    assert sorted(draws.pictures.labels.bincount().tolist()) == [3] * 3 + [4] * 7
    x, labels = draws(50, torch.Generator().manual_seed(1))
    rows = draws.pictures.rows(draws.pictures.pixels)
    for one, label in zip(x, labels, strict=True):
        place = (rows == one).all(1).nonzero()[0]
        assert draws.pictures.labels[place] == label
    trainer = build_trainer(small("joint.labels=20"))
    assert trainer.parts.classification is not None
    known = trainer.parts.classification.draw
    assert len(known.pictures) == 20  # type: ignore[attr-defined]
    assert known.noise == 0.03  # type: ignore[attr-defined]
    assert len(clean(trainer.parts.data)) == 1438  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["joint.labels=5"], "between the number of classes"),
        (["joint.classes=7"], "the data has 10 classes"),
        (['data={name="rings10"}'], "this data has none"),
        (['model={temperature=1.0, kind="rbm"}'], "is none"),
        (['model={temperature=1.0, kind="wide-resnet", width=2}'], "takes model.depth"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_trainer(small(*changes))


def test_a_weight_below_zero_is_refused() -> None:
    with pytest.raises(InputError, match="not below 0"):
        Classification(lambda x: x, lambda n, g: (torch.zeros(n, 1), torch.zeros(n)), 4, -1.0)


def test_a_rollback_raises_beta_and_steps_and_says_so() -> None:
    remedy: tuple[Remedy, ...] = ("beta", "num_steps", "learning_rate")
    settings = GuardSettings(window=20, warmup=10, patience=2, remedy=remedy, beta=1e-4, tries=2)
    trainer = build_trainer(small("run.updates=200"))
    parts = replace(trainer.parts, guard=settings)
    trainer = type(trainer)(parts, batch_size=32, streams=trainer.streams)
    said: list[str] = []

    def spoil(step: int, _: object) -> None:
        if step == 60:
            with torch.no_grad():
                for p in parts.energy.parameters():
                    p.mul_(30.0)

    with pytest.raises(DivergedError, match="after 2 rollbacks"):
        trainer.train(200, on_update=spoil, on_event=said.append, checkpoint_every=50)
    rolled = [text for text in said if "rolled back" in text]
    assert "β at least 0.0001, 2 × as many steps, learning rate × 0.5" in rolled[0]
    assert "β at least 0.0002" in rolled[1]
    assert trainer.remedies == Remedies(beta=2e-4, num_steps_factor=4.0)
    assert [arm.num_steps for arm in trainer.arms] == [8]
    assert [arm.beta for arm in trainer.arms] == [2e-4]
    # A checkpoint keeps what was changed.
    again = build_trainer(small("run.updates=200"))
    again.restore(trainer.snapshot())
    assert again.remedies == trainer.remedies
