"""Named streams: the same numbers whatever ran before, and no global generator is ever touched."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from burnin.core import Sampler
from burnin.data import make_density
from burnin.energies import MLP, FourierFeatures, GaussianFactor, Standardised
from burnin.objectives import Negatives, contrast
from burnin.rng import Streams, derive_seed
from burnin.samplers import HMC, MALA, Annealed, Knots, Langevin, run
from burnin.starts import Bank, FromData, FromNoise


def numbers(streams: Streams, name: str, n: int = 5) -> Tensor:
    return torch.randn(n, generator=streams[name])


def test_same_seed_same_numbers_whatever_ran_before() -> None:
    first = numbers(Streams(3), "data")
    torch.randn(17)
    busy = Streams(3)
    for name in ("weights", "chains", "bank"):
        numbers(busy, name, 100)
    assert numbers(busy, "data").equal(first)


def test_seeds_and_names_make_different_streams() -> None:
    seeds = {derive_seed(seed, name) for seed in range(200) for name in ("data", "chains", "bank", "1:data")}
    assert len(seeds) == 800
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_derived_seeds_never_change() -> None:
    """Old runs can only be repeated if these stay as they are."""
    assert derive_seed(0, "data") == 3076310938880880568


def test_streams_do_not_correlate() -> None:
    """20,000 normals of two streams: |r|·sqrt(n) is standard normal, so 4.5 has p = 7e-6."""
    streams, n = Streams(0), 20_000
    draws = [numbers(streams, name, n).numpy() for name in ("data", "chains", "bank")]
    draws += [numbers(Streams(1), "data", n).numpy()]
    correlations = np.corrcoef(np.stack(draws))[np.triu_indices(4, 1)]
    assert np.abs(correlations).max() * n**0.5 < 4.5
    assert all(stats.kstest(draw, "norm").pvalue > 1e-4 for draw in draws)


def test_use_of_one_stream_leaves_the_other_alone() -> None:
    alternating, alone = Streams(5), Streams(5)
    mixed = []
    for _ in range(4):
        mixed.append(numbers(alternating, "a", 3))
        numbers(alternating, "b", 7)
    assert torch.cat(mixed).equal(torch.cat([numbers(alone, "a", 3) for _ in range(4)]))


def test_a_stream_is_the_same_object_ever_after() -> None:
    streams = Streams(0)
    data = streams["data"]
    saved = streams.state()
    assert streams["data"] is data
    first = numbers(streams, "data")
    streams.restore(saved)
    assert streams["data"] is data
    assert torch.randn(5, generator=data).equal(first)


def test_state_and_restore_round_trip() -> None:
    streams = Streams(7)
    numbers(streams, "data", 3)
    numbers(streams, "chains", 4)
    saved = streams.state()
    assert set(saved) == {"data", "chains"}
    expected = {name: numbers(streams, name) for name in saved}
    late = numbers(streams, "late")
    numbers(streams, "late")
    streams.restore(saved)
    assert all(numbers(streams, name).equal(value) for name, value in expected.items())
    assert numbers(streams, "late").equal(late), "a stream that the state does not know starts afresh"
    other = Streams(7)
    other.restore(saved)
    assert all(numbers(other, name).equal(value) for name, value in expected.items())


def test_state_is_a_copy() -> None:
    streams = Streams(0)
    numbers(streams, "data")
    saved = streams.state()
    before = saved["data"].clone()
    numbers(streams, "data", 1000)
    assert saved["data"].equal(before)


@pytest.mark.parametrize("sampler", ["langevin", "mala", "hmc", "annealed"])
def test_global_generators_are_untouched(sampler: str) -> None:
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # type: ignore[index]  # noqa: NPY002
    streams = Streams(0)
    net = MLP(FourierFeatures.size(2, (1.0,)), width=8, depth=2, generator=streams["weights"])
    mean, std = torch.zeros(2), torch.ones(2)
    energy = GaussianFactor(
        Standardised(FourierFeatures(net, (1.0,)), mean, std), mean, std, temperature=0.5, learned=True
    )
    x = make_density("rings4").sample(32, streams["data"])
    bank = Bank(64, (2,), FromNoise("uniform"), streams["bank"], refresh=0.5)
    drawn = bank.draw(x, streams["bank"])
    FromData().draw(x, streams["bank"])
    cooling = Knots(((0, 8.0), (5, 1.0)))
    samplers: dict[str, Sampler] = {
        "langevin": Langevin(0.01, 0.5),
        "mala": MALA(0.01, 0.5),
        "hmc": HMC(0.1, 2, 0.5),
        "annealed": Annealed(MALA(0.01, 0.5), cooling, resample_below=1.0),
    }
    chosen = samplers[sampler]
    result = run(
        chosen, energy, chosen.init(energy, drawn.position), num_steps=8, generator=streams["chains"]
    )
    bank.store(drawn, result.state.position)
    torch.autograd.backward(contrast(energy, x, [Negatives(result.state.position)])[0])
    after = torch.get_rng_state(), np.random.get_state()[1], random.getstate()  # type: ignore[index]  # noqa: NPY002
    assert after[0].equal(before[0])
    assert np.array_equal(after[1], before[1])
    assert after[2] == before[2]
