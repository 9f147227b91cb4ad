"""Noise on the data adds its variance and is drawn anew at every use."""

from __future__ import annotations

import math

import torch

from burnin.data import NoisyDensity, Rings
from burnin.rng import Streams


def test_noise_adds_its_variance() -> None:
    n, noise = 50_000, 0.2
    x = NoisyDensity(Rings.paper(), noise).sample(n, Streams(0)["data"])
    thin = x[:, 3:].double()
    wanted = 0.01**2 + noise**2
    # The variance of n normal draws has standard error wanted·sqrt(2/n); seven of them, 5 each.
    assert bool(((thin.var(0) - wanted).abs() < 5 * wanted * math.sqrt(2 / n)).all())


def test_noise_is_drawn_anew_and_from_the_given_stream() -> None:
    noisy = NoisyDensity(Rings.paper(), 0.1)
    stream = Streams(1)["data"]
    first, second = noisy.sample(10, stream), noisy.sample(10, stream)
    assert not torch.equal(first, second)
    assert torch.equal(first, noisy.sample(10, Streams(1)["data"]))
    assert noisy.dim == 10
