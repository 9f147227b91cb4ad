"""One contract for every objective without chains: one temperature, its own draws, no side effects."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from burnin.core import InputError
from burnin.objectives import (
    ConditionalNoiseContrast,
    DenoisingScoreMatching,
    DirectObjective,
    LearnedStein,
    Likelihood,
    NoiseContrast,
    ScoreMatching,
)
from burnin.stein import mlp_critic
from tests.objectives.gaussians import MEAN, SD, Diagonal, gaussian_data, stream


def stein(temperature: float) -> LearnedStein:
    return LearnedStein(mlp_critic(2, 8, generator=stream()).double(), temperature=temperature)


def noise(temperature: float) -> NoiseContrast:
    return NoiseContrast(MEAN + 0.3, (1.5 * SD).square().diag(), temperature=temperature, ratio=2)


OBJECTIVES: dict[str, Callable[[float], DirectObjective]] = {
    "score-matching": ScoreMatching,
    "sliced gaussian": lambda t: ScoreMatching(t, "gaussian"),
    "sliced rademacher": lambda t: ScoreMatching(t, "rademacher"),
    "denoising": lambda t: DenoisingScoreMatching(t, 0.4),
    "nce": noise,
    "cnce": lambda t: ConditionalNoiseContrast(t, 0.4, ratio=3),
    "likelihood": Likelihood,
    "lsd": stein,
}
every_objective = pytest.mark.parametrize("name", OBJECTIVES)
START = torch.tensor([0.9, 0.6], dtype=torch.float64)


class Shifted(nn.Module):
    """An energy with a constant added, which no density knows."""

    def __init__(self, inner: nn.Module, constant: float) -> None:
        super().__init__()
        self.inner, self.constant = inner, constant

    def forward(self, x: Tensor) -> Tensor:
        value: Tensor = self.inner(x) + self.constant
        return value


def loss_and_gradient(objective: DirectObjective, energy: nn.Module) -> tuple[Tensor, list[Tensor]]:
    loss, _ = objective.loss(energy, gaussian_data(50), stream(2))
    return loss.detach(), list(torch.autograd.grad(loss, list(energy.parameters())))


@every_objective
@pytest.mark.parametrize("factor", [0.1, 5.0])
def test_there_is_one_temperature(name: str, factor: float) -> None:
    """An energy times c at temperature c·T is the same density, so the same loss with the same gradient."""
    one = loss_and_gradient(OBJECTIVES[name](0.7), Diagonal(START, temperature=0.7))
    other = loss_and_gradient(OBJECTIVES[name](0.7 * factor), Diagonal(START, temperature=0.7 * factor))
    torch.testing.assert_close(other, one, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(
        loss_and_gradient(OBJECTIVES[name](0.7), Diagonal(START, temperature=0.7 * factor))[0].isclose(
            one[0]
        ),
        torch.tensor(False),
    )


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if name not in ("nce", "likelihood")])
def test_a_constant_of_the_energy_does_not_matter(name: str) -> None:
    energy = Diagonal(START)
    plain = loss_and_gradient(OBJECTIVES[name](0.7), energy)
    torch.testing.assert_close(loss_and_gradient(OBJECTIVES[name](0.7), Shifted(energy, 3.0)), plain)


def test_nces_constant_takes_up_the_energys() -> None:
    energy, objective = Diagonal(START), noise(0.7)
    plain = loss_and_gradient(objective, energy)
    with torch.no_grad():
        objective.log_normaliser.fill_(-3.0 / 0.7)
    torch.testing.assert_close(loss_and_gradient(objective, Shifted(energy, 3.0)), plain)


@every_objective
def test_only_the_given_generator_is_drawn_from(name: str) -> None:
    energy, data, objective = Diagonal(START), gaussian_data(20), OBJECTIVES[name](0.7)
    before, given = torch.get_rng_state(), data.clone()
    first = objective.loss(energy, data, stream(3))
    again = objective.loss(energy, data, stream(3))
    other = objective.loss(energy, data, stream(4))
    assert first[0].equal(again[0])
    assert first[1] == again[1]
    # A critic that knows its trace needs no probe, and signs do not show on a diagonal Hessian.
    drawn = name not in ("score-matching", "likelihood", "lsd", "sliced rademacher")
    assert first[0].equal(other[0]) != drawn
    assert torch.get_rng_state().equal(before)
    assert data.equal(given)
    assert not data.requires_grad
    assert all(isinstance(value, float) for value in first[1].values())


@every_objective
def test_a_checkpoint_of_it_is_whole(name: str) -> None:
    """What was learned beside the energy comes back with the state dict, companions included."""
    objective, other = OBJECTIVES[name](0.7), OBJECTIVES[name](0.7)
    for parameter in objective.parameters():
        with torch.no_grad():
            parameter.add_(0.3)
    other.load_state_dict(objective.state_dict())
    data, energy = gaussian_data(20), Diagonal(START)
    assert objective.loss(energy, data, stream())[0].equal(other.loss(energy, data, stream())[0])
    named = {id(p) for p in objective.parameters()}
    assert {id(p) for p in objective.companions()} <= named
    theirs = {id(p) for o in objective.optimizers().values() for g in o.param_groups for p in g["params"]}
    assert theirs.isdisjoint({id(p) for p in objective.companions()})
    assert theirs | {id(p) for p in objective.companions()} == named, "every parameter is learned by someone"


@every_objective
def test_a_temperature_of_zero_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="temperature is 0"):
        OBJECTIVES[name](0.0)
