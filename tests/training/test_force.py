"""The first force, and learning that does not depend on ε (convergent, section A)."""

from __future__ import annotations

import copy
import math

import pytest
import torch

from burnin.diagnostics import ChainNoise
from burnin.energies import MLP
from burnin.objectives import Negatives, contrast
from burnin.rng import Streams
from burnin.samplers import Langevin
from burnin.training.force import first_force


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(0.009, "raise model.first_scale"), (0.02, ""), (5.0, ""), (20.0, "lower model.first_scale")],
)
def test_the_first_force_is_told_only_where_it_is_out_of_range(ratio: float, words: str) -> None:
    epsilon, dim = 0.125, 2
    r = ratio * epsilon * math.sqrt(dim)
    said = first_force({"r/bank": r, "step_size/bank": 1.0}, {"bank": ChainNoise(epsilon**2 / 2, dim)})
    assert len(said) == (1 if words else 0)
    assert words in "".join(said)


def test_an_arm_without_steps_has_no_force() -> None:
    assert first_force({"r/noise": 0.0, "step_size/noise": 1.0}, {"noise": ChainNoise(1.0, 2)}) == []


def test_the_first_scale_scales_first_energies() -> None:
    x = torch.randn(5, 2, generator=Streams(0)["x"])
    nets = [MLP(2, width=8, depth=2, generator=Streams(0)["w"], first_scale=s) for s in (1.0, 30.0)]
    torch.testing.assert_close(nets[1](x), 30 * nets[0](x))


def test_updates_do_not_depend_on_epsilon() -> None:
    """(3A), (4A): with the rate γ = ε²/2·γ0 on the loss of U = F/(ε²/2), the step is γ0 times F's gradient.

    burnin's contrast is that of E = F, so its rate is γ0 itself: whatever T = ε²/2 is, the same data and
    negatives give the same update, and it is the paper's.
    """
    data, chains = (torch.randn(16, 2, generator=Streams(1)[name]) for name in ("data", "chains"))
    rate, updated = 0.05, []
    net = MLP(2, width=8, depth=2, generator=Streams(0)["w"])
    for epsilon in (0.015, 0.125):
        ours = copy.deepcopy(net)
        loss, _ = contrast(
            ours, data, [Negatives(chains)], temperature=Langevin.convergent(epsilon).temperature
        )
        optimizer = torch.optim.SGD(ours.parameters(), lr=rate)
        torch.autograd.backward(loss)
        optimizer.step()
        paper = copy.deepcopy(net)
        half = epsilon**2 / 2
        scaled = (paper(data).mean() - paper(chains).mean()) / half
        gradients = torch.autograd.grad(scaled, list(paper.parameters()))
        for weight, gradient, mine in zip(paper.parameters(), gradients, ours.parameters(), strict=True):
            torch.testing.assert_close(mine, weight - half * rate * gradient, rtol=1e-5, atol=1e-7)
        updated.append(list(ours.parameters()))
    for one, other in zip(*updated, strict=True):
        assert torch.equal(one, other)
