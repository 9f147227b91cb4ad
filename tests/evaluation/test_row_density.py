"""Densities of rows against what they must be: probabilities that add up, integrals, known normalisers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from burnin.data import EncodedRows, Encoding, Frame
from burnin.data.whitening import corners_of
from burnin.evaluation import MixtureBase
from burnin.evaluation.normaliser import normalise
from burnin.evaluation.row_density import row_log_density
from burnin.evaluation.tracking import LikelihoodTrack


class StandardNormal(nn.Module):
    """E = T ‖z‖²/2, so that log Z = d/2 · log 2π."""

    def forward(self, z: Tensor) -> Tensor:
        return 0.25 * z.square().sum(1)


def log_z(dim: int) -> float:
    return 0.5 * dim * math.log(2 * math.pi)


def test_a_continuous_column_has_the_density_of_its_own_units() -> None:
    values = np.random.default_rng(0).normal(3e6, 1e5, size=500)
    frame = Frame({"x": values})
    encoding = Encoding.fit(frame)
    found = row_log_density(StandardNormal(), 0.5, log_z(1), encoding, encoding.codes(frame))
    expected = stats.norm(values.mean(), values.std()).logpdf(values)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_whitened_columns_have_the_density_of_the_shrunk_gaussian() -> None:
    stream = np.random.default_rng(0)
    x = stream.normal(size=(4000, 3)) @ np.array([[1.0, 0.9, 0.0], [0.0, 0.3, 0.5], [0.0, 0.0, 20.0]])
    frame = Frame.of_numbers(x)
    encoding = Encoding.fit(frame)
    found = row_log_density(StandardNormal(), 0.5, log_z(3), encoding, encoding.codes(frame))
    expected = stats.multivariate_normal(x.mean(0), np.cov(x.T)).logpdf(x)
    # Shrunk by less than a hundredth with 4,000 rows.
    assert abs((found - expected).mean()) < 0.01
    np.testing.assert_allclose(found, expected, atol=0.3)


def test_integers_have_the_probability_of_their_cell() -> None:
    frame = Frame({"n": np.random.default_rng(0).poisson(4.0, 300).astype(float)})
    encoding = Encoding.fit(frame)
    every = np.arange(-30.0, 40.0)
    found = row_log_density(StandardNormal(), 0.5, log_z(1), encoding, every[:, None])
    mean, matrix = encoding.affine
    law = stats.norm(mean.item(), 1 / matrix.item())
    np.testing.assert_allclose(
        np.exp(found), law.cdf(every + 0.5) - law.cdf(every - 0.5), rtol=2e-3, atol=1e-7
    )
    assert abs(np.exp(found).sum() - 1) < 1e-3


class Words(nn.Module):
    """The energy at T = 0.5 of words in given shares with the encoding's own noise around their corners."""

    def __init__(self, encoding: Encoding, shares: list[float]) -> None:
        super().__init__()
        self.affine, self.log_shares = encoding.affine, torch.tensor(shares, dtype=torch.float64).log()

    def forward(self, z: Tensor) -> Tensor:
        mean, matrix = self.affine
        features = z.double() @ torch.linalg.inv(matrix) + mean
        corners = corners_of(len(self.log_shares))
        each = self.log_shares - 0.5 * torch.cdist(features, corners).square()
        return -0.5 * (each.logsumexp(1) - 0.5 * corners.shape[1] * math.log(2 * math.pi))


def test_words_have_their_probabilities() -> None:
    frame = Frame({"w": np.array(["a", "b", "c"] * 20, dtype=object)})
    encoding = Encoding.fit(frame)
    shares = [0.6, 0.3, 0.1]
    energy = Words(encoding, shares)
    found = np.exp(row_log_density(energy, 0.5, encoding.log_volume, encoding, np.arange(3.0)[:, None]))
    # The noise of a word leaves its cell in less than 1.5% of the draws; 64 points see that much roughly.
    np.testing.assert_allclose(found, shares, atol=0.02)
    assert abs(found.sum() - 1) < 0.03


def test_a_word_never_seen_has_no_density() -> None:
    frame = Frame({"w": np.array(["a", "b"] * 10, dtype=object)})
    encoding = Encoding.fit(frame)
    found = row_log_density(StandardNormal(), 0.5, log_z(1), encoding, np.array([[0.0], [np.nan]]))
    assert np.isfinite(found[0])
    assert found[1] == -math.inf


