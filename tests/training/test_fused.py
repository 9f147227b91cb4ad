"""The update in one native call against the same update by torch's operations."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from burnin.closed_form import ACTIVATIONS
from burnin.energies import MLP, FourierFeatures, GaussianFactor, Standardised
from burnin.objectives import VARIANTS, Negatives, Variant, contrast
from burnin.rng import Streams
from burnin.samplers import Engine, Prepared
from burnin.training.fused import fused_update
from tests.native import needs_compiler

T = 0.4


def make_net(kind: str = "mlp", activation: str = "silu") -> nn.Module:
    stream = Streams(0)["weights"]
    if kind == "mlp":
        return MLP(2, width=[5, 33, 7], generator=stream, activation=activation)
    mean, std = torch.tensor([0.3, -0.2]), torch.tensor([1.5, 0.5])
    inner = MLP(
        FourierFeatures.size(2, (1.0, 2.0)), width=20, depth=2, generator=stream, activation=activation
    )
    net: nn.Module = Standardised(FourierFeatures(inner, (1.0, 2.0)), mean, std)
    return GaussianFactor(net, mean, std, temperature=T, learned=kind == "learned factor")


def draw(n: int, name: str) -> Tensor:
    return torch.randn(n, 2, generator=Streams(5)[name])


def train(net: nn.Module, arms: list[Negatives], *, fuse: bool, clip: float | None = None) -> list[float]:
    """Five updates; returns the losses."""
    # Adam divides by its own moments: with its usual eps, where a gradient is nearly 0, rounding alone
    # would decide the step.
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, betas=(0.8, 0.9), eps=1e-2)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    engine = Engine("always" if fuse else "never", threads=1)
    objective, losses = partial(contrast, temperature=T), []
    for update in range(5):
        data = draw(12, f"data {update}")
        energy = engine.prepare(net, data)
        learned = fused_update(energy, objective, optimizer, data, arms, clip) if fuse else None
        assert (learned is not None) == fuse
        if learned is None:
            optimizer.zero_grad()
            loss, _ = objective(energy, data, arms)
            torch.autograd.backward(loss)
            if clip is not None:
                nn.utils.clip_grad_norm_(net.parameters(), clip)
            optimizer.step()
            losses.append(loss.item())
        else:
            assert learned.finite
            losses.append(learned.loss)
        scheduler.step()
    return losses


def assert_same_training(arms: list[Negatives], kind: str, activation: str, clip: float | None) -> None:
    nets = [make_net(kind, activation) for _ in range(2)]
    losses = [train(net, arms, fuse=fuse, clip=clip) for net, fuse in zip(nets, (True, False), strict=True)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4, abs=1e-6)
    for one, other in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@needs_compiler
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("beta", [0.0, 0.3, -0.2])
def test_the_same_update(variant: Variant, beta: float) -> None:
    arms = [Negatives(draw(7, "chains"), weight=2.0, beta=beta, variant=variant)]
    assert_same_training(arms, "mlp", "leaky", None)


@needs_compiler
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("kind", ["mlp", "everything"])
def test_every_network(activation: str, kind: str) -> None:
    arms = [Negatives(draw(12, "noise"), beta=0.2), Negatives(draw(12, "data"), weight=25.0)]
    assert_same_training(arms, kind, activation, 0.5)


@needs_compiler
def test_pools() -> None:
    pooled = [
        Negatives(draw(4, "a"), weight=1.5, beta=0.2, pool="all"),
        Negatives(draw(6, "b")),
        Negatives(draw(9, "c"), weight=1.5, beta=0.2, pool="all"),
        Negatives(draw(3, "d"), pool="plain"),
        Negatives(draw(3, "e"), pool="plain"),
    ]
    assert_same_training(pooled, "mlp", "silu", None)


@needs_compiler
@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_the_same_report(beta: float) -> None:
    """Every number that an arm says of itself; float32 energies, so to about 1e-5."""
    data = draw(12, "data")
    for chains in (draw(12, "chains"), draw(5, "chains")):
        arms = [Negatives(chains, weight=2.0, beta=beta)]
        net = make_net()
        objective = partial(contrast, temperature=T)
        _, wanted = objective(net, data, arms)
        energy = Engine("always", threads=1).prepare(net, data)
        learned = fused_update(energy, objective, torch.optim.Adam(net.parameters()), data, arms, None)
        assert learned is not None
        got = learned.infos[0]
        assert got[:3] == pytest.approx(wanted[0][:3], rel=1e-4, abs=1e-6)
        if beta:
            assert got.beta is not None
            assert wanted[0].beta is not None
            assert tuple(got.beta) == pytest.approx(tuple(wanted[0].beta), rel=1e-4, abs=1e-5)
        else:
            assert got.beta is wanted[0].beta is None


@needs_compiler
def test_weights_that_leave_the_finite_numbers_are_reported() -> None:
    net, data = make_net(), draw(4, "data")
    optimizer = torch.optim.Adam(net.parameters())
    arms = [Negatives(torch.full((3, 2), float("nan")))]
    learned = fused_update(Engine("always").prepare(net, data), contrast, optimizer, data, arms, None)
    assert learned is not None
    assert not learned.finite


@needs_compiler
def test_what_cannot_be_fused_is_left_alone() -> None:
    data, arms = draw(4, "data"), [Negatives(draw(4, "chains"))]

    def refused(net: nn.Module, optimizer: torch.optim.Optimizer, objective: object = contrast) -> bool:
        before = [parameter.clone() for parameter in net.parameters()]
        energy = Engine("always").prepare(net, data)
        learned = fused_update(energy, objective, optimizer, data, arms, None)
        same = all(torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))
        return learned is None and same

    net = make_net()
    assert refused(net, torch.optim.SGD(net.parameters(), lr=0.1))
    assert refused(net, torch.optim.AdamW(net.parameters()))
    assert refused(net, torch.optim.Adam(net.parameters(), weight_decay=0.1))
    assert refused(net, torch.optim.Adam(net.parameters(), amsgrad=True))
    assert refused(net, torch.optim.Adam(list(net.parameters())[:2]))
    assert refused(net, torch.optim.Adam(net.parameters()), lambda *parts: contrast(*parts))
    groups = [{"params": [parameter]} for parameter in net.parameters()]
    assert refused(net, torch.optim.Adam(groups))
    hooked = torch.optim.Adam(net.parameters())
    hooked.register_step_post_hook(lambda *_: None)
    assert refused(net, hooked)
    learned = make_net("learned factor")
    assert refused(learned, torch.optim.Adam(learned.parameters()))
    other = nn.Sequential(nn.Linear(2, 1))
    assert refused(other, torch.optim.Adam(other.parameters()))
    double = make_net().double()
    assert refused(double, torch.optim.Adam(double.parameters()))


@needs_compiler
@pytest.mark.parametrize("rows", [1, 7, 130, 400])
def test_energies_and_gradients(rows: int) -> None:
    """Native energies, input gradients and weights' gradients against torch's; several tiles at 400 rows."""
    net = make_net("everything")
    x = draw(rows, "x")
    energy = Engine("always").prepare(net, x)
    assert isinstance(energy, Prepared)
    form = energy.closed_form()
    value, gradient = energy.energy_and_gradient(x)
    wanted_value, wanted_gradient = form.energy_and_gradient(x)
    torch.testing.assert_close(value, wanted_value, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(gradient, wanted_gradient, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(energy(x), wanted_value, rtol=1e-4, atol=1e-5)
    outer = draw(rows, "outer")[:, 0]
    parameters = list(net.parameters())
    learned = energy.energy_of_weights(x)
    got = torch.autograd.grad(learned, parameters, outer, retain_graph=True)
    wanted = torch.autograd.grad(net(x), parameters, outer)
    for one, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    with pytest.raises(RuntimeError, match="taken before"):
        torch.autograd.grad(learned, parameters, outer)
