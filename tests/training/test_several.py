"""Several updates in one native call against the same updates made singly."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import pytest
import torch
from torch import Tensor

from burnin.core import DivergedError, Outcome, Start
from burnin.data import make_density
from burnin.energies import MLP
from burnin.objectives import Variant, contrast
from burnin.rng import Streams
from burnin.samplers import MALA, Engine, Langevin
from burnin.samplers import engine as engine_module
from burnin.samplers.build import Built
from burnin.starts import Bank, FromData, FromNoise
from burnin.training import Arm, GuardSettings, Parts, Trainer
from burnin.training.remedies import Remedies
from tests.native import needs_compiler

T = 0.05


def make_trainer(start: Start | None = None, **changes: Any) -> Trainer:
    """A small trainer on the mixture; `changes` are those of its arm, and of its parts."""
    net = MLP(2, width=[8, 20], generator=Streams(0)["weights"], activation="leaky")
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    of_parts = {key: changes.pop(key) for key in list(changes) if key in ("average", "guard", "clip_norm")}
    settings: dict[str, Any] = {"sampler": Langevin(0.1, T), "num_steps": 7} | changes
    parts = Parts(
        energy=net,
        data=make_density("mixture8-unequal"),
        arms=[Arm("noise", start or FromNoise(), **settings)],
        optimizer=optimizer,
        scheduler=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99),
        objective=partial(contrast, temperature=T),
        engine=Engine("always", threads=1),
        **of_parts,
    )
    return Trainer(parts, batch_size=12, streams=Streams(3))


def weights(trainer: Trainer) -> Tensor:
    return torch.cat([p.detach().flatten() for p in trainer.parts.energy.parameters()])


@needs_compiler
@pytest.mark.parametrize("start", [FromNoise("uniform", scale=2.0), FromData()])
@pytest.mark.parametrize(
    ("beta", "variant", "num_chains", "num_steps"),
    [
        (0.0, "default", None, 7),
        (0.3, "default", 5, 3),
        (0.9, "true_objective", 1, 0),
        (-0.2, "no_positive", 12, 1),
    ],
)
def test_the_same_as_single_updates(
    start: Start, beta: float, variant: Variant, num_chains: int | None, num_steps: int
) -> None:
    arm = {"beta": beta, "variant": variant, "num_chains": num_chains, "num_steps": num_steps, "weight": 2.0}
    together, singly = make_trainer(start, **arm), make_trainer(start, **arm)
    numbers = list(together.updates(15))
    wanted = [singly.update() for _ in range(15)]
    assert len(numbers) == 15
    assert together.engine.path == "native"
    assert together.step == singly.step == 15
    for got, want in zip(numbers, wanted, strict=True):
        assert got.keys() == want.keys()
        assert list(got.values()) == pytest.approx(list(want.values()), rel=1e-4, abs=1e-6)
    torch.testing.assert_close(weights(together), weights(singly), rtol=1e-5, atol=1e-6)
    a, b = together.snapshot(), singly.snapshot()
    assert a.state["scheduler"] == b.state["scheduler"]
    for name in a.tensors:
        if name.startswith("stream."):
            assert torch.equal(a.tensors[name], b.tensors[name]), name
        if name.endswith("step"):
            assert torch.equal(a.tensors[name], b.tensors[name]), name


@needs_compiler
@pytest.mark.parametrize("stop", [1, 20, 33])
def test_where_a_run_is_cut_does_not_matter(stop: int) -> None:
    whole, cut = make_trainer(beta=0.2), make_trainer(beta=0.2)
    whole.train(60)
    cut.train(stop)
    later = make_trainer(beta=0.2)
    later.restore(cut.snapshot().clone())
    later.train(60)
    assert torch.equal(weights(later), weights(whole))


@needs_compiler
def test_what_is_not_simple_is_done_singly() -> None:
    noise = FromNoise()
    bank = Bank(20, (2,), noise, Streams(0)["bank"])
    for trainer in (
        make_trainer(bank),
        make_trainer(sampler=MALA(0.1, T)),
        make_trainer(average=0.9),
        make_trainer(clip_norm=1.0),
        make_trainer(num_steps=101),
    ):
        assert len(list(islice(trainer.updates(4), 10))) == 1
        assert trainer.step == 1


@needs_compiler
def test_a_step_that_was_lowered_is_done_singly() -> None:
    trainer = make_trainer()
    trainer.remedies = Remedies(step_factor=0.5)
    assert len(list(trainer.updates(4))) == 1


class Spoilt:
    """The mixture, with a NaN in its eighth batch."""

    dim = 2

    def __init__(self) -> None:
        self.inner = make_density("mixture8-unequal")
        self.drawn = 0

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        self.drawn += 1
        x = self.inner.sample(n, generator)
        if self.drawn == 8:
            x[0, 0] = math.nan
        return x


@needs_compiler
def test_divergence_within_is_found_and_rolled_back() -> None:
    trainer = make_trainer(guard=GuardSettings(remedy="none"))
    trainer = Trainer(replace(trainer.parts, data=Spoilt()), batch_size=12, streams=Streams(3))
    said: list[str] = []
    steps: list[int] = []
    assert (
        trainer.train(100, on_event=said.append, on_update=lambda step, _: steps.append(step)) is Outcome.OK
    )
    assert steps == [*range(1, 8), *range(1, 101)]
    assert [text for text in said if "rolled back to update 0" in text] == said
    assert len(said) == 1
    assert "update 8: " in said[0]
    assert bool(torch.isfinite(weights(trainer)).all())


@needs_compiler
def test_without_a_guard_divergence_ends_the_run() -> None:
    trainer = make_trainer()
    trainer = Trainer(replace(trainer.parts, data=Spoilt()), batch_size=12, streams=Streams(3))
    with pytest.raises(DivergedError, match="diverged at update 8"):
        trainer.train(100)


@needs_compiler
def test_a_run_goes_on_the_way_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    """Native code that appears half-way, built by another program, must not change a run's rounding."""
    first = make_trainer()
    first.engine.compile = "auto"
    with monkeypatch.context() as patch:
        patch.setattr(engine_module, "library", lambda *, build: Built(None, "not built yet"))
        first.train(5)
    assert first.engine.path == "plain"
    resumed = make_trainer()
    resumed.restore(first.snapshot().clone())
    for trainer in (first, resumed):
        trainer.train(12)
        assert trainer.engine.path == "plain"
    assert torch.equal(weights(first), weights(resumed))
    native = make_trainer()
    native.train(5)
    later = make_trainer()
    later.engine.compile = "auto"  # for so few steps it would not build
    later.restore(native.snapshot().clone())
    later.train(12)
    assert later.engine.path == "native"
