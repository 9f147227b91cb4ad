"""Gaussians of any covariance and Student's t, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from burnin.core import InputError
from burnin.data import Gaussian, StudentT


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_their_densities_are_those_of_scipy() -> None:
    x = torch.randn(20, 4, generator=stream(), dtype=torch.float64)
    gaussian = Gaussian.conditioned(4, 50.0, stream(1))
    cov = (gaussian.root @ gaussian.root.T).numpy()
    known = stats.multivariate_normal(np.zeros(4), cov).logpdf(x.numpy())
    assert np.allclose(gaussian.log_prob(x).numpy(), known, rtol=1e-9)
    t = stats.multivariate_t(np.zeros(4), np.eye(4), df=5).logpdf(x.numpy())
    assert np.allclose(StudentT(4, 5).log_prob(x).numpy(), t, rtol=1e-9)


def test_their_draws_follow_them() -> None:
    n = 20_000
    gaussian = Gaussian.conditioned(3, 20.0, stream(1))
    x = gaussian.sample(n, stream(2)).double()
    white = x @ torch.linalg.inv(gaussian.root).T
    # Entries of a sample covariance of white noise scatter by sqrt(2/n) at most.
    assert (torch.cov(white.T) - torch.eye(3)).abs().max().item() < 4.5 * (2 / n) ** 0.5
    radius = StudentT(3, 5).sample(n, stream(3)).square().sum(1) / 3
    # |x|²/dim is F-distributed.
    assert stats.kstest(radius.numpy(), stats.f(3, 5).cdf).pvalue > 0.001


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="square"):
        Gaussian(torch.zeros(2, 3))
    with pytest.raises(InputError, match="singular"):
        Gaussian(torch.zeros(2, 2))
    with pytest.raises(InputError, match="freedom is 0"):
        StudentT(2, 0)
