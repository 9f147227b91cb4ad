"""The energy contract: shapes in, shapes out, and exact gradients that leave the weights alone."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from burnin.core import InputError, energy_and_gradient, evaluate, flat_norm, per_chain
from burnin.rng import Streams


def square_sum(x: Tensor) -> Tensor:
    return x.flatten(1).square().sum(1)


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("shape", [(3,), (2, 2)])
def test_evaluate_takes_flat_and_column_energies(n: int, shape: tuple[int, ...]) -> None:
    x = torch.randn(n, *shape, generator=torch.Generator().manual_seed(0))
    flat = evaluate(square_sum, x)
    column = evaluate(lambda x: square_sum(x).unsqueeze(1), x)
    assert flat.shape == column.shape == (n,)
    assert flat.equal(column)
    assert flat.equal(square_sum(x))


@pytest.mark.parametrize("shape", [(), (1,), (5, 2), (1, 5), (5, 1, 1), (4,), (6, 1)])
def test_evaluate_names_a_wrong_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError) as caught:
        evaluate(lambda x: torch.zeros(shape), torch.zeros(5, 3))
    message = str(caught.value)
    assert str(tuple(shape)) in message
    assert "batch of 5" in message
    assert "(5,) or (5, 1)" in message
    assert caught.value.exit_code == 2


def test_gradient_is_exact_on_a_quadratic() -> None:
    stream = Streams(0)["quadratic"]
    a = torch.randn(4, 4, generator=stream, dtype=torch.float64)
    precision = a @ a.T + torch.eye(4, dtype=torch.float64)
    offset = torch.randn(4, generator=stream, dtype=torch.float64)
    x = torch.randn(7, 4, generator=stream, dtype=torch.float64)

    def energy(x: Tensor) -> Tensor:
        return 0.5 * ((x @ precision) * x).sum(1) + x @ offset

    value, gradient = energy_and_gradient(energy, x)
    torch.testing.assert_close(value, energy(x), rtol=1e-14, atol=1e-14)
    torch.testing.assert_close(gradient, x @ precision + offset, rtol=1e-13, atol=1e-13)


def test_results_and_input_are_detached() -> None:
    x = torch.ones(2, 3)
    value, gradient = energy_and_gradient(square_sum, x)
    assert not value.requires_grad
    assert not gradient.requires_grad
    assert not x.requires_grad
    leaf = torch.ones(2, 3, requires_grad=True)
    energy_and_gradient(square_sum, leaf)
    assert leaf.grad is None


def test_weights_get_no_gradient() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.SiLU(), nn.Linear(4, 1))
    energy_and_gradient(net, torch.ones(2, 3))
    assert all(weight.grad is None for weight in net.parameters())
    net(torch.ones(2, 3)).sum().backward()
    before = [None if weight.grad is None else weight.grad.clone() for weight in net.parameters()]
    energy_and_gradient(net, torch.zeros(2, 3))
    for weight, grad in zip(net.parameters(), before, strict=True):
        assert weight.grad is not None
        assert grad is not None
        assert weight.grad.equal(grad)


def test_gradients_work_where_they_are_switched_off() -> None:
    with torch.no_grad():
        assert energy_and_gradient(square_sum, torch.ones(2, 3))[1].equal(2 * torch.ones(2, 3))


@pytest.mark.parametrize(
    "energy", [lambda x: x.detach().square().sum(1), lambda x: torch.tensor(x.detach().numpy().sum(1))]
)
def test_energy_without_a_gradient_path_is_an_error(energy: nn.Module) -> None:
    with pytest.raises(InputError, match="no gradient; avoid"):
        energy_and_gradient(energy, torch.ones(2, 3))


def test_per_chain_and_flat_norm() -> None:
    x = torch.arange(12.0).reshape(3, 2, 2)
    assert (per_chain(torch.tensor([1.0, 10.0, 100.0]), x) * x)[:, 0, 1].tolist() == [1.0, 50.0, 900.0]
    torch.testing.assert_close(flat_norm(x), x.square().sum((1, 2)).sqrt())
