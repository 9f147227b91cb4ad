"""The energy distance against scipy and theory, and its unit: 1 is what chance alone gives 19 times in 20."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import scipy.stats
import torch
from torch import Tensor

from burnin.core import InputError
from burnin.evaluation.distance import DistanceScale, energy_distance, mean_distance


@dataclass(frozen=True)
class Normal:
    """N(shift, I)."""

    dim: int = 3
    shift: float = 0.0

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        return self.shift + torch.randn(n, self.dim, generator=generator)


def normal(n: int, dim: int, seed: int, shift: float = 0.0) -> Tensor:
    return Normal(dim, shift).sample(n, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("sizes", [(1, 1), (7, 7), (50, 31), (2000, 1500)])
@pytest.mark.parametrize("shift", [0.0, 0.5, 20.0])
def test_in_one_dimension_it_is_the_square_of_scipys(sizes: tuple[int, int], shift: float) -> None:
    """scipy returns sqrt(2∫(F-G)²); ℰ = 2∫(F-G)²."""
    x, y = normal(sizes[0], 1, 0).double(), normal(sizes[1], 1, 1, shift).double()
    expected = scipy.stats.energy_distance(x.flatten().numpy(), y.flatten().numpy()) ** 2
    assert energy_distance(x, y) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_of_two_gaussians_it_is_what_theory_says() -> None:
    """E|X - Y| of N(0, 2) and N(m, 2) is a folded normal's mean."""
    m, n = 1.5, 4000
    x, y = normal(n, 1, 0), normal(n, 1, 1, m)
    s = math.sqrt(2)
    folded = s * math.sqrt(2 / math.pi) * math.exp(-(m**2) / (2 * s**2)) + m * math.erf(
        m / (s * math.sqrt(2))
    )
    expected = 2 * folded - 2 * s * math.sqrt(2 / math.pi)
    assert energy_distance(x, y) == pytest.approx(expected, abs=0.1)


def test_symmetric_zero_for_equal_and_never_negative() -> None:
    x, y = normal(300, 4, 0), normal(200, 4, 1)
    assert energy_distance(x, y) == pytest.approx(energy_distance(y, x), rel=1e-5)
    assert energy_distance(x, x) == 0
    shuffled = x[torch.randperm(300, generator=torch.Generator().manual_seed(0))]
    assert abs(energy_distance(x, shuffled)) < 1e-6
    for seed in range(20):
        assert energy_distance(normal(40, 3, seed), normal(30, 3, seed + 100)) > 0


def test_chunks_and_shapes_do_not_matter() -> None:
    x, y = normal(130, 6, 0), normal(70, 6, 1)
    assert mean_distance(x, y, chunk=7) == pytest.approx(mean_distance(x, y), rel=1e-6)
    assert energy_distance(x.reshape(130, 2, 3), y.reshape(70, 2, 3)) == energy_distance(x, y)


def test_data_far_from_the_origin_keep_their_digits() -> None:
    x, y = normal(500, 3, 0), normal(500, 3, 1, 0.1)
    near = energy_distance(x.double(), y.double())
    assert energy_distance(x + 1000, y + 1000) == pytest.approx(near, rel=1e-3)


def test_about_five_per_cent_of_fresh_pairs_exceed_the_unit() -> None:
    """Pairs of new data sets, against the fitted percentile.

    The percentile of 12 × 12 dependent pairs has an error of its own: its level, were the 24 sets only
    as good as 24 independent pairs, has a sd of sqrt(.05·.95/24) = 0.044. With 300 new pairs of sd 0.013
    the share lies within 0.05 + 3·0.046 = 0.19; averaged over eight fits within 0.05 ± 3·0.016.
    """
    shares = []
    for seed in range(8):
        generator = torch.Generator().manual_seed(seed)
        scale = DistanceScale.fit(Normal(), 60, 80, generator)
        fresh = [
            energy_distance(Normal().sample(60, generator), Normal().sample(80, generator)) / scale.unit
            for _ in range(300)
        ]
        shares.append(sum(value > 1 for value in fresh) / 300)
    assert max(shares) < 0.19
    assert sum(shares) / 8 == pytest.approx(0.05, abs=0.048)
    assert sum(shares) > 0


def test_a_shifted_law_is_detected_and_a_right_one_is_not() -> None:
    generator = torch.Generator().manual_seed(3)
    scale = DistanceScale.fit(Normal(), 200, 300, generator)
    right = [scale.distance(Normal().sample(200, generator)) for _ in range(20)]
    wrong = [scale.distance(Normal(shift=0.5).sample(200, generator)) for _ in range(20)]
    assert max(right) < 3
    assert min(wrong) > 5
    assert scale.distance(Normal(shift=5.0).sample(200, generator)) > max(wrong)


def test_sizes_count() -> None:
    """ℰ between equal laws falls as 1/n + 1/m, and so does the unit."""
    small = DistanceScale.fit(Normal(), 50, 50, torch.Generator().manual_seed(0)).unit
    large = DistanceScale.fit(Normal(), 500, 500, torch.Generator().manual_seed(0)).unit
    assert small / large == pytest.approx(10, rel=0.35)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_samples_that_are_not_finite_are_infinitely_far(value: float) -> None:
    scale = DistanceScale.fit(Normal(), 20, 20, torch.Generator().manual_seed(0), num_sets=5)
    x = normal(20, 3, 0)
    x[3, 1] = value
    assert scale.distance(x) == math.inf


def test_too_few_sets_for_a_percentile() -> None:
    with pytest.raises(InputError, match="num_sets"):
        DistanceScale.fit(Normal(), 20, 20, torch.Generator(), num_sets=4)


def test_progress_counts_every_pair() -> None:
    ticks: list[int] = []
    DistanceScale.fit(Normal(), 5, 5, torch.Generator(), num_sets=6, progress=lambda: ticks.append(1))
    assert len(ticks) == 36


def test_draws_that_are_worth_fewer_are_told_in_the_unit_of_fewer() -> None:
    """Ten copies of each of 50 draws are worth 50, whatever their number."""
    stream = torch.Generator().manual_seed(0)
    law = Normal()
    scale = DistanceScale.fit(law, 500, 1000, stream)
    copied = law.sample(50, stream).repeat(10, 1)
    assert scale.distance(copied) > 2
    # 1 is the 95th percentile of chance; twice that is out of its reach.
    assert scale.distance(copied, effective=50) < 2
