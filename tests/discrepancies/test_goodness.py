"""One interface to four tests: what it accepts, what it says, and that it is right about known densities."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor
from torch.distributions import (
    AffineTransform,
    Independent,
    MultivariateNormal,
    Normal,
    TransformedDistribution,
)

from burnin import discrepancies
from burnin.core import Energy, InputError
from burnin.data import Rings
from burnin.discrepancies import CriticSettings, GoodnessOfFit, KernelSettings
from burnin.discrepancies.goodness import METHODS, Method
from tests.discrepancies.gaussians import stream

QUICK = CriticSettings(width=16, iterations=100, validate_every=20, learning_rate=1e-2)


def normal_data(n: int = 300, dim: int = 2) -> Tensor:
    return torch.randn(n, dim, generator=stream(9))


@pytest.mark.parametrize("method", METHODS)
def test_a_wrong_model_is_rejected_and_the_right_one_not(method: Method) -> None:
    data = normal_data(1000)
    right = discrepancies.test(lambda x: -x, data, method, generator=stream(2), critic=QUICK)
    wrong = discrepancies.test(lambda x: 0.7 - x, data, method, generator=stream(2), critic=QUICK)
    assert (right.reject, wrong.reject) == (False, True)
    assert right.p_value > 0.05 > wrong.p_value
    assert wrong.statistic > right.statistic
    assert wrong.power > 0.9 > right.power
    assert right.num_points == 1000
    assert right.num_tested == (100 if method == "lsd" else 800)
    assert right.seconds > 0
    assert "p = " in right.sentence
    assert "no sign" in right.sentence
    assert "did not come from this model" in wrong.sentence
    assert wrong.as_dict()["reject"] is True
    assert len(right.null) == (1000 if method in ("ksd", "fssd") else 0)


@pytest.mark.parametrize("kernel", ["rbf", "imq"])
@pytest.mark.parametrize("bandwidth", ["median", "optimised", 1.5])
@pytest.mark.parametrize("method", ["ksd", "lksd", "fssd"])
def test_kernels_and_bandwidths(method: Method, kernel: str, bandwidth: str | float) -> None:
    settings = KernelSettings(kernel=kernel, bandwidth=bandwidth, num_draws=200)  # type: ignore[arg-type]
    data = normal_data(400)
    result = discrepancies.test(lambda x: 1 - x, data, method, generator=stream(), kernel=settings)
    assert result.reject
    assert result.num_tested == (400 if method != "fssd" and bandwidth != "optimised" else 320)
    if bandwidth == 1.5:
        assert result.numbers["bandwidth"] == pytest.approx(1.5)


def squares(x: Tensor) -> Tensor:
    return x.square().sum(1)


@dataclass
class Trained:
    energy: Energy
    temperature: float


def test_a_model_is_the_same_in_every_form() -> None:
    """N(0, 2) as an energy, an object with one, a distribution, a flow and a score."""
    data = normal_data()

    def statistic(model: object, temperature: float | None = None) -> float:
        result = discrepancies.test(model, data, "ksd", generator=stream(), temperature=temperature)  # type: ignore[arg-type]
        return result.statistic

    wanted = statistic(lambda x: -x / 2)
    root = 2**0.5
    flow = TransformedDistribution(
        Independent(Normal(torch.zeros(2), torch.ones(2)), 1), [AffineTransform(0.0, root, event_dim=1)]
    )
    for got in (
        statistic(squares, 4.0),
        statistic(Trained(squares, 4.0)),
        statistic(MultivariateNormal(torch.zeros(2), 2 * torch.eye(2))),
        statistic(flow),
    ):
        assert got == pytest.approx(wanted, rel=1e-4)


def test_units_do_not_matter_when_columns_are_standardised() -> None:
    data, unit = normal_data(), torch.tensor([1.0, 1000.0])

    def statistic(scale: Tensor, *, standardise: bool = True) -> float:
        model = lambda x: (0.3 - x / scale) / scale  # noqa: E731
        settings = KernelSettings(bandwidth="median")
        return discrepancies.test(
            model, data * scale, "ksd", generator=stream(), standardise=standardise, kernel=settings
        ).statistic

    one = statistic(torch.ones(2))
    assert statistic(unit) == pytest.approx(one, rel=1e-3)
    assert statistic(unit, standardise=False) != pytest.approx(one, rel=1e-3)


def test_rings_pass_their_own_draws_and_a_gaussian_of_their_moments_does_not() -> None:
    rings = Rings.four()
    data = rings.sample(500, stream(3))
    gaussian = MultivariateNormal(data.mean(0), data.T.cov())
    assert not discrepancies.test(rings, data, "ksd", generator=stream()).reject
    assert discrepancies.test(gaussian, data, "ksd", generator=stream()).reject
    # As wide as the data, a kernel sees little but the moments.
    wide = KernelSettings(bandwidth="median")
    assert not discrepancies.test(gaussian, data, "ksd", generator=stream(), kernel=wide).reject


@pytest.mark.parametrize("method", METHODS)
def test_the_same_stream_gives_the_same_answer(method: Method) -> None:
    def run() -> GoodnessOfFit:
        torch.rand(5)
        return discrepancies.test(lambda x: 0.2 - x, normal_data(), method, generator=stream(1), critic=QUICK)

    first, second = run(), run()
    assert (first.statistic, first.p_value, first.power) == (second.statistic, second.p_value, second.power)


def test_the_energy_is_left_as_it_was() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.SiLU(), torch.nn.Linear(8, 1))
    discrepancies.test(net, normal_data(), "lksd", generator=stream(), temperature=1.0)
    assert all(parameter.grad is None for parameter in net.parameters())
    assert all(parameter.requires_grad for parameter in net.parameters())


def test_wrong_input_is_told() -> None:
    data, good = normal_data(), stream()

    def refuse(words: str, model: object = squares, rows: Tensor = data, **options: object) -> None:
        with pytest.raises(InputError, match=words):
            discrepancies.test(model, rows, **({"method": "ksd", "generator": good} | options))  # type: ignore[arg-type]

    refuse("give its temperature")
    refuse("leave one out", Trained(squares, 1.0), temperature=2.0)
    refuse("cannot take the score of a str", "a model")
    refuse("is not a function", 3, temperature=2.0)
    refuse("known are lsd, ksd, lksd, fssd", method="mmd")
    refuse("level is 2", level=2)
    refuse("at least 20", rows=data[:5])
    refuse("rows by columns", rows=data[:, 0])
    refuse("NaN", rows=data / 0)
    refuse("not finite at 300 of 300 points", lambda x: x / 0)
    refuse("20 points make", lambda x: -x, rows=data[:20], method="lsd")
    refuse("wanted|must return", Normal(0.0, 1.0))
    for wrong in ({"kernel": "linear"}, {"bandwidth": "mean"}, {"bandwidth": -1.0}, {"num_draws": 0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            KernelSettings(**wrong)
    with pytest.raises(InputError, match="train_share"):
        KernelSettings(train_share=1.0)
    refuse("lower train_share", lambda x: -x, method="fssd", kernel=KernelSettings(train_share=0.99))
