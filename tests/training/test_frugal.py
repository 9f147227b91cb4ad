"""Passes in pieces give the numbers of whole ones; bfloat16 bends chains little; limits are told."""

from __future__ import annotations

import pytest
import torch

from burnin.assemble import build_trainer
from burnin.config import load_config
from burnin.core import InputError, energy_and_gradient
from burnin.training import Trainer
from burnin.training.frugal import Frugal, FrugalEnergy

SMALL = [
    *("data.name=digits8", "data.side=8", "data.flip=false", "model.width=8", "run.batch_size=12"),
    *("sampler.num_steps=4", "scheme.name=hybrid", "run.compile=never", "optimizer.name=SGD"),
]
MALA = ["sampler.kind=mala", *(f"{name}.step_size=0.1" for name in ("sampler", "sampler_from_noise"))]


def trainer(*changes: str) -> Trainer:
    return build_trainer(load_config("images-quick", [*SMALL, *changes]))


def gradient(of: Trainer) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in of.parts.energy.parameters() if p.grad is not None])


@pytest.mark.parametrize("changes", [(), ("scheme.beta=2e-5", "scheme.pooled=true")])
def test_pieces_change_nothing_but_rounding(changes: tuple[str, ...]) -> None:
    whole, cut = trainer(*changes), trainer(*changes, "run.pieces=5")
    for _ in range(3):
        assert cut.update() == pytest.approx(whole.update(), rel=1e-3, abs=1e-6)
        one, other = gradient(whole), gradient(cut)
        assert (other - one).norm() < 1e-4 * one.norm()


def test_pieces_save_what_the_way_back_keeps() -> None:
    energy = trainer().parts.energy
    x = torch.randn(12, 64, generator=torch.Generator().manual_seed(0))

    def kept(pieces: int) -> int:
        sizes: list[int] = []

        def note(tensor: torch.Tensor) -> torch.Tensor:
            sizes.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            FrugalEnergy(energy, Frugal(pieces)).energy_of_weights(x)
        return sum(sizes)

    assert kept(6) < 0.1 * kept(1)


def test_bfloat16_bends_chains_far_less_than_their_noise() -> None:
    exact, coarse = trainer(), trainer("run.precision=bf16")
    energy, sampler = exact.parts.energy, exact.parts.arms[0].sampler
    x = torch.rand(12, 64, generator=torch.Generator().manual_seed(0))
    gradient = FrugalEnergy(energy, Frugal(bf16=True)).energy_and_gradient(x)[1]
    assert gradient.dtype == torch.float32
    step = float(sampler.init(energy, x).step_size)
    bent = step * (gradient - energy_and_gradient(energy, x)[1]).norm(dim=1)
    noise = (2 * step * sampler.temperature * 64) ** 0.5
    assert 0 < bent.max() < 0.02 * noise
    # The loss and the weights stay in float32.
    assert coarse.update() == pytest.approx(exact.update(), rel=0.02, abs=1e-4)
    assert {p.dtype for p in coarse.parts.energy.parameters()} == {torch.float32}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["run.precision=bf16", *MALA], "read energies"),
        (["run.pieces=2", "run.compile=always"], "plain chains only"),
    ],
)
def test_what_is_not_safe_is_refused(changes: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        trainer(*changes)
    with pytest.raises(InputError, match="for networks of pictures"):
        build_trainer(load_config("rings", ["run.pieces=2"]))
