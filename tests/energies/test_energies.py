"""One contract for every energy, and what is known exactly about those that are known."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from burnin.core import Energy, InputError, energy_and_gradient, evaluate
from burnin.energies import (
    MLP,
    FourierFeatures,
    FromLogProb,
    GaussianBernoulliRBM,
    GaussianEnergy,
    GaussianFactor,
    ICAEnergy,
    MixtureFactor,
    RBMInUnits,
    Standardised,
)
from burnin.energies.layers import ACTIVATIONS
from burnin.rng import Streams

DIM = 4
FREQUENCIES = (0.3, 1.0)
MEAN = torch.tensor([0.5, -1.0, 0.0, 2.0])
STD = torch.tensor([1.0, 0.2, 3.0, 0.7])


def mlp(stream: torch.Generator, activation: str = "silu", dim: int = DIM) -> MLP:
    return MLP(dim, width=16, depth=2, generator=stream, activation=activation)


def fourier(stream: torch.Generator) -> FourierFeatures:
    return FourierFeatures(mlp(stream, dim=FourierFeatures.size(DIM, FREQUENCIES)), FREQUENCIES)


def gaussian(stream: torch.Generator, dtype: torch.dtype) -> GaussianEnergy:
    a = torch.randn(DIM, DIM, generator=stream, dtype=torch.float64)
    return GaussianEnergy(MEAN.to(dtype), (a @ a.T + torch.eye(DIM)).to(dtype))


def factor(stream: torch.Generator, learned: bool) -> GaussianFactor:
    return GaussianFactor(mlp(stream), MEAN, STD, temperature=0.3, learned=learned)


def mixture(stream: torch.Generator, full: bool) -> MixtureFactor:
    spread = torch.rand(2, DIM, generator=stream) + 0.5
    factors = spread.diag_embed() + 0.2 * torch.ones(DIM, DIM).tril(-1) if full else spread
    means = torch.randn(2, DIM, generator=stream)
    weights = torch.tensor([0.3, 0.7])
    return MixtureFactor(mlp(stream), weights.log(), means, factors, temperature=0.3)


def log_student(x: Tensor) -> Tensor:
    return -2.5 * torch.log1p(x.square().sum(1) / 3)


Make = Callable[[torch.Generator, torch.dtype], Energy]


def activated(activation: str) -> Make:
    return lambda stream, dtype: mlp(stream, activation).to(dtype)


ENERGIES: dict[str, Make] = {
    **{f"mlp {activation}": activated(activation) for activation in ACTIVATIONS},
    "fourier": lambda stream, dtype: fourier(stream).to(dtype),
    "standardised": lambda stream, dtype: Standardised(mlp(stream), MEAN, STD).to(dtype),
    "standardised column": lambda stream, dtype: Standardised(mlp(stream).layers, MEAN, STD).to(dtype),
    "standardised fourier": lambda stream, dtype: Standardised(fourier(stream), MEAN, STD).to(dtype),
    "factor": lambda stream, dtype: factor(stream, learned=False).to(dtype),
    "factor learned": lambda stream, dtype: factor(stream, learned=True).to(dtype),
    "mixture": lambda stream, dtype: mixture(stream, full=True).to(dtype),
    "mixture diagonal": lambda stream, dtype: mixture(stream, full=False).to(dtype),
    "gaussian": gaussian,
    "ica laplace": lambda stream, dtype: ICAEnergy.random(DIM, "laplace", stream, temperature=0.3).to(dtype),
    "ica logistic": lambda stream, dtype: ICAEnergy.random(DIM, "logistic", stream).to(dtype),
    "rbm": lambda stream, dtype: GaussianBernoulliRBM.random(DIM, 5, stream, temperature=0.3).to(dtype),
    "rbm in units": lambda stream, dtype: RBMInUnits(
        GaussianBernoulliRBM.random(DIM, 5, stream, temperature=0.3), MEAN, STD
    ).to(dtype),
    "from log prob": lambda stream, dtype: FromLogProb(log_student, 0.7),
}
SEEDED = [name for name in ENERGIES if name != "from log prob"]

every_energy = pytest.mark.parametrize("name", ENERGIES)


def build(name: str, dtype: torch.dtype = torch.float64, seed: int = 0) -> Energy:
    return ENERGIES[name](Streams(seed)["weights"], dtype)


def points(n: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return 2 * torch.randn(n, DIM, generator=Streams(1)["points"], dtype=torch.float64).to(dtype)


@every_energy
@pytest.mark.parametrize("n", [1, 2, 50])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_batch_becomes_a_vector(name: str, n: int, dtype: torch.dtype) -> None:
    energy, x = build(name, dtype), points(n, dtype)
    given = x.clone()
    value = energy(x)
    assert value.shape == (n,)
    assert value.dtype == dtype
    assert bool(torch.isfinite(value).all())
    assert x.equal(given)
    assert n == 1 or float(value.detach().std()) > 0, "it depends on its input"


@every_energy
def test_an_energy_does_not_depend_on_its_batch(name: str) -> None:
    energy, x = build(name), points(20)
    together = evaluate(energy, x)
    alone = torch.cat([evaluate(energy, row.unsqueeze(0)) for row in x])
    torch.testing.assert_close(alone, together, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(evaluate(energy, x.flip(0)).flip(0), together, rtol=1e-12, atol=1e-12)
    others = torch.cat([x[:5], 100 + points(30)])
    torch.testing.assert_close(evaluate(energy, others)[:5], together[:5], rtol=1e-12, atol=1e-12)


@every_energy
def test_training_mode_changes_nothing(name: str) -> None:
    energy, x = build(name), points(5)
    if isinstance(energy, nn.Module):
        assert energy.train()(x).equal(energy.eval()(x))


@pytest.mark.parametrize("name", SEEDED)
def test_the_generators_seed_decides_the_weights(name: str) -> None:
    x = points(5)
    first = build(name)(x)
    torch.randn(7)
    assert build(name)(x).equal(first)
    assert not build(name, seed=1)(x).equal(first)


@every_energy
def test_gradients_are_finite_differences(name: str) -> None:
    """Central differences of step h have an error of order h²: 1e-5 leaves 1e-10 and rounding."""
    energy, x, h = build(name), points(6), 1e-5
    if name == "mlp leaky":  # a kink within h of a point would spoil the difference; there is none here
        h = 1e-7
    gradient = energy_and_gradient(energy, x)[1]
    for i in range(DIM):
        shift = torch.zeros(DIM, dtype=torch.float64)
        shift[i] = h
        numeric = (evaluate(energy, x + shift) - evaluate(energy, x - shift)) / (2 * h)
        torch.testing.assert_close(gradient[:, i], numeric.detach(), rtol=1e-6, atol=1e-7)


# --- Networks --------------------------------------------------------------------------------------------


def test_first_weights_are_uniform_by_their_fan_in() -> None:
    net = MLP(9, width=400, depth=2, generator=Streams(2)["weights"])
    linears = [layer for layer in net.layers if isinstance(layer, nn.Linear)]
    assert [(layer.in_features, layer.out_features) for layer in linears] == [(9, 400), (400, 400), (400, 1)]
    for layer in linears:
        bound = layer.in_features**-0.5
        for weight in (layer.weight, layer.bias):
            assert float(weight.detach().abs().max()) <= bound
        n = layer.weight.numel()
        # Var of U(-b, b) is b²/3, with a relative error of sqrt((1.8 - 1)/n).
        spread = float(layer.weight.detach().square().mean()) / (bound**2 / 3)
        assert abs(spread - 1) < 4.5 * math.sqrt(0.8 / n)


def test_the_mlp_is_its_formula() -> None:
    net = mlp(Streams(0)["weights"]).double()
    x = points(7)
    hidden = x
    linears = [layer for layer in net.layers if isinstance(layer, nn.Linear)]
    for layer in linears[:-1]:
        pre = hidden @ layer.weight.T + layer.bias
        hidden = pre * torch.sigmoid(pre)
    expected = (hidden @ linears[-1].weight.T + linears[-1].bias)[:, 0]
    torch.testing.assert_close(net(x), expected, rtol=1e-12, atol=1e-12)


def test_unknown_activation_is_refused() -> None:
    with pytest.raises(InputError, match="'relu6'; known are silu, gelu, leaky, softplus"):
        MLP(2, width=4, depth=1, generator=torch.Generator(), activation="relu6")


@pytest.mark.parametrize(("width", "depth"), [(0, 1), (4, 0), (-1, 2)])
def test_impossible_sizes_are_refused(width: int, depth: int) -> None:
    with pytest.raises(InputError, match="at least 1"):
        MLP(2, width=width, depth=depth, generator=torch.Generator())


class Recorder(nn.Module):
    """A network that keeps its input, to see what a wrapper feeds it."""

    def forward(self, x: Tensor) -> Tensor:
        self.seen = x
        return x.sum(1)


def test_fourier_features_are_their_formula() -> None:
    recorder = Recorder()
    energy = FourierFeatures(recorder, FREQUENCIES).double()
    x = points(3)
    energy(x)
    assert recorder.seen.shape == (3, FourierFeatures.size(DIM, FREQUENCIES)) == (3, 20)
    waves = [[f * float(v) for v in row for f in FREQUENCIES] for row in x]
    angle = torch.tensor(waves, dtype=torch.float64)
    expected = torch.cat([x, angle.sin(), angle.cos()], 1)
    torch.testing.assert_close(recorder.seen, expected, rtol=1e-6, atol=1e-6)


# --- Wrappers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", [False, True])
def test_standardised_is_the_net_of_the_standardised(column: bool) -> None:
    net = mlp(Streams(0)["weights"])
    energy = Standardised(net.layers if column else net, MEAN, STD)
    x = points(8, torch.float32)
    assert energy(x).equal(net((x - MEAN) / STD))


def test_standardised_keeps_its_numbers_with_the_weights() -> None:
    mean, std = MEAN.clone(), STD.clone()
    energy = Standardised(mlp(Streams(0)["weights"]), mean, std)
    mean.zero_()
    std.fill_(7)
    assert energy.mean.equal(MEAN)
    assert energy.std.equal(STD)
    assert {"mean", "std"} <= set(energy.state_dict())


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
def test_a_constant_dimension_is_refused_by_its_number(bad: float) -> None:
    std = torch.tensor([1.0, bad, 2.0, bad])
    with pytest.raises(InputError, match=r"dimensions \[1, 3\] are constant"):
        Standardised(nn.Linear(4, 1), torch.zeros(4), std)


class Zero(nn.Module):
    """No energy at all."""

    def forward(self, x: Tensor) -> Tensor:
        return 0 * x.flatten(1).sum(1)


@pytest.mark.parametrize("temperature", [1.0, 0.005, 20.0])
@pytest.mark.parametrize("learned", [False, True])
def test_a_gaussian_factor_alone_is_the_gaussian(temperature: float, learned: bool) -> None:
    """exp(-E/T) is N(μ, σ²) up to its constant: ratios of densities are torch.distributions' own."""
    energy = GaussianFactor(Zero(), MEAN, STD, temperature=temperature, learned=learned).double()
    normal = torch.distributions.Independent(torch.distributions.Normal(MEAN.double(), STD.double()), 1)
    x = points(9)
    log_ratio = -(energy(x) - energy(x[:1])) / temperature
    expected = normal.log_prob(x) - normal.log_prob(x[:1])  # type: ignore[no-untyped-call]
    torch.testing.assert_close(log_ratio, expected, rtol=1e-6, atol=1e-6)
    score = -energy_and_gradient(energy, x)[1] / temperature
    torch.testing.assert_close(score, -(x - MEAN) / STD.double().square(), rtol=1e-6, atol=1e-6)


