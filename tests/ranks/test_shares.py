"""Several processes compute what one does: the contrast in all its forms, chains, banks, whole runs."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from burnin.assemble import build_trainer, model_of
from burnin.bench.together import Counted
from burnin.bench.traffic import traffic_of
from burnin.config import load_config
from burnin.core import InputError, Outcome
from burnin.drawing import Request, draw
from burnin.evaluation.bridge import MixtureBase
from burnin.evaluation.likelihood import log_normaliser
from burnin.objectives import VARIANTS, Negatives, Variant, contrast
from burnin.ranks import ALONE, Ranks
from burnin.rng import Streams
from burnin.samplers import MALA, run
from burnin.samplers.blocks import Share
from burnin.training.checkpoint import Snapshot
from tests.ranks.threads import together

SMALL = ["run.batch_size=22", "run.updates=12", "model.width=16", "model.depth=2", "model.average=0"]
PLAIN = ["sampler_from_noise={}", "sampler.num_steps=5", "sampler.step_size=0.05", "optimizer.warmup=0"]
CONSTANT = "layers.4.bias"
"""What is added to all energies: its gradient is 0 but for rounding, which Adam makes steps of."""


def network() -> nn.Module:
    generator = torch.Generator().manual_seed(0)
    layers = nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, 1)).double()
    for parameter in layers.parameters():
        nn.init.normal_(parameter, std=0.7, generator=generator)
    return layers


@pytest.mark.parametrize("pool", [None, "all"])
@pytest.mark.parametrize(("beta", "variant"), [(0.0, "default"), *((0.7, variant) for variant in VARIANTS)])
def test_the_contrast_of_three_processes_is_that_of_one(
    beta: float, variant: Variant, pool: str | None
) -> None:
    stream = torch.Generator().manual_seed(1)
    data, near, far = (
        k * torch.randn(n, 3, generator=stream).double() for k, n in ((1, 11), (2, 11), (4, 7))
    )
    weight = (1.0, 1.0) if pool else (2.0, 0.5)

    def learn(ranks: Ranks) -> tuple[list[float], list[Tensor]]:
        energy = network()
        arms = [
            Negatives(ranks.own(x), w, beta, variant, pool) for x, w in zip((near, far), weight, strict=True)
        ]
        loss, infos = contrast(energy, ranks.own(data), arms, temperature=0.5, ranks=ranks)
        loss.backward()  # type: ignore[no-untyped-call]
        ranks.sum_gradients(energy.parameters())
        said = [number for info in infos for number in (*info[:3], *(info.beta or ()))]
        return [loss.item(), *said], [p.grad for p in energy.parameters() if p.grad is not None]

    said_by_one, wanted = learn(ALONE)
    answers = together(3, learn)
    assert len(wanted) == 4
    for said, gradients in answers:
        assert said == pytest.approx(said_by_one, rel=1e-10), "loss, d and weights are those of all"
        assert said == answers[0][0], "and the same bits everywhere"
        for gradient, one in zip(gradients, wanted, strict=True):
            torch.testing.assert_close(gradient, one, rtol=1e-10, atol=1e-12)
    # Were the weights normalised on each process, β's gradient would be another.
    if beta:
        alone = [
            contrast(network(), data[rows], [Negatives(near[rows], 1.0, beta, variant)], temperature=0.5)[0]
            for rows in (slice(0, 5), slice(5, 11))
        ]
        whole = contrast(network(), data, [Negatives(near, 1.0, beta, variant)], temperature=0.5)[0]
        assert abs(torch.stack(alone).mean().item() - whole.item()) > 1e-3


def test_chains_have_the_same_noise_wherever_they_run() -> None:
    start = torch.randn(7, 4, generator=torch.Generator().manual_seed(2)).double()
    sampler = MALA(0.3, 1.0)

    def walk(ranks: Ranks) -> Tensor:
        state = sampler.init(bowl, ranks.own(start))
        stream, share = torch.Generator().manual_seed(3), Share.of(ranks, [7])
        result = run(sampler, bowl, state, num_steps=130, generator=stream, share=share)
        return ranks.gather(result.state.position, 7)

    for ends in together(3, walk):
        assert ends.equal(walk(ALONE))


def trained(ranks: Ranks, changes: list[str], start: Snapshot | None = None, updates: int = 12) -> Run:
    """Losses and metrics of some updates, and where they end, as a checkpoint holds it."""
    trainer = build_trainer(load_config("rings", [*SMALL, *PLAIN, *changes]), ranks=ranks)
    if start is not None:
        trainer.restore(start.clone())
    seen: list[dict[str, float]] = []
    trainer.train(trainer.step + updates, on_update=lambda step, numbers: seen.append(dict(numbers)))
    return seen, trainer._of_all(trainer.snapshot()).clone()


Run = tuple[list[dict[str, float]], Snapshot]


def assert_same(run: Run, wanted: Run, tolerance: float) -> None:
    for numbers, one in zip(run[0], wanted[0], strict=True):
        assert numbers.keys() == one.keys()
        for name, value in numbers.items():
            assert value == pytest.approx(one[name], rel=tolerance, abs=tolerance), name
    for name, tensor in wanted[1].tensors.items():
        if name.startswith("stream."):
            assert run[1].tensors[name].equal(tensor), "everybody draws alike"
        elif not name.endswith(CONSTANT):
            torch.testing.assert_close(run[1].tensors[name], tensor, rtol=tolerance, atol=tolerance, msg=name)


@pytest.mark.parametrize(
    "changes",
    [
        ["scheme.name=hybrid", "scheme.beta=0.3", "scheme.beta_on=both"],
        ["scheme.name=hybrid", "scheme.pooled=true", "scheme.beta_on=both", "scheme.variant=true_objective"],
        ["scheme.name=refresh", "scheme.bank_size=100", "scheme.exchange=true", "scheme.beta=0"],
        ["scheme.name=noise", "sampler.kind=mala", "run.compile=never", "model.average=0.9"],
    ],
)
def test_a_run_of_two_is_the_run_of_one(changes: list[str]) -> None:
    wanted = trained(ALONE, [*changes, "run.compile=never"])
    for run_of_two in together(2, partial(trained, changes=changes)):
        assert_same(run_of_two, wanted, 2e-4)


def test_a_run_goes_on_with_another_number_of_processes() -> None:
    changes = ["scheme.name=persistent", "scheme.bank_size=90", "scheme.exchange=true"]
    wanted = trained(ALONE, changes)
    _, first = together(2, partial(trained, changes=changes, updates=4))[1]
    _, second = trained(ALONE, changes, first, 4)
    last = together(3, partial(trained, changes=changes, start=second, updates=4))[2]
    assert first.tensors["start.bank.position"].shape == (90, 10)
    assert_same((wanted[0][8:], last[1]), (last[0], wanted[1]), 2e-4)


def test_a_bank_without_exchange_keeps_chains_where_they_are() -> None:
    changes = ["scheme.name=persistent", "scheme.bank_size=50"]
    before = trained(ALONE, changes, updates=1)[1]

    def keep(ranks: Ranks) -> tuple[Tensor, Tensor]:
        trainer = build_trainer(load_config("rings", [*SMALL, *PLAIN, *changes]), ranks=ranks)
        bank = trainer.parts.arms[0].start
        held = copy.deepcopy(bank.state()["position"])
        trainer.update()
        return held, bank.state()["position"]

    first, second = together(2, keep)
    assert torch.cat([first[0], second[0]]).shape == before.tensors["start.bank.position"].shape
    for old, new in (first, second):
        assert int((old != new).any(1).sum()) == 11, "half of the batch is drawn from each half of the bank"


def test_samples_and_a_normaliser_are_those_of_one(tmp_path: Path) -> None:
    config = load_config("rings", [*SMALL, *PLAIN, "scheme.name=noise", "run.compile=never"])

    def use(ranks: Ranks, request: Request) -> tuple[Tensor, list[float]]:
        model = replace(model_of(build_trainer(config), config), ranks=ranks)
        assert draw(model, request, Streams(1)["sample"], lambda *_: None) is Outcome.OK
        ranks.any(False)  # the file is whole
        stream = Streams(2)["normaliser"]
        base = MixtureBase.fit(1.5 * torch.randn(200, 2, generator=stream))
        z = log_normaliser(bowl, 1.0, base, generator=stream, particles=31, most_laws=20, ranks=ranks)
        return torch.from_numpy(np.load(request.output)), [z.lower, z.upper, z.lower_error, z.acceptance]

    samples, numbers = use(ALONE, Request(25, tmp_path / "alone.npy", block=10))
    assert samples.shape == (25, 10)
    shared = Request(25, tmp_path / "shared.npy", block=10)
    for found, said in together(3, partial(use, request=shared)):
        torch.testing.assert_close(found, samples, rtol=1e-5, atol=1e-5)
        assert said[:3] == pytest.approx(numbers[:3], rel=1e-9)
        assert said[3] == pytest.approx(numbers[3], rel=1e-6), "a mean of 32-bit means"


def bowl(x: Tensor) -> Tensor:
    return 0.5 * x.square().sum(1)


@pytest.mark.parametrize("exchange", [False, True])
def test_the_traffic_on_paper_is_that_of_an_update(exchange: bool) -> None:
    changes = ["scheme.name=persistent", "scheme.bank_size=60", f"scheme.exchange={str(exchange).lower()}"]
    config = load_config("rings", [*SMALL, *PLAIN, *changes, "sampler.scale=none"])

    def count(ranks: Ranks) -> tuple[int, int]:
        counted = Counted(ranks)
        trainer = build_trainer(config, ranks=counted)
        trainer.update()
        counted.any(False)  # Ctrl-C
        weights = sum(parameter.numel() for parameter in trainer.parts.energy.parameters())
        paper = traffic_of(weights, 22, [22], 22 * 10 if exchange else 0)
        assert (counted.bytes, counted.messages) == (paper.total, paper.messages)
        return counted.bytes, counted.messages

    assert len(set(together(2, count))) == 1


def test_what_cannot_be_shared_is_refused() -> None:
    with pytest.raises(InputError, match="batch_size is 2 for 3 processes"):
        together(3, partial(trained, changes=["run.batch_size=2"]))
    with pytest.raises(InputError, match="without chains is trained by one process"):
        together(2, partial(trained, changes=["objective.name=score-matching"]))
    with pytest.raises(InputError, match="an arm has 1 chains for 2 processes"):
        together(2, partial(trained, changes=["sampler.num_chains=1"]))
