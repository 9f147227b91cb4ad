"""The Gaussian-Bernoulli RBM against the sum over its hidden units, its Gibbs chain against its moments."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from burnin.core import InputError, energy_and_gradient
from burnin.energies import GaussianBernoulliRBM, RBMInUnits
from tests.data.grids import square_grid

DIM, HIDDEN, T = 3, 4, 0.7


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def machine(dim: int = DIM, coupling: float = 0.5, learned: bool = False) -> GaussianBernoulliRBM:
    weights, visible, hidden = (
        torch.randn(shape, generator=stream(seed), dtype=torch.float64)
        for seed, shape in enumerate(((dim, HIDDEN), (dim,), (HIDDEN,)))
    )
    return GaussianBernoulliRBM(weights, visible, hidden, coupling=coupling, temperature=T, learned=learned)


def states() -> Tensor:
    return torch.tensor(list(product((-1.0, 1.0), repeat=HIDDEN)), dtype=torch.float64)


def joint(rbm: GaussianBernoulliRBM, x: Tensor) -> Tensor:
    """log of the unnormalised joint density as the paper prints it, (points, states of h)."""
    h = states()
    together = rbm.coupling * x @ rbm.weights @ h.T
    return together + (x @ rbm.visible_bias)[:, None] + h @ rbm.hidden_bias - 0.5 * x.square().sum(1)[:, None]


@pytest.mark.parametrize("coupling", [0.5, 1.0])
def test_the_energy_is_the_joint_summed_over_hidden_units(coupling: float) -> None:
    rbm = machine(coupling=coupling)
    x = 2 * torch.randn(20, DIM, generator=stream(2), dtype=torch.float64)
    torch.testing.assert_close(-rbm(x) / T, joint(rbm, x).logsumexp(1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("coupling", [0.5, 1.0])
def test_the_score_is_the_slope(coupling: float) -> None:
    rbm = machine(coupling=coupling)
    x = (2 * torch.randn(20, DIM, generator=stream(2), dtype=torch.float64)).requires_grad_(True)
    (slope,) = torch.autograd.grad(rbm(x).sum(), x)
    torch.testing.assert_close(rbm.score(x), -slope / T, rtol=1e-12, atol=1e-12)
    value, gradient = energy_and_gradient(rbm, x)
    torch.testing.assert_close(gradient, slope, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(value, rbm(x).detach())
    assert not gradient.requires_grad


@pytest.mark.parametrize("field", [-300.0, -50.0, 0.3, 50.0, 300.0])
def test_the_curvature_is_finite_wherever_the_hidden_units_are(field: float) -> None:
    """Objectives without chains differentiate the energy twice; (log 2cosh y)″ = 1/cosh² y."""
    one = torch.ones(1, 1)
    rbm = GaussianBernoulliRBM(one, torch.zeros(1), torch.zeros(1), coupling=1.0)
    x = torch.full((1, 1), field, requires_grad=True)
    (slope,) = torch.autograd.grad(rbm(x).sum(), x, create_graph=True)
    (curvature,) = torch.autograd.grad(slope.sum(), x)
    torch.testing.assert_close(slope, field - torch.tanh(x))
    torch.testing.assert_close(curvature, 1 - 1 / torch.cosh(x.double()).square().float())


def test_the_printed_score_is_that_of_coupling_one() -> None:
    rbm = machine(coupling=1.0)
    x = torch.randn(5, DIM, generator=stream(2), dtype=torch.float64)
    printed = rbm.visible_bias - x + torch.tanh(x @ rbm.weights + rbm.hidden_bias) @ rbm.weights.T
    torch.testing.assert_close(rbm.score(x), printed, rtol=1e-12, atol=1e-12)


def test_the_density_integrates_to_one() -> None:
    rbm = machine(dim=2)
    points, area = square_grid(12.0, 400)
    mass = float((-rbm(points) / T - rbm.log_normaliser()).exp().sum() * area)
    assert mass == pytest.approx(1, abs=1e-9)  # the density is smooth: the midpoint rule converges at once


def test_the_density_in_units_of_the_data_integrates_to_one() -> None:
    wide = RBMInUnits(machine(dim=2), torch.tensor([1.0, -2.0]).double(), torch.tensor([1.5, 0.5]).double())
    points, area = square_grid(16.0, 801)
    mass = float((-wide(points) / T - wide.log_normaliser()).exp().sum() * area)
    assert mass == pytest.approx(1, abs=1e-6)


def exact_draws(rbm: GaussianBernoulliRBM, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Draws by the law of h, which small machines can be summed for, and the exact mean and covariance."""
    h = states()
    centre = rbm.visible_bias + rbm.coupling * h @ rbm.weights.T
    law = (h @ rbm.hidden_bias + 0.5 * centre.square().sum(1)).softmax(0)
    pick = torch.multinomial(law, n, replacement=True, generator=stream(3))
    x = centre[pick] + torch.randn(n, rbm.dim, generator=stream(4), dtype=torch.float64)
    mean = law @ centre
    covariance = torch.eye(rbm.dim, dtype=torch.float64) + (centre - mean).T @ (
        law[:, None] * (centre - mean)
    )
    return x, mean, covariance


