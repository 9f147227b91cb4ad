"""The Stein operator: traces against Jacobians, probes without bias, the identity, the optimal critic."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from burnin.core import InputError
from burnin.energies import MLP, GaussianEnergy
from burnin.stein import (
    Activation,
    Trace,
    combine,
    critic_objective,
    l2_penalty,
    mlp_critic,
    probes_like,
    score_of,
    stein_terms,
    value_and_trace,
)

DIM = 4


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def points(n: int = 6, dim: int = DIM) -> Tensor:
    return torch.randn(n, dim, generator=stream(1), dtype=torch.float64)


def true_traces(critic: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    rows = [torch.func.jacrev(lambda y: critic(y.unsqueeze(0)).squeeze(0))(row).trace() for row in x]
    return torch.stack(rows)


@pytest.mark.parametrize("activation", ["silu", "tanh"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_trace_of_an_mlp_is_that_of_its_jacobian(layers: int, activation: Activation) -> None:
    critic = mlp_critic(DIM, 7, layers, generator=stream(), activation=activation).double()
    x = points()
    value, trace = value_and_trace(critic, x)
    torch.testing.assert_close(value, critic(x))
    torch.testing.assert_close(trace, true_traces(critic, x))


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_critic_in_units_of_the_data_is_one_of_the_standardised_points(layers: int) -> None:
    centre = torch.tensor([3.0, -1.0, 0.0, 5.0], dtype=torch.float64)
    spread = torch.tensor([0.5, 1.0, 2.0, 4.0], dtype=torch.float64)
    plain = mlp_critic(DIM, 7, layers, generator=stream()).double()
    critic = mlp_critic(DIM, 7, layers, generator=stream(), centre=centre, spread=spread).double()
    x = centre + spread * points()
    value, trace = value_and_trace(critic, x)
    torch.testing.assert_close(value, plain(points()))
    torch.testing.assert_close(trace, true_traces(critic, x))


@pytest.mark.parametrize("layers", [1, 2])
def test_the_trace_under_dropout_is_that_of_the_thinned_network(layers: int) -> None:
    critic = mlp_critic(DIM, 9, layers, generator=stream(), dropout=0.5).double()
    thinned = critic.thinned(6, stream(3))
    x = points().requires_grad_(True)
    value, trace = thinned.value_and_trace(x)
    rows = [torch.autograd.grad(value[:, i].sum(), x, retain_graph=True)[0][:, i] for i in range(DIM)]
    torch.testing.assert_close(trace, torch.stack(rows).sum(0))
    assert not torch.equal(value, critic(x))
    kept = torch.cat([mask.flatten() for mask in thinned.masks])
    assert set(kept.tolist()) == {0.0, 2.0}


def test_dropout_keeps_the_mean_of_a_hidden_unit() -> None:
    masks = mlp_critic(1, 50, 1, generator=stream(), dropout=0.3).thinned(2000, stream(1)).masks[0]
    error = (0.3 / 0.7) ** 0.5 / masks.numel() ** 0.5
    assert abs(masks.mean().item() - 1) < 4 * error


def test_a_batch_of_critics_is_the_critics_one_by_one() -> None:
    batch = mlp_critic(DIM, 8, 2, generator=stream(), trials=3).double()
    single = mlp_critic(DIM, 8, 2, generator=stream(9)).double()
    x = torch.randn(3, 5, DIM, generator=stream(2), dtype=torch.float64)
    value, trace = value_and_trace(batch, x, batch_dims=2)
    for trial in range(3):
        with torch.no_grad():
            for mine, all_of_them in zip(single.parameters(), batch.parameters(), strict=True):
                mine.copy_(all_of_them[trial])
        alone = value_and_trace(single, x[trial])
        torch.testing.assert_close(value[trial], alone[0])
        torch.testing.assert_close(trace[trial], alone[1])


@pytest.mark.parametrize("kind", ["gaussian", "rademacher"])
def test_hutchinson_has_no_bias(kind: Trace) -> None:
    critic = mlp_critic(DIM, 8, 2, generator=stream()).double()
    x = points(1).expand(20_000, DIM)
    with torch.no_grad():
        exact = value_and_trace(critic, x[:1])[1].item()
        guesses = value_and_trace(critic, x, trace=kind, generator=stream(5))[1]
    error = guesses.std().item() / len(guesses) ** 0.5
    assert error > 0
    assert abs(guesses.mean().item() - exact) < 4 * error


def test_probes_have_unit_covariance() -> None:
    for kind in ("gaussian", "rademacher"):
        probes = probes_like(torch.zeros(50_000, 3), kind, stream())
        covariance = probes.T @ probes / len(probes)
        assert (covariance - torch.eye(3)).abs().max().item() < 4 * 2**0.5 / len(probes) ** 0.5


def test_rademacher_probes_know_a_diagonal_jacobian_exactly() -> None:
    x = points()
    trace = value_and_trace(torch.sin, x, trace="rademacher", generator=stream())[1]
    torch.testing.assert_close(trace, x.cos().sum(1))


def test_steins_identity_holds_under_the_model_and_fails_beside_it() -> None:
    critic = mlp_critic(2, 16, 2, generator=stream()).requires_grad_(False)
    precision = torch.tensor([[2.0, 0.5], [0.5, 1.0]])
    score = score_of(GaussianEnergy(torch.ones(2), precision), 0.5)
    root = torch.linalg.cholesky(0.5 * torch.linalg.inv(precision))
    x = 1 + torch.randn(50_000, 2, generator=stream(1)) @ root.T
    for trace in ("exact", "gaussian"):
        terms = stein_terms(score, critic, x, trace=trace, generator=stream(2))
        assert terms.mean().abs() < 4 * terms.std() / len(x) ** 0.5
    beside = stein_terms(score, critic, x + 0.5)
    assert beside.mean().abs() > 10 * beside.std() / len(x) ** 0.5


def test_the_optimal_critic_is_optimal() -> None:
    """Equation 9: no other critic exceeds E‖s_q - s_p‖²/4λ, and (s_q - s_p)/2λ reaches it."""
    lam, shift = 0.5, torch.tensor([1.0, -0.5])
    x = torch.randn(100_000, 2, generator=stream())  # p = N(0, 1), q = N(shift, 1)
    best = shift.square().sum().item() / (4 * lam)

    def objective(critic: Callable[[Tensor], Tensor]) -> float:
        return critic_objective(lambda y: shift - y, critic, x, lam=lam).item()

    reached = objective(lambda y: shift / (2 * lam) + 0 * y)
    error = (shift.norm() / (2 * lam)).item() * shift.norm().item() / len(x) ** 0.5
    assert abs(reached - best) < 4 * error
    for other in (lambda y: 0.5 * shift + 0 * y, lambda y: 2 * shift + 0 * y, lambda y: shift + 0.3 * y):
        assert objective(other) < reached


def test_the_score_is_minus_the_gradient_over_the_temperature() -> None:
    energy = MLP(DIM, width=8, depth=2, generator=stream()).double()
    x = points().requires_grad_(True)
    gradient = torch.autograd.grad(energy(x).sum(), x)[0]
    torch.testing.assert_close(score_of(energy, 0.25)(x.detach()), -4 * gradient)
    with_graph = score_of(energy, 0.25, create_graph=True)(x.detach())
    torch.testing.assert_close(with_graph.detach(), -4 * gradient)
    with_graph.square().sum().backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in list(energy.parameters())[:-1])


def test_the_graph_of_a_score_reaches_its_points() -> None:
    x = points().requires_grad_(True)
    score = score_of(lambda y: (y**4).sum(1), 2.0, create_graph=True)(x)
    second = torch.autograd.grad(score.sum(), x)[0]
    torch.testing.assert_close(second, -6 * x.detach() ** 2)


def test_gradients_flow_to_the_critic_by_every_trace() -> None:
    x = points().float()
    for trace in ("exact", "gaussian", "rademacher"):
        critic = mlp_critic(DIM, 8, 2, generator=stream())
        critic_objective(-x, critic, x, lam=0.5, trace=trace, generator=stream()).backward()  # type: ignore[no-untyped-call]
        assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in critic.parameters())
        with torch.no_grad():
            assert not stein_terms(-x, critic, x, trace=trace, generator=stream()).requires_grad


def test_pictures_are_points_too() -> None:
    x = torch.randn(3, 1, 2, 2, generator=stream())
    terms = stein_terms(-x, lambda y: y**3, x)
    torch.testing.assert_close(terms.detach(), (-(x**4) + 3 * x**2).flatten(1).sum(1))
    assert l2_penalty(x, 2.0).item() == pytest.approx(2 * x.square().sum().item() / 3)
    torch.testing.assert_close(combine(-x, x, torch.zeros(3)), -x.square().flatten(1).sum(1))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: score_of(lambda x: x.sum(1), 0.0), "temperature is 0.0"),
        (lambda: value_and_trace(torch.sin, torch.ones(1, 1), trace="hutch"), "the trace is 'hutch'"),  # type: ignore[arg-type]
        (lambda: value_and_trace(torch.sin, torch.ones(1, 1), trace="gaussian"), "give it a generator"),
        (lambda: value_and_trace(lambda x: x[:, :1], torch.ones(2, 2)), r"gave shape \(2, 1\)"),
        (lambda: value_and_trace(torch.ones_like, torch.ones(2, 2)), "does not depend on its input"),
        (lambda: mlp_critic(0, generator=stream()), "each must be at least 1"),
        (lambda: mlp_critic(1, generator=stream(), dropout=1.0), "dropout is 1.0"),
        (lambda: mlp_critic(1, generator=stream(), activation="relu"), "activation is 'relu'"),  # type: ignore[arg-type]
        (
            lambda: score_of(lambda x: torch.ones(len(x)), 1.0, create_graph=True)(torch.ones(2, 2)),
            "does not depend on its input",
        ),
    ],
)
def test_wrong_input_is_told(call: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


def test_critics_are_made_from_their_stream_alone() -> None:
    torch.manual_seed(1)
    first = mlp_critic(2, 8, generator=stream(4))
    torch.manual_seed(2)
    second = mlp_critic(2, 8, generator=stream(4))
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)
    assert sum(p.numel() for p in nn.ModuleList([first]).parameters()) == 2 * 8 + 8 + 8 * 8 + 8 + 8 * 2 + 2
