"""Neighbours, precision and recall, density and coverage: against brute force and against theory."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from burnin.core import InputError
from burnin.evaluation import neighbours
from burnin.evaluation.coverage import coverage_of, same_law_coverage
from burnin.evaluation.memorisation import memorisation
from burnin.evaluation.neighbours import nearest


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a test's few rows make many blocks, the last of them short."""
    monkeypatch.setattr(neighbours, "ROWS", 7)
    monkeypatch.setattr(neighbours, "COLUMNS", 11)


def normal(n: int, dim: int, seed: int) -> Tensor:
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("itself", [False, True])
def test_neighbours_are_those_of_brute_force(itself: bool) -> None:
    x, y = normal(40, 3, 0), normal(53, 3, 1)
    among = x if itself else y
    distance = (x.unsqueeze(1) - among.unsqueeze(0)).norm(dim=2)
    if itself:
        distance.fill_diagonal_(math.inf)
    expected, index = distance.sort(dim=1)
    found = nearest(x, among, k=4, itself=itself)
    torch.testing.assert_close(found.distance, expected[:, :4])
    assert torch.equal(found.index, index[:, :4])


def test_a_copy_is_at_distance_0_even_far_from_the_origin() -> None:
    among = 1e4 + normal(200, 50, 0).float()
    found = nearest(among[17:20], among)
    assert found.distance.flatten().tolist() == [0.0, 0.0, 0.0]
    assert found.index.flatten().tolist() == [17, 18, 19]


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(InputError, match="5 neighbours are wanted among 5 rows"):
        nearest(normal(5, 2, 0), normal(5, 2, 0), k=5, itself=True)
    with pytest.raises(InputError, match="2 and 3 numbers"):
        nearest(normal(5, 2, 0), normal(5, 3, 0))


def brute_force(samples: Tensor, data: Tensor) -> tuple[float, float, float, float]:
    """The four numbers as their papers write them, point by point."""
    between = (samples.unsqueeze(1) - data.unsqueeze(0)).norm(dim=2)

    def radius(x: Tensor, k: int) -> Tensor:
        return torch.cdist(x, x).sort(dim=1).values[:, k]

    of_data, of_samples, wide = radius(data, 3), radius(samples, 3), radius(data, 5)
    n, m = between.shape
    precision = sum(any(between[i, j] <= of_data[j] for j in range(m)) for i in range(n)) / n
    recall = sum(any(between[i, j] <= of_samples[i] for i in range(n)) for j in range(m)) / m
    density = sum(int(between[i, j] <= wide[j]) for i in range(n) for j in range(m)) / (5 * n)
    coverage = sum(any(between[i, j] <= wide[j] for i in range(n)) for j in range(m)) / m
    return precision, recall, density, coverage


@pytest.mark.usefixtures("small_blocks")
def test_coverage_is_that_of_brute_force() -> None:
    samples, data = 0.7 * normal(30, 2, 2) + 0.5, normal(41, 2, 3)
    found = coverage_of(samples, data)
    expected = brute_force(samples, data)
    assert (found.precision, found.recall, found.density, found.coverage) == pytest.approx(expected)
    assert 0.2 < found.recall < 1  # so that the comparison says something


def test_samples_of_the_same_law_get_what_theory_says() -> None:
    """Density 1 and coverage 1 - Π (m - i)/(m + n - i) in expectation (Naeem et al., lemmas 1 and 2).

    Twenty independent pairs of sets: the mean must be within 4 of its own standard errors.
    """
    n, m = 150, 100
    found = [coverage_of(normal(n, 4, 2 * i), normal(m, 4, 2 * i + 1)) for i in range(20)]
    for values, expected in (
        (torch.tensor([one.density for one in found]), 1.0),
        (torch.tensor([one.coverage for one in found]), same_law_coverage(n, m)),
    ):
        assert abs(values.mean().item() - expected) < 4 * values.std().item() / math.sqrt(20)
    # A sample is outside every ball of 3 neighbours only where it is farther out than them.
    assert min(one.precision for one in found) > 0.6
    assert min(one.recall for one in found) > 0.6


def test_collapsed_samples_are_precise_and_cover_little() -> None:
    data = torch.cat([normal(100, 2, 0), normal(100, 2, 1) + 50])
    found = coverage_of(normal(200, 2, 2), data)
    assert found.precision > 0.9
    assert found.recall < 0.51
    assert found.coverage <= 0.5
    far = coverage_of(data + 1e3, data)
    assert (far.precision, far.recall, far.density, far.coverage) == (0, 0, 0, 0)


def test_memorisation_of_fresh_samples_is_chance_and_of_copies_is_seen() -> None:
    """Under the null z is standard normal: over 200 sets its mean square is 1, within 4·sqrt(2/200)."""
    z, share = [], []
    for i in range(200):
        x = normal(180, 3, i)
        found = memorisation(x[:40], x[40:120], x[120:])
        z.append(found.z)
        share.append(found.nearer)
    assert abs(torch.tensor(z).square().mean().item() - 1) < 4 * math.sqrt(2 / 200)
    assert abs(torch.tensor(share).mean().item() - 0.5) < 4 * torch.tensor(share).std().item() / math.sqrt(
        200
    )
    training, held_out = normal(300, 3, 1), normal(200, 3, 2)
    copies = memorisation(training[:60] + 1e-3, training, held_out, neighbours=2)
    assert copies.z > 8
    assert copies.copies > 0.9
    assert copies.neighbours.index[:, 0].tolist() == list(range(60))
    assert memorisation(held_out * 3, training, held_out).z < -3


def test_memorisation_is_the_test_of_scipy() -> None:
    from scipy.stats import mannwhitneyu

    training = normal(50, 2, 0).round(decimals=0)  # on a grid, so that distances tie
    samples, held_out = normal(40, 2, 1).round(decimals=0), normal(30, 2, 2).round(decimals=0)
    found = memorisation(samples, training, held_out)
    s, h = nearest(samples, training).distance[:, 0], nearest(held_out, training).distance[:, 0]
    expected = mannwhitneyu(s.numpy(), h.numpy(), use_continuity=False, method="asymptotic")
    assert math.erfc(abs(found.z) / math.sqrt(2)) == pytest.approx(expected.pvalue)
    assert found.nearer == pytest.approx(1 - expected.statistic / (40 * 30))
