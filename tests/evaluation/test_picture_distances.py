"""Fréchet and kernel distance and the Inception Score: closed forms, and the formula by scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import Tensor

from burnin.core import InputError
from burnin.evaluation.frechet import frechet_distance, inception_score
from burnin.evaluation.kernel_distance import kernel_distance


def normal(n: int, dim: int, seed: int) -> Tensor:
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_scipy(x: Tensor, y: Tensor) -> float:
    a, b = np.cov(x.numpy().T), np.cov(y.numpy().T)
    apart = (x.mean(0) - y.mean(0)).square().sum().item()
    return float(apart + np.trace(a + b - 2 * scipy.linalg.sqrtm(a @ b).real))


def test_the_frechet_distance_is_the_formula() -> None:
    pytest.importorskip("torchmetrics")
    mix = normal(5, 5, 0)
    x, y = normal(300, 5, 1) @ mix, 0.5 * normal(200, 5, 2) + 1
    assert frechet_distance(x, y) == pytest.approx(by_scipy(x, y), rel=1e-6)
    assert frechet_distance(y, x) == pytest.approx(by_scipy(x, y), rel=1e-6)
    # Exactly N(0, I) and N(1, 4I) in their moments: 5·(1 + (2 - 1)²).
    z = x - x.mean(0)
    white = z @ torch.linalg.inv(torch.linalg.cholesky(torch.cov(z.T))).T
    assert frechet_distance(white, 2 * white + 1) == pytest.approx(10.0, rel=1e-6)
    assert frechet_distance(white, white) == pytest.approx(0.0, abs=1e-6)


def test_fewer_rows_than_features_are_no_trouble() -> None:
    pytest.importorskip("torchmetrics")
    x, y = normal(20, 30, 1), normal(25, 30, 2)
    # With fewer rows the covariances are singular; tr (AB)^½ is the nuclear norm of the product of the data.
    a, b = (x - x.mean(0)) / math.sqrt(19), (y - y.mean(0)) / math.sqrt(24)
    apart = (x.mean(0) - y.mean(0)).square().sum() + a.square().sum() + b.square().sum()
    expected = (apart - 2 * torch.linalg.matrix_norm(a @ b.T, "nuc")).item()
    assert frechet_distance(x, y) == pytest.approx(expected, rel=1e-4)


def test_the_kernel_distance_is_unbiased_and_knows_its_error() -> None:
    """In one dimension, MMD² = Σ_j C(3, j) (E xʲ - E yʲ)²: moments of N(0, 1) and N(½, 1).

    100 pairs of sets: their mean within 4 standard errors of it, their spread as the errors say within 30%
    (100 sets know a spread to 7%).
    """
    first, second = (0.0, 1.0, 0.0), (0.5, 1.25, 1.625)
    expected = sum(math.comb(3, j + 1) * (first[j] - second[j]) ** 2 for j in range(3))
    found = [kernel_distance(normal(120, 1, 2 * i), normal(100, 1, 2 * i + 1) + 0.5) for i in range(100)]
    values = torch.tensor([one.value for one in found])
    assert abs(values.mean().item() - expected) < 4 * values.std().item() / 10
    root_mean_square = torch.tensor([one.error for one in found]).square().mean().sqrt().item()
    assert root_mean_square == pytest.approx(values.std().item(), rel=0.3)


def test_the_kernel_distance_is_that_of_brute_force() -> None:
    x, y = normal(45, 3, 0), normal(50, 3, 1) + 1
    k = [(a @ b.T / 3 + 1) ** 3 for a, b in ((x, x), (y, y), (x, y))]
    within = [(one.sum() - one.diag().sum()) / (len(one) * (len(one) - 1)) for one in k[:2]]
    assert kernel_distance(x, y).value == pytest.approx((sum(within) - 2 * k[2].mean()).item())
    same = [kernel_distance(normal(60, 3, 2 * i), normal(60, 3, 2 * i + 1)).value for i in range(60)]
    assert abs(np.mean(same)) < 4 * np.std(same) / math.sqrt(60)
    assert min(same) < 0  # an estimate that is never below 0 would not be unbiased
    with pytest.raises(InputError, match="at least 40"):
        kernel_distance(x[:39], y)


def test_the_inception_score_of_known_probabilities() -> None:
    pytest.importorskip("torchmetrics")
    sure = torch.eye(4).repeat(100, 1)
    before = torch.random.get_rng_state()
    found = inception_score(sure, splits=2)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert found.value == pytest.approx(4.0, rel=0.02)  # classes are not quite as many in each half
    assert found == inception_score(sure, splits=2)
    alike = inception_score(torch.tensor([[0.7, 0.2, 0.1]]).repeat(60, 1))
    assert alike.value == pytest.approx(1.0)
    assert alike.error == pytest.approx(0.0, abs=1e-9)
    # In one piece by the definition; in 2 splits p(class) is that of a half.
    p = normal(4000, 5, 3).softmax(1)
    whole = torch.exp((p * (p / p.mean(0)).log()).sum(1).mean()).item()
    split = inception_score(p, splits=2)
    assert abs(split.value - whole) < 4 * max(split.error, 5e-3)


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="sum to 1"):
        inception_score(torch.ones(40, 3))
    with pytest.raises(InputError, match="splits"):
        inception_score(torch.eye(3))
    with pytest.raises(InputError, match="at least 2 of each"):
        frechet_distance(torch.zeros(1, 3), torch.zeros(5, 3))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'burnin\[images\]'"):
        frechet_distance(torch.zeros(9, 3), torch.zeros(9, 3))