def test_rows_do_not_see_each_other() -> None:
    frame = Frame({"n": np.arange(30.0), "w": np.array(["a", "b", "c"] * 10, dtype=object)})
    encoding = Encoding.fit(frame)
    codes = encoding.codes(frame)
    whole = row_log_density(StandardNormal(), 0.5, 0.0, encoding, codes)
    alone = [row_log_density(StandardNormal(), 0.5, 0.0, encoding, codes[i : i + 1])[0] for i in range(30)]
    np.testing.assert_allclose(whole, alone, rtol=1e-12)


def test_normaliser_by_a_grid_and_by_annealing() -> None:
    stream = torch.Generator().manual_seed(0)
    for dim, by in ((1, "a grid"), (2, "a grid"), (3, "annealed importance sampling")):
        points = torch.randn(1000, dim, generator=stream)
        found = normalise(StandardNormal(), 0.5, points, generator=stream)
        assert found.by == by
        assert found.trusted
        assert found.low - 1e-3 <= log_z(dim) <= found.high + 1e-3
        assert found.high - found.low < 0.3


def test_a_long_tail_in_the_plane_is_not_left_to_a_coarse_grid() -> None:
    stream = torch.Generator().manual_seed(0)
    points = torch.randn(1000, 2, generator=stream)
    points[0] = 60.0
    found = normalise(StandardNormal(), 0.5, points, generator=stream)
    assert found.by == "annealed importance sampling"
    assert found.low - 0.1 <= log_z(2) <= found.high + 0.1


class Narrowed:
    """The correction that makes N(0, 1) of N(0, wide²) in every dimension, at T = `times`."""

    def __init__(self, wide: float, times: float = 1.0) -> None:
        self._rest = 0.5 * times * (1 - 1 / wide**2)

    def correction(self, x: Tensor) -> Tensor:
        return self._rest * x.square().sum(1)


def test_the_track_says_the_likelihood_and_when_it_does_not_know_it() -> None:
    stream = torch.Generator().manual_seed(0)
    dim, wide = 3, 1.4
    points = torch.randn(2000, dim, generator=stream)
    base = MixtureBase(torch.zeros(1), torch.zeros(1, dim).double(), wide * torch.ones(1, dim).double())
    look = LikelihoodTrack(1.0, points, base, stream, draws=5000).look(Narrowed(wide))
    exact = stats.norm.logpdf(points.numpy()).sum(1).mean()
    # 1 + the weights' variance is (wide² / sqrt(2 wide² - 1))^dim: 4 standard errors of their mean.
    variance = (wide**2 / math.sqrt(2 * wide**2 - 1)) ** dim - 1
    assert abs(look.value - exact) < 4 * math.sqrt(variance / 5000)
    assert look.trusted
    assert abs(look.draws / (5000 / (1 + variance)) - 1) < 0.2
    far = MixtureBase(torch.zeros(1), torch.zeros(1, 20).double(), 4 * torch.ones(1, 20).double())
    lost = LikelihoodTrack(1.0, torch.randn(10, 20, generator=stream), far, stream).look(Narrowed(4.0))
    assert not lost.trusted


@pytest.mark.parametrize("times", [0.7, 3.0])
def test_the_best_temperature_undoes_what_is_too_strong_or_too_weak(times: float) -> None:
    stream = torch.Generator().manual_seed(1)
    dim, wide = 3, 1.4
    points = torch.randn(2000, dim, generator=stream)
    base = MixtureBase(torch.zeros(1), torch.zeros(1, dim).double(), wide * torch.ones(1, dim).double())
    track = LikelihoodTrack(1.0, points, base, stream, draws=5000)
    found = times / track.best_temperature(Narrowed(wide, times))
    # The curvature of the likelihood in 1/T is the correction's variance under p, times²·spread²: the best
    # has a standard error of the two means' over that.
    spread = Narrowed(wide).correction(points).std().item()
    error = math.sqrt(1 / 2000 + 1 / track.look(Narrowed(wide)).draws) / spread
    assert abs(found - 1) < 4 * error


def test_fresh_noise_stays_in_the_cells() -> None:
    frame = Frame({"w": np.array(["a", "b", "c", "d"] * 100, dtype=object)})
    encoding = Encoding.fit(frame)
    rows = EncodedRows(encoding, encoding.codes(frame))
    z = rows.sample(20_000, torch.Generator().manual_seed(0))
    decoded, _ = encoding.decode(z)
    # Each word in its share, within 4 standard errors; with noise that left its cell they would mix.
    shares = [(decoded.columns["w"] == level).mean() for level in "abcd"]
    assert np.abs(np.array(shares) - 0.25).max() < 4 * math.sqrt(0.25 * 0.75 / 20_000)
