"""The report's test of fit: right models pass, wrong ones do not, on rows that training did not see."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from burnin.core import Density
from burnin.data import EncodedRows, Encoding, Frame, NoisyDensity, Pictures, Table, eight_gaussians
from burnin.evaluation.goodness import MOST_ROWS, fit_test, rows_to_test
from burnin.evaluation.model import Chain, Model
from burnin.samplers import Langevin
from burnin.starts import FromNoise


class Gaussian(nn.Module):
    """E = |x - mean|² / 2."""

    def __init__(self, mean: float = 0.0) -> None:
        super().__init__()
        self.mean = mean

    def forward(self, x: Tensor) -> Tensor:
        energy: Tensor = 0.5 * (x - self.mean).square().sum(1)
        return energy


def model_of(data: Density, energy: nn.Module) -> Model:
    chain = Chain(Langevin(0.1, 1.0), 1)
    return Model(energy, 1.0, data, FromNoise(), chain, chain, True, None, "data", 1)


def stream() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def normal_rows(n: int, dim: int = 2) -> Table:
    x = torch.randn(n, dim, generator=torch.Generator().manual_seed(1))
    return Table(x, tuple(f"x{i}" for i in range(dim)))


def coded(n: int) -> EncodedRows:
    frame = Frame.of_numbers(np.random.default_rng(0).normal(size=(n, 2)))
    encoding = Encoding.fit(frame)
    return EncodedRows.split(encoding, encoding.codes(frame), share=0.2, seed=0)


@pytest.mark.parametrize("n", [60, 400])
def test_a_right_model_passes_and_a_wrong_one_does_not(n: int) -> None:
    """Half a standard deviation off in both columns is seen by 60 rows already."""
    data = normal_rows(n)
    right = fit_test(model_of(data, Gaussian()), data, stream()).result
    wrong = fit_test(model_of(data, Gaussian(0.5)), data, stream()).result
    assert right is not None
    assert wrong is not None
    assert not right.reject
    assert wrong.reject
    assert wrong.num_tested == (60 if n == 60 else 320)  # few rows are all tested, with the median bandwidth


def test_a_right_model_is_rejected_as_often_as_the_level_says() -> None:
    """Of 60 right models about 3; more than 8 has a chance below 1% (binomial)."""
    rejected = 0
    for seed in range(60):
        x = torch.randn(50, 2, generator=torch.Generator().manual_seed(seed))
        tested = fit_test(model_of(Table(x, ("a", "b")), Gaussian()), Table(x, ("a", "b")), stream())
        assert tested.result is not None
        rejected += tested.result.reject
    assert rejected <= 8


def test_rows_that_were_held_out_are_tested_where_there_are_enough() -> None:
    many, few = coded(200), coded(60)
    said, x = rows_to_test(model_of(many, Gaussian()), many, stream())
    assert said == "40 held-out rows"
    assert x.shape == (40, 2)
    said, x = rows_to_test(model_of(few, Gaussian()), NoisyDensity(few, 0.1), stream())
    assert said == "60 rows, most of which it was trained on"
    assert x.shape == (60, 2)


def test_what_is_tested_is_said_and_no_row_twice() -> None:
    data = normal_rows(MOST_ROWS + 500)
    said, x = rows_to_test(model_of(data, Gaussian()), data, stream())
    assert said == "1,000 of 1,500 rows that it was trained on"
    assert len(torch.unique(x, dim=0)) == MOST_ROWS
    toy = eight_gaussians()
    assert rows_to_test(model_of(toy, Gaussian()), toy, stream())[0] == "1,000 fresh draws of the data"
    held = Pictures(torch.randint(0, 255, (30, 1, 2, 2), dtype=torch.uint8, generator=stream()))
    pictures = NoisyDensity(Pictures(held.pixels[:5], held_out=held), 0.1)
    said, x = rows_to_test(model_of(pictures, Gaussian()), pictures, stream())
    assert said == "30 held-out pictures"
    assert not torch.isin(x, held.rows(held.pixels)).any(), "with the noise that training adds"


def test_where_there_is_no_test_it_is_said_why() -> None:
    data = normal_rows(10)
    tested = fit_test(model_of(data, Gaussian()), data, stream())
    assert tested.result is None
    assert "at least 20" in tested.reason
    rows = normal_rows(50)
    broken = fit_test(model_of(rows, Gaussian(float("nan"))), rows, stream())
    assert broken.result is None
    assert "not finite" in broken.reason
