"""Where chains begin: pairs, the moments of noise, and a bank that writes back where it drew."""

from __future__ import annotations

import math

import pytest
import torch
from scipy import stats
from torch import Tensor

from burnin.core import CheckpointError, Drawn, InputError, Start
from burnin.rng import Streams
from burnin.starts import Bank, FromData, FromNoise

BOUND = 4.5  # standard errors: p = 7e-6


def assert_moments(x: Tensor, mean: Tensor, variance: Tensor, kurtosis: float) -> None:
    """Mean and variance of each column, with the standard errors that independent draws have.

    The variance of a sample variance is σ⁴(κ - 1)/n, κ the (plain) kurtosis: 3 normal, 1.8 uniform.
    """
    n = len(x)
    assert bool(((x.mean(0) - mean).abs() < BOUND * (variance / n).sqrt()).all())
    error = variance * math.sqrt((kurtosis - 1) / n)
    assert bool((((x - mean).square().mean(0) - variance).abs() < BOUND * error).all())


@pytest.mark.parametrize("shape", [(3,), (2, 2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["data", "gaussian", "uniform", "bank", "refreshed"])
def test_every_start_draws_a_batch_like_the_data(
    kind: str, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    streams = Streams(0)
    noise = FromNoise("uniform" if kind == "uniform" else "gaussian")
    starts: dict[str, Start] = {"data": FromData(), "gaussian": noise, "uniform": noise}
    starts["bank"] = Bank(20, shape, noise, streams["bank"])
    starts["refreshed"] = Bank(20, shape, noise, streams["bank"], refresh=0.5)
    data = torch.randn(7, *shape, generator=streams["data"], dtype=dtype)
    given = data.clone()
    drawn = starts[kind].draw(data, streams["draw"])
    assert drawn.position.shape == data.shape
    assert drawn.position.dtype == dtype
    again = Streams(0)["draw"]
    assert starts[kind].draw(data, again).position.equal(drawn.position), "the stream decides, nothing else"
    starts[kind].store(drawn, drawn.position + 1)
    assert data.equal(given)


def test_from_data_pairs_chains_with_rows() -> None:
    x = torch.randn(9, 2, generator=torch.Generator().manual_seed(0))
    drawn = FromData().draw(x, torch.Generator())
    assert drawn.position.equal(x)
    assert drawn.places is None


def test_gaussian_noise_has_its_moments() -> None:
    x = FromNoise().sample((40_000, 3), Streams(1)["gaussian"], dtype=torch.float64)
    assert_moments(x, torch.zeros(3), torch.ones(3), kurtosis=3.0)
    assert stats.kstest(x.flatten().numpy(), "norm").pvalue > 1e-4


def test_uniform_noise_has_its_moments() -> None:
    x = FromNoise("uniform").sample((40_000, 3), Streams(1)["uniform"], dtype=torch.float64)
    assert_moments(x, torch.zeros(3), torch.full((3,), 1 / 3), kurtosis=1.8)
    assert stats.kstest(x.flatten().numpy(), "uniform", args=(-1, 2)).pvalue > 1e-4


@pytest.mark.parametrize(("kind", "unit", "kurtosis"), [("gaussian", 1.0, 3.0), ("uniform", 1 / 3, 1.8)])
def test_scale_and_shift_for_each_coordinate(kind: str, unit: float, kurtosis: float) -> None:
    scale, shift = (0.5, 2.0, 10.0), (3.0, 0.0, -7.0)
    start = FromNoise("uniform" if kind == "uniform" else "gaussian", scale, shift)
    data = torch.empty(40_000, 3, dtype=torch.float64)
    x = start.draw(data, Streams(2)[kind]).position
    assert_moments(x, torch.tensor(shift), unit * torch.tensor(scale).square(), kurtosis)
    z = FromNoise(start.kind).draw(data, Streams(2)[kind]).position
    torch.testing.assert_close(x, torch.tensor(shift) + torch.tensor(scale) * z)


def test_matched_noise_has_the_datas_moments() -> None:
    stream = Streams(3)["matched"]
    data = torch.randn(500, 3, generator=stream, dtype=torch.float64) * torch.tensor([1.0, 5.0, 0.1]) + 4
    start = FromNoise.matched(data)
    assert start.kind == "gaussian"
    assert start.scale == pytest.approx(tuple(data.std(0).tolist()))
    assert start.shift == pytest.approx(tuple(data.mean(0).tolist()))
    x = start.draw(torch.empty(40_000, 3, dtype=torch.float64), stream).position
    assert_moments(x, data.mean(0), data.var(0), kurtosis=3.0)


def test_matched_noise_refuses_a_constant_column() -> None:
    with pytest.raises(InputError, match="scale"):
        FromNoise.matched(torch.tensor([[1.0, 2.0], [1.0, 3.0]]))


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, (1.0, 0.0)])
def test_impossible_noise_is_refused(scale: float | tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="scale"):
        FromNoise(scale=scale)


def test_unknown_noise_is_refused() -> None:
    with pytest.raises(InputError, match="'cauchy'"):
        FromNoise("cauchy")  # type: ignore[arg-type]


@pytest.mark.parametrize("start", [FromData(), FromNoise()])
def test_starts_without_memory_have_no_state(start: Start) -> None:
    assert start.state() == {}
    start.restore({})
    with pytest.raises(CheckpointError, match=type(start).__name__):
        start.restore({"position": torch.zeros(1)})


# --- The bank -----------------------------------------------------------------------------------------


def numbered_bank(size: int, refresh: float = 0.0) -> Bank:
    """A bank whose chain number i stands at (i, i): it can be told from the others."""
    bank = Bank(size, (2,), FromNoise(shift=1e4), Streams(4)["fill"], refresh=refresh)
    bank.restore({"position": torch.arange(float(size)).unsqueeze(1).repeat(1, 2)})
    return bank


def test_chains_are_written_back_where_they_came_from() -> None:
    bank, stream = numbered_bank(50), Streams(4)["draw"]
    visits = torch.zeros(50)
    for _ in range(40):
        drawn = bank.draw(torch.empty(8, 2), stream)
        assert drawn.places is not None
        assert len(set(drawn.places.tolist())) == 8, "drawn without replacement"
        assert drawn.position.floor().equal(drawn.places.float().unsqueeze(1).repeat(1, 2))
        visits[drawn.places] += 1
        untouched = torch.ones(50, dtype=torch.bool)
        untouched[drawn.places] = False
        before = bank.position.clone()
        bank.store(drawn, drawn.position + 1 / 128)
        assert bank.position[untouched].equal(before[untouched])
    # Every chain still stands at its own number, moved on by 1/128 for each visit.
    expected = torch.arange(50.0) + visits / 128
    assert bank.position.equal(expected.unsqueeze(1).repeat(1, 2))


def test_a_draw_is_a_copy() -> None:
    bank = numbered_bank(5)
    drawn = bank.draw(torch.empty(5, 2), Streams(4)["draw"])
    drawn.position.add_(100)
    assert bank.position.equal(torch.arange(5.0).unsqueeze(1).repeat(1, 2))


def test_every_chain_is_drawn_equally_often() -> None:
    """χ² of 20 places over 4000 draws of 5. Without replacement counts vary less than multinomial ones,
    by (1 - 4/19), which the statistic is divided by."""
    bank, stream = numbered_bank(20), Streams(5)["draw"]
    counts = torch.zeros(20)
    for _ in range(4000):
        places = bank.draw(torch.empty(5, 2), stream).places
        assert places is not None
        counts[places] += 1
    statistic = float(((counts - 1000).square() / 1000).sum()) / (1 - 4 / 19)
    assert 1e-4 < stats.chi2.sf(statistic, 19) < 1 - 1e-4


def test_a_whole_bank_is_a_permutation() -> None:
    drawn = numbered_bank(30).draw(torch.empty(30, 2), Streams(6)["draw"])
    assert drawn.position[:, 0].sort().values.equal(torch.arange(30.0))
    assert not drawn.position[:, 0].equal(torch.arange(30.0))


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_the_refresh_share_is_binomial(share: float) -> None:
    """Refreshed chains stand near 10⁴, where only the noise puts them."""
    bank, stream = numbered_bank(500, refresh=share), Streams(7)[f"draw {share}"]
    counts = []
    for _ in range(200):
        drawn = bank.draw(torch.empty(100, 2), stream)
        counts.append(int((drawn.position[:, 0] > 5e3).sum()))
    total = 200 * 100
    error = math.sqrt(total * share * (1 - share))
    assert abs(sum(counts) - total * share) < BOUND * error
    # Each chain by itself, not whole batches: the counts' variance is the binomial's.
    variance = float(torch.tensor(counts, dtype=torch.float64).var())
    expected = 100 * share * (1 - share)
    assert abs(variance - expected) < BOUND * expected * math.sqrt(2 / 199)


def test_refreshed_chains_are_fresh_noise_and_take_the_old_place() -> None:
    bank, stream = numbered_bank(400, refresh=0.5), Streams(8)["draw"]
    drawn = bank.draw(torch.empty(200, 2), stream)
    assert drawn.places is not None
    fresh = drawn.position[:, 0] > 5e3
    assert 0 < int(fresh.sum()) < 200
    old = drawn.places.float().unsqueeze(1).repeat(1, 2)
    assert drawn.position[~fresh].equal(old[~fresh]), "the others go on"
    assert bank.position[drawn.places].equal(old), "a draw alone changes nothing"
    noise = drawn.position[fresh]
    assert len(set(map(tuple, noise.tolist()))) == len(noise), "each has noise of its own"
    bank.store(drawn, drawn.position)
    assert bank.position[drawn.places[fresh]].equal(noise)
    second = bank.draw(torch.empty(200, 2), stream)
    again = second.position[second.position[:, 0] > 5e3]
    kept = (again.unsqueeze(1) == noise.unsqueeze(0)).all(2).any(1)
    assert 0 < int(kept.sum()) < len(again), "stored noise comes back, and new noise is new"


def test_all_or_none_are_refreshed() -> None:
    stream = Streams(9)["draw"]
    none = numbered_bank(50, refresh=0.0).draw(torch.empty(50, 2), stream)
    every = numbered_bank(50, refresh=1.0).draw(torch.empty(50, 2), stream)
    assert not bool((none.position > 5e3).any())
    assert bool((every.position > 5e3).all())


def test_the_first_contents_are_the_noise() -> None:
    bank = Bank(40_000, (2,), FromNoise("gaussian", (2.0, 0.5), (1.0, -1.0)), Streams(10)["fill"])
    mean, variance = torch.tensor([1.0, -1.0]), torch.tensor([4.0, 0.25])
    assert_moments(bank.position.double(), mean.double(), variance.double(), kurtosis=3.0)


def test_state_and_restore_round_trip() -> None:
    bank, stream = Bank(20, (2,), FromNoise(), Streams(11)["fill"], refresh=0.2), Streams(11)["draw"]
    bank.store(bank.draw(torch.empty(5, 2), stream), torch.ones(5, 2))
    saved = {name: value.clone() for name, value in bank.state().items()}
    generator_state = stream.get_state()

    def work(bank: Bank) -> Tensor:
        stream.set_state(generator_state)
        for _ in range(3):
            drawn = bank.draw(torch.empty(5, 2), stream)
            bank.store(drawn, drawn.position * 2 + 1)
        return bank.position.clone()

    first = work(bank)
    other = Bank(20, (2,), FromNoise(), Streams(12)["other"], refresh=0.2)
    other.restore(saved)
    assert work(other).equal(first)
    bank.restore(saved)
    assert work(bank).equal(first), "restored twice: a restored bank does not share the checkpoint's memory"


@pytest.mark.parametrize("state", [{}, {"position": torch.zeros(19, 2)}, {"position": torch.zeros(20, 3)}])
def test_a_foreign_state_is_refused(state: dict[str, Tensor]) -> None:
    bank = Bank(20, (2,), FromNoise(), Streams(13)["fill"])
    before = bank.position.clone()
    with pytest.raises(CheckpointError, match=r"\(20, 2\)"):
        bank.restore(state)
    assert bank.position.equal(before)


@pytest.mark.parametrize(("size", "refresh"), [(0, 0.0), (-1, 0.0), (5, -0.1), (5, 1.1), (5, math.nan)])
def test_impossible_banks_are_refused(size: int, refresh: float) -> None:
    with pytest.raises(InputError, match="bank"):
        Bank(size, (2,), FromNoise(), torch.Generator(), refresh=refresh)


def test_a_batch_larger_than_the_bank_is_refused() -> None:
    with pytest.raises(InputError, match="a batch of 6 does not fit a bank of 5: raise bank_size"):
        numbered_bank(5).draw(torch.empty(6, 2), torch.Generator())


def test_chains_from_elsewhere_cannot_be_stored() -> None:
    with pytest.raises(AssertionError, match="not drawn from this bank"):
        numbered_bank(5).store(Drawn(torch.zeros(2, 2)), torch.zeros(2, 2))