def assert_moments(x: Tensor, mean: Tensor, covariance: Tensor) -> None:
    """Mean and second moments within 4.5 of their standard errors, estimated from the draws."""
    products = torch.einsum("ni,nj->nij", x - mean, x - mean)
    for values, expected in ((x, mean), (products, covariance)):
        error = values.std(0) / math.sqrt(len(x))
        assert float(((values.mean(0) - expected) / error).abs().max()) < 4.5


@pytest.mark.parametrize("dim", [DIM, HIDDEN + 2])
def test_gibbs_steps_leave_the_law_alone(dim: int) -> None:
    """With fewer hidden units than visible ones, the chain is one of the hidden units alone."""
    rbm = machine(dim)
    x, mean, covariance = exact_draws(rbm, 20_000)
    assert_moments(x, mean, covariance)
    after = rbm.gibbs(x, 10, stream(5))
    assert_moments(after, mean, covariance)
    assert not after.equal(x)
    # Ten steps with another machine's conditionals are noticed.
    with pytest.raises(AssertionError):
        assert_moments(rbm.perturbed(0.3, stream(6)).gibbs(x, 10, stream(5)), mean, covariance)


def test_many_steps_at_once_are_single_steps() -> None:
    """Far from equilibrium: three steps without an x in between end as three that draw each x."""
    dim, n = HIDDEN + 2, 20_000
    rbm = machine(dim)
    start = torch.full((n, dim), 1.5, dtype=torch.float64)
    single, generator = start, stream(1)
    for _ in range(3):
        single = rbm.gibbs(single, 1, generator)
    together = rbm.gibbs(start, 3, stream(2))
    for ours, theirs in ((together, single), (together.square(), single.square())):
        error = ((ours.var(0) + theirs.var(0)) / n).sqrt()
        assert float(((ours.mean(0) - theirs.mean(0)) / error).abs().max()) < 4.5
    two = rbm.gibbs(start, 2, stream(2))
    error = ((two.var(0) + single.var(0)) / n).sqrt()
    assert float(((two.mean(0) - single.mean(0)) / error).abs().max()) > 4.5, "the chain has arrived"


def test_machines_with_equal_columns_are_drawn_from() -> None:
    weights = torch.ones(5, 3, dtype=torch.float64)
    rbm = GaussianBernoulliRBM(weights, torch.zeros(5).double(), torch.zeros(3).double(), sweeps=20)
    x = rbm.sample(4000, stream())
    assert float((x.mean(0) / (x.std(0) / math.sqrt(4000))).abs().max()) < 4.5  # h and -h are as likely


def test_draws_from_noise_have_the_moments() -> None:
    rbm = machine()
    rbm.sweeps = 40
    _, mean, covariance = exact_draws(rbm, 1)
    assert_moments(rbm.sample(20_000, stream(7)), mean, covariance)


