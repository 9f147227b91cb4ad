from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from burnin.core import InputError
from burnin.data import Moons, Pinwheel, Rings, SwissRoll, circles
from tests.data.grids import LogProb, assert_agree, assert_disagree, assert_mean_is, entropy, total_mass


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def along(curve: NDArray[np.float64], sd: float) -> LogProb:
    """The law of a uniform point of `curve`, (m, 2), plus noise: the integral that has no closed form."""
    points = torch.from_numpy(curve)

    def log_prob(x: Tensor) -> Tensor:
        squares = torch.cdist(x.double(), points).square()
        return torch.logsumexp(-0.5 * squares / sd**2, dim=1) - math.log(2 * math.pi * sd**2 * len(points))

    return log_prob


def moons_curve(sign_of_lower: float = 1.0) -> NDArray[np.float64]:
    t = (np.arange(150) + 0.5) * np.pi / 150
    upper = np.stack([np.cos(t), np.sin(t)], axis=1)
    lower = np.stack([1 - np.cos(t), 0.5 - sign_of_lower * np.sin(t)], axis=1)
    return np.asarray(2 * np.concatenate([upper, lower]) + np.array([-1.0, -0.2]))


def roll_curve(turns: float = 2.0) -> NDArray[np.float64]:
    t = 1.5 * np.pi * (1 + turns * (np.arange(400) + 0.5) / 400)
    return np.asarray(0.2 * np.stack([t * np.cos(t), t * np.sin(t)], axis=1))


def test_circles() -> None:
    density = circles()
    assert density == Rings((1.5, 3.0), sd=0.24)
    assert total_mass(density.log_prob, 5.0, 200) == pytest.approx(1.0, abs=1e-8)
    x = density.sample(100_000, seeded())
    assert_agree(x, density.log_prob, 4.0, cells=40, fine=12)
    assert_disagree(x, Rings((1.5, 3.0), sd=0.252).log_prob, 4.0, cells=40, fine=12)


@pytest.mark.parametrize(
    "pinwheel",
    [Pinwheel(), Pinwheel(arms=3, radial_sd=0.2, tangential_sd=0.3, rate=-0.6), Pinwheel(arms=1, rate=0.0)],
)
def test_pinwheel_density_and_samples(pinwheel: Pinwheel) -> None:
    assert total_mass(pinwheel.log_prob, 7.0, 900) == pytest.approx(1.0, abs=1e-6)
    x = pinwheel.sample(40_000, seeded())
    assert_agree(x, pinwheel.log_prob, 4.5)
    assert_mean_is(pinwheel.log_prob(x), -entropy(pinwheel.log_prob, 7.0, 900))


def test_pinwheel_check_sees_wrong_laws() -> None:
    x = Pinwheel().sample(40_000, seeded())
    for wrong in (Pinwheel(rate=0.26), Pinwheel(rate=-0.25), Pinwheel(tangential_sd=0.11), Pinwheel(arms=4)):
        assert_disagree(x, wrong.log_prob, 4.5)


def test_pinwheel_against_complex_numbers() -> None:
    """A turn is a product with exp(iθ): undo scale, arm and twist, and what is left is N((1, 0), diag)."""
    x = Pinwheel().sample(100, seeded()).double().numpy()
    u = (x[:, 0] + 1j * x[:, 1]) / 2
    density = np.zeros(len(u))
    for arm in range(5):
        w = u * np.exp(-1j * (2 * np.pi * arm / 5 + 0.25 * np.exp(np.abs(u))))
        density += stats.norm.pdf(w.real, 1.0, 0.3) * stats.norm.pdf(w.imag, 0.0, 0.1) / (5 * 2**2)
    np.testing.assert_allclose(Pinwheel().log_prob(torch.from_numpy(x)).numpy(), np.log(density), rtol=1e-10)


def test_pinwheel_of_one_straight_arm_is_a_gaussian() -> None:
    straight = Pinwheel(arms=1, rate=0.0, radial_sd=0.4, tangential_sd=0.2, scale=3.0)
    x = torch.randn(50, 2, generator=seeded(), dtype=torch.float64)
    expected = stats.norm.logpdf(x.numpy(), [3.0, 0.0], [1.2, 0.6]).sum(1)
    np.testing.assert_allclose(straight.log_prob(x).numpy(), expected, rtol=1e-12)


def test_pinwheel_far_away_is_finite() -> None:
    x = torch.tensor([[0.0, 0.0], [1e3, 0.0], [-1e6, 1e6]], requires_grad=True)
    logs = Pinwheel().log_prob(x)
    (score,) = torch.autograd.grad(logs.sum(), x)
    assert bool(logs.isfinite().all())
    assert bool(score.isfinite().all())


def test_moons_samples_follow_their_integral() -> None:
    x = Moons().sample(20_000, seeded())
    truth = along(moons_curve(), 0.2)
    assert_agree(x, truth, 3.6, cells=18, fine=6)
    assert_disagree(x, along(moons_curve(), 0.225), 3.6, cells=18, fine=6)
    assert_disagree(x, along(moons_curve(-1.0), 0.2), 3.6, cells=18, fine=6)


def test_moons_moments() -> None:
    """E cos t = 0 and E sin t = 2/π, so the two moons have their centres at (0, 2/π), (1, 1/2 - 2/π)."""
    x = (Moons().sample(20_000, seeded(1)) - torch.tensor([-1.0, -0.2])) / 2
    assert_mean_is(x[:, 0], 0.5)
    assert_mean_is(x[:, 1], 0.25)
    assert_mean_is(x[:, 0].square(), 0.5 * (0.5 + 1.5) + 0.01)
    assert_mean_is(x[:, 1].square(), 0.5 * (0.5 + 0.75 - 2 / math.pi) + 0.01)


def test_roll_samples_follow_their_integral() -> None:
    x = SwissRoll().sample(20_000, seeded())
    assert_agree(x, along(roll_curve(), 0.2), 3.6, cells=18, fine=6)
    assert_disagree(x, along(roll_curve(), 0.225), 3.6, cells=18, fine=6)
    assert_disagree(x, along(roll_curve(turns=1.9), 0.2), 3.6, cells=18, fine=6)


def test_roll_moments() -> None:
    """E|x|² = scale² E t² + 2 sd², with t uniform on [a, b]: E t² = (b³ - a³) / (3 (b - a))."""
    a, b = 1.5 * math.pi, 4.5 * math.pi
    x = SwissRoll().sample(20_000, seeded(1))
    assert_mean_is(x.square().sum(1), 0.04 * (b**3 - a**3) / (3 * (b - a)) + 2 * 0.04)


def test_bad_settings() -> None:
    with pytest.raises(InputError, match="arms is 0"):
        Pinwheel(arms=0)
    with pytest.raises(InputError, match="radial_sd is 0"):
        Pinwheel(radial_sd=0.0)
    with pytest.raises(InputError, match="scale is -1"):
        Pinwheel(scale=-1.0)
    with pytest.raises(InputError, match="rate is nan"):
        Pinwheel(rate=math.nan)
    with pytest.raises(InputError, match="sd is -1"):
        Moons(sd=-1.0)
    with pytest.raises(InputError, match="shift is"):
        Moons(shift=(0.0, math.inf))
    with pytest.raises(InputError, match="scale is 0"):
        SwissRoll(scale=0.0)
