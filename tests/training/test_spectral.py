"""Spectral norm in training: one power iteration an update, averaged, checkpointed and resumed to the bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from burnin.assemble import build_trainer, load_model
from burnin.config import load_config
from burnin.core import InputError
from burnin.rng import Streams
from burnin.runs import train_in
from burnin.settings import Config
from burnin.training import Trainer, load_checkpoint

CHANGES = [
    "model.kind=convnet",
    "model.width=2",
    "model.spectral_norm=true",
    "model.attention=[4]",
    "model.average=0.5",
    "sampler.num_steps=3",
    "run.updates=6",
    "run.batch_size=8",
    "run.checkpoint_every=2",
    "run.tensorboard=false",
]


def config(*more: str) -> Config:
    return load_config("digits", [*CHANGES, *more])


def norms(module: nn.Module) -> list[float]:
    layers = [layer for layer in module.modules() if isinstance(layer, nn.Conv2d)]
    return [torch.linalg.matrix_norm(layer.weight.flatten(1), 2).item() for layer in layers]


def tensors(trainer: Trainer) -> dict[str, torch.Tensor]:
    return trainer.snapshot().clone().tensors


def test_one_power_iteration_for_each_update(monkeypatch: pytest.MonkeyPatch) -> None:
    moves: list[str] = []
    own = nn.utils.parametrizations._SpectralNorm._power_method

    def counted(self: object, *arguments: object) -> None:
        moves.append("moved")
        own(self, *arguments)  # type: ignore[arg-type]

    trainer = build_trainer(config("model.average=0"))
    monkeypatch.setattr(nn.utils.parametrizations._SpectralNorm, "_power_method", counted)
    trainer.parts.energy.train()
    trainer.update()
    assert len(moves) == len(norms(trainer.parts.energy)) == 7  # four convolutions, three of attention


def test_averaged_weights_have_their_own_norms() -> None:
    trainer = build_trainer(config("optimizer.learning_rate=0.003"))
    for _ in range(6):
        trainer.update()
    assert trainer.averaged is not None
    assert not torch.equal(*(next(net.parameters()) for net in (trainer.model, trainer.parts.energy)))
    assert all(abs(norm - 1) < 0.02 for norm in norms(trainer.model))
    for average, own in zip(trainer.model.buffers(), trainer.parts.energy.buffers(), strict=True):
        assert torch.equal(average, own) == (average.numel() == 1 or average.dim() != 1)


def test_a_run_that_was_stopped_goes_on_to_the_bit(tmp_path: Path) -> None:
    whole = build_trainer(config())
    for _ in range(4):
        whole.update()
    half = whole.snapshot().clone()
    for _ in range(2):
        whole.update()
    again = build_trainer(config())
    again.restore(half)
    for _ in range(2):
        again.update()
    wanted, made = tensors(whole), tensors(again)
    assert any(name.endswith("_u") for name in wanted)
    assert wanted.keys() == made.keys()
    assert [name for name in wanted if not torch.equal(wanted[name], made[name])] == []


def test_a_loaded_model_is_the_trained_one(tmp_path: Path) -> None:
    train_in(tmp_path / "run", config(), resume=False)
    assert any("_v" in name for name in load_checkpoint(tmp_path / "run").tensors)
    model, same = load_model(tmp_path / "run"), load_model(tmp_path / "run")
    x = torch.randn(5, 64, generator=torch.Generator().manual_seed(0))
    first = model.energy(x)
    assert torch.equal(first, model.energy(x))
    assert torch.equal(first, same.energy(x))


def test_a_network_of_ones_own_rests_between_updates() -> None:
    trainer = build_trainer(config("model.spectral_norm=false", "model.average=0"))
    net, x = trainer.parts.energy, torch.randn(5, 64, generator=torch.Generator().manual_seed(0))
    for layer in [part for part in net.modules() if isinstance(part, nn.Conv2d)]:
        nn.utils.parametrizations.spectral_norm(layer)
    with torch.no_grad():
        for value in net.parameters():
            value.normal_(generator=torch.Generator())
    assert not torch.equal(net(x), net(x))  # torch's training mode
    optimizer = torch.optim.Adam(net.parameters())
    Trainer(replace(trainer.parts, energy=net, optimizer=optimizer), batch_size=8, streams=Streams(0))
    assert torch.equal(net(x), net(x))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["model.kind=mlp"], "model.attention is for"),
        (["model.kind=rbm", "model.gaussian_factor=none"], "model.spectral_norm is for networks"),
        (["model.attention=[5]"], "sides 8, 4, 2, 1"),
    ],
)
def test_what_does_not_fit_is_refused(changes: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        build_trainer(config(*changes))