def test_annealed_units_have_their_law() -> None:
    """The share of every state of strongly coupled hidden units, against the sum over all of them."""
    rbm = GaussianBernoulliRBM.random(12, HIDDEN + 2, stream(3)).double()
    h = torch.tensor(list(product((-1.0, 1.0), repeat=HIDDEN + 2)), dtype=torch.float64)
    centre = rbm.visible_bias + rbm.coupling * h @ rbm.weights.T
    law = (h @ rbm.hidden_bias + 0.5 * centre.square().sum(1)).softmax(0)
    n = 20_000
    drawn = rbm.anneal(n, 200, stream(8))
    codes = ((drawn > 0).long() * 2 ** torch.arange(HIDDEN + 1, -1, -1)).sum(1)
    shares = torch.bincount(codes, minlength=len(law)) / n
    error = (law * (1 - law) / n).sqrt() + 1 / n
    assert float(law.max()) > 0.1
    assert float(((shares - law) / error).abs().max()) < 4.5


def test_annealed_draws_settle_where_block_steps_do_not() -> None:
    """Mean energies of the paper's machine in 50 dimensions: block steps are still on their way."""
    rbm = GaussianBernoulliRBM.random(50, 40, stream(), sweeps=60)
    settled = rbm(rbm.sample(300, stream(1)))
    start = torch.randn(300, 50, generator=stream(2))
    early, late = (rbm(rbm.gibbs(start, steps, stream(3))) for steps in (50, 500))
    error = math.sqrt(float((settled.var() + late.var()) / 300))
    assert float(settled.mean()) < float(late.mean()) - 4.5 * error
    assert float(late.mean()) < float(early.mean()) - 4.5 * math.sqrt(float((early.var() + late.var()) / 300))


def test_a_random_machine_is_the_papers() -> None:
    rbm = GaussianBernoulliRBM.random(50, 40, stream())
    assert set(rbm.weights.flatten().tolist()) == {-1.0, 1.0}
    assert abs(float(rbm.weights.mean())) < 4.5 / math.sqrt(50 * 40)
    for bias, size in ((rbm.visible_bias, 50), (rbm.hidden_bias, 40)):
        assert bias.shape == (size,)
        assert abs(float(bias.square().mean()) - 1) < 4.5 * math.sqrt(2 / size)
    assert (rbm.coupling, rbm.dim) == (0.5, 50)


def test_a_perturbation_is_gaussian_noise_on_the_weights_only() -> None:
    rbm = GaussianBernoulliRBM.random(50, 40, stream())
    other = rbm.perturbed(0.04, stream(1))
    moved = (other.weights - rbm.weights) / 0.04
    assert abs(float(moved.square().mean()) - 1) < 4.5 * math.sqrt(2 / moved.numel())
    assert other.visible_bias.equal(rbm.visible_bias)
    assert other.hidden_bias.equal(rbm.hidden_bias)
    assert rbm.perturbed(0.0, stream(1)).weights.equal(rbm.weights)


def test_many_machines_are_each_of_them() -> None:
    many = GaussianBernoulliRBM.random(6, 3, stream(), machines=4, sweeps=3).double()
    x = torch.randn(4, 10, 6, generator=stream(1), dtype=torch.float64)
    assert many(x).shape == (4, 10)
    assert many.sample(7, stream(2)).shape == (4, 7, 6)
    normalisers = many.log_normaliser()
    assert normalisers.shape == (4,)
    for index in range(4):
        one = many.machine(index)
        torch.testing.assert_close(many(x)[index], one(x[index]))
        torch.testing.assert_close(many.score(x)[index], one.score(x[index]))
        torch.testing.assert_close(normalisers[index], one.log_normaliser())
        assert not many.weights[index].equal(many.weights[(index + 1) % 4])


def test_parameters_are_trained_only_where_asked() -> None:
    assert list(machine().parameters()) == []
    rbm = machine(learned=True)
    assert {name for name, _ in rbm.named_parameters()} == {"weights", "visible_bias", "hidden_bias"}
    torch.testing.assert_close(rbm.log_normaliser(), machine().log_normaliser())


def test_bad_input_is_named() -> None:
    with pytest.raises(InputError, match=r"\(4,\)"):
        GaussianBernoulliRBM(torch.zeros(3, 4), torch.zeros(3), torch.zeros(3))
    with pytest.raises(InputError, match="n is -1"):
        machine().sample(-1, stream())
    with pytest.raises(InputError, match="2\\^40 terms"):
        GaussianBernoulliRBM.random(5, 40, stream()).log_normaliser()
