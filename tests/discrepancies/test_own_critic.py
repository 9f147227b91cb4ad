"""LSD by a module of one's own: what it finds, what it is judged on, what it leaves behind."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from burnin.core import DivergedError, InputError
from burnin.discrepancies import CriticSettings, Learned, Points, learn_with

SETTINGS = CriticSettings(
    iterations=300, validate_every=50, learning_rate=0.03, weight_decay=0.0, batch_size=100
)


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def linear(dim: int) -> nn.Linear:
    critic = nn.Linear(dim, dim)
    with torch.no_grad():
        critic.weight.zero_()
        critic.bias.zero_()
    return critic


def found(shift: float, *, seed: int = 0, settings: CriticSettings = SETTINGS) -> tuple[Learned, nn.Linear]:
    x = torch.randn(5000, 3, generator=stream(seed))
    critic = linear(3)
    points = Points(x, shift - x)  # scores of N(shift, 1) at points of N(0, 1)
    return learn_with(critic, points, settings, stream(1), objective="discrepancy"), critic


def test_the_best_critic_is_found_where_it_is_known() -> None:
    """f = (s_model - s_truth)/2λ is the shift with λ = ½, and the discrepancy ‖shift‖² (equation 9)."""
    learned, critic = found(0.5)
    assert learned.terms.shape == (1, 500)
    assert learned.validation_terms.shape == (1, 500)
    # The critic's own error is of second order in the discrepancy; four standard errors of its mean.
    assert abs(learned.discrepancy.item() - 3 * 0.5**2) < 4 * learned.standard_error.item()
    # Its bias is a mean of 4,000 points, moved about by batches of 100 at a rate of 0.03.
    assert (critic.bias - 0.5).abs().max() < 4 * math.sqrt(1 / 4000 + 0.03 / 100)


def test_a_right_model_has_a_discrepancy_of_zero() -> None:
    learned, _ = found(0.0)
    assert abs(learned.discrepancy.item()) < 4 * learned.standard_error.item()


class Grows(nn.Module):
    """A critic with one number, whose looks get worse from the first on."""

    def __init__(self) -> None:
        super().__init__()
        self.size = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return self.size * x


def test_it_stops_when_it_does_not_improve_and_keeps_the_best() -> None:
    """Training points too wide, the others right: the critic learns what the others do not have."""
    x = torch.randn(1000, 2, generator=stream())
    x[:800] *= 2
    critic = Grows()
    settings = CriticSettings(iterations=1000, validate_every=10, learning_rate=0.01, patience=3)
    learned = learn_with(critic, Points(x, -x), settings, stream(1), objective="discrepancy")
    updates = int(learned.updates)
    assert updates == 40  # the best look was the first, three more were not better
    again = Grows()
    once = CriticSettings(iterations=10, validate_every=10, learning_rate=0.01)
    learn_with(again, Points(x, -x), once, stream(1), objective="discrepancy")
    assert critic.size.equal(again.size)


def test_what_it_refuses() -> None:
    x = torch.zeros(2, 100, 3)
    with pytest.raises(InputError, match=r"takes \(n, dim\)"):
        learn_with(linear(3), Points(x, x), SETTINGS, stream(), objective="power")
    bad = torch.full((100, 3), torch.nan)
    with pytest.raises(DivergedError, match="diverged within 50 updates"):
        learn_with(linear(3), Points(bad, bad), SETTINGS, stream(), objective="power")