def test_a_gaussian_factor_multiplies_the_nets_density() -> None:
    net = mlp(Streams(0)["weights"]).double()
    energy = GaussianFactor(net, MEAN.double(), STD.double(), temperature=0.3)
    x = points(9)
    expected = net(x) + 0.3 * 0.5 * ((x - MEAN) / STD.double()).square().sum(1)
    torch.testing.assert_close(energy(x), expected, rtol=1e-10, atol=1e-10)


def test_a_factor_is_learned_or_fixed_as_told() -> None:
    fixed, learned = (factor(Streams(0)["weights"], learned=value) for value in (False, True))
    own = {"mean", "log_std"}
    assert not own & {name for name, _ in fixed.named_parameters()}
    assert own <= {name for name, _ in learned.named_parameters()}
    assert own <= set(fixed.state_dict()) & set(learned.state_dict())
    learned(points(5, torch.float32)).sum().backward()
    assert learned.mean.grad is not None
    assert learned.log_std.grad is not None


# --- Known densities -------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [1.0, 0.25, 3.0])
def test_from_log_prob_has_that_density_at_its_temperature(temperature: float) -> None:
    energy, x = FromLogProb(log_student, temperature), points(9)
    torch.testing.assert_close(-energy(x) / temperature, log_student(x), rtol=1e-14, atol=0.0)


@pytest.mark.parametrize("temperature", [1.0, 0.25])
def test_gaussian_energy_is_a_gaussian_of_precision_over_t(temperature: float) -> None:
    energy = gaussian(Streams(0)["weights"], torch.float64)
    normal = torch.distributions.MultivariateNormal(
        energy.mean, precision_matrix=energy.precision / temperature
    )
    x = points(9)
    log_ratio = -(energy(x) - energy(x[:1])) / temperature
    expected = normal.log_prob(x) - normal.log_prob(x[:1])  # type: ignore[no-untyped-call]
    torch.testing.assert_close(log_ratio, expected, rtol=1e-10, atol=1e-10)
