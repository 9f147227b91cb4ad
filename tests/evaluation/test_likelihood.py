"""log Z with bounds, against normalisers that are known."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from burnin.core import InputError
from burnin.data import Gaussian, GaussianMixture, make_known_density
from burnin.energies import FromLogProb
from burnin.evaluation import LogNormaliser, MixtureBase, likelihood, log_normaliser
from burnin.evaluation.bridge import FLOOR, Bridge, WhiteBridge
from burnin.evaluation.normaliser import by_grid
from burnin.evaluation.walk import NotReachedError, divided, next_share


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def correlated(dim: int, temperature: float) -> tuple[Tensor, float]:
    """A precision matrix, and log Z of exp(-½ xᵀPx / T)."""
    root = torch.eye(dim, dtype=torch.float64) + 0.3 * torch.randn(
        dim, dim, generator=stream(9), dtype=torch.float64
    )
    precision = root @ root.T
    log_det = torch.linalg.slogdet(precision / temperature)[1].item()
    return precision.float(), 0.5 * dim * math.log(2 * math.pi) - 0.5 * log_det


@pytest.mark.parametrize("components", [1, 3])
def test_a_base_is_a_normalised_density(components: int) -> None:
    data = make_known_density("mixture8").sample(2000, stream())
    base = MixtureBase.fit(data, components)
    axis = torch.linspace(-6, 6, 241, dtype=torch.float64)
    total = base.log_prob(torch.cartesian_prod(axis, axis)).exp().sum().item() * (12 / 240) ** 2
    assert total == pytest.approx(1.0, abs=1e-4)
    drawn = base.sample(20_000, stream(1)).double()
    error = (drawn.std(0) / 20_000**0.5).max().item()
    weights = base.log_weights.exp()[:, None]
    mean = (weights * base.means).sum(0)
    variance = (weights * (base.factors.square().sum(2) + (base.means - mean).square())).sum(0)
    assert (drawn.mean(0) - mean).abs().max().item() < 5 * error
    # The variance of a variance is at most (kurtosis - 1)/n · σ⁴; these draws have a kurtosis below 4.
    assert (drawn.var(0) / variance - 1).abs().max().item() < 5 * (3 / 20_000) ** 0.5


@pytest.mark.parametrize("components", [1, 3])
def test_the_bridge_knows_its_gradient(components: int) -> None:
    data = make_known_density("mixture8").sample(500, stream())
    base = MixtureBase.fit(data, components)
    bridge = Bridge(lambda x: x.square().sum(1).cos(), 0.5, base, 0.3)
    x = data[:20].double().requires_grad_(True)
    by_tape = torch.autograd.grad((0.3 / 0.5 * x.square().sum(1).cos() - 0.7 * base.log_prob(x)).sum(), x)[0]
    assert torch.allclose(bridge.energy_and_gradient(x.detach())[1], by_tape, rtol=1e-9, atol=1e-9)


def test_whitened_coordinates_lead_back() -> None:
    data = torch.randn(500, 3, generator=stream()).double() * torch.tensor([1.0, 10.0, 0.1])
    base = MixtureBase.fit(data, 2)
    white = base.whiten(data)
    assert torch.allclose(base.unwhiten(white), data)
    # The mixture has the data's moments, but for the floor of its variances and EM's division by n.
    assert torch.allclose(white.mean(0), torch.zeros(3).double(), atol=1e-9)
    assert torch.allclose(torch.cov(white.T), torch.eye(3).double(), atol=1 / 500 + FLOOR)
    energy = WhiteBridge(Bridge(lambda x: x.square().sum(1), 0.5, base, 0.3))
    z = white[:5].clone().requires_grad_(True)
    x = base.unwhiten(z)
    by_tape = torch.autograd.grad((0.3 / 0.5 * x.square().sum(1) - 0.7 * base.log_prob(x)).sum(), z)[0]
    assert torch.allclose(energy.energy_and_gradient(z.detach())[1], by_tape, rtol=1e-9, atol=1e-9)


def test_the_number_of_components_is_chosen_by_held_out_rows() -> None:
    assert MixtureBase.choose(torch.randn(1000, 3, generator=stream())).num_components == 1
    clusters = make_known_density("mixture8").sample(1000, stream())
    chosen = MixtureBase.choose(clusters)
    assert chosen.num_components > 8  # and one over all
    fresh = make_known_density("mixture8").sample(1000, stream(1))
    gain = chosen.log_prob(fresh) - MixtureBase.fit(clusters).log_prob(fresh)
    assert gain.mean() > 3 * gain.std() / 1000**0.5
    assert MixtureBase.choose(clusters[:5]).num_components == 1  # too few to hold any out


@pytest.mark.parametrize(("dim", "temperature"), [(1, 1.0), (2, 0.1), (10, 2.0)])
def test_the_truth_lies_between_the_bounds(dim: int, temperature: float) -> None:
    precision, truth = correlated(dim, temperature)

    def energy(x: Tensor) -> Tensor:
        return 0.5 * ((x @ precision) * x).sum(1)

    cover = torch.linalg.cholesky(temperature * torch.linalg.inv(precision))
    # Fitted to data of another width and place: the way must be walked.
    base = MixtureBase.fit(1.4 * torch.randn(2000, dim, generator=stream(3)) @ cover.T + 0.2)
    z = log_normaliser(energy, temperature, base, generator=stream(4), particles=256)
    # Four standard errors: 1.96 would miss once in twenty seeds by design.
    assert z.lower - 4 * z.lower_error < truth < z.upper + 4 * z.upper_error
    low, high = z.interval
    assert high - low < 0.5
    assert z.trusted
    assert 0.3 < z.acceptance < 0.95


def test_modes_far_apart_are_weighed() -> None:
    mixture = make_known_density("mixture8-unequal")
    base = MixtureBase.fit(mixture.sample(2000, stream()))
    z = log_normaliser(lambda x: 2.0 - mixture.log_prob(x), 1.0, base, generator=stream(1), particles=256)
    assert z.lower - 4 * z.lower_error < -2.0 < z.upper + 4 * z.upper_error


def test_the_interval_holds_all_of_both_estimates() -> None:
    z = LogNormaliser(1.0, 0.9, 0.1, 0.01, 100.0, 100.0, 2, 0.7)  # crossed by chance
    assert z.interval == pytest.approx((1.0 - 0.196, 1.0 + 0.196))
    assert replace(z, upper=2.0).interval == pytest.approx((1.0 - 0.196, 2.0 + 0.0196))


def test_the_way_back_may_start_at_given_draws() -> None:
    """From draws of one mode of two the estimate of 1/Z is half of that from both: the base's share is."""
    pair = GaussianMixture(((-6.0,), (6.0,)), sd=1.0, weights=(1, 1))
    energy = FromLogProb(pair.log_prob)
    rows = pair.sample(500, stream())
    # The base covers the right mode only, and so do its own draws: both estimates are log ½.
    base = MixtureBase.fit(rows[rows[:, 0] > 0])
    blind = log_normaliser(energy, 1.0, base, generator=stream(1), particles=256)
    assert blind.lower == pytest.approx(math.log(0.5), abs=0.1)
    assert blind.upper == pytest.approx(math.log(0.5), abs=0.1)
    # Draws of both modes tell: the upper estimate is log 1 up to the scatter of the share on the right, 1/16.
    seen = log_normaliser(energy, 1.0, base, generator=stream(1), particles=256, draws=rows)
    assert abs(seen.lower - blind.lower) < 4 * math.hypot(seen.lower_error, blind.lower_error)
    assert seen.num_laws > blind.num_laws, "bounds that far apart are found again by finer steps"
    assert abs(seen.upper) < 4 * seen.upper_error
    assert seen.upper_error == pytest.approx(1 / 16, rel=0.3)
    with pytest.raises(InputError, match=r"draws has shape \(500, 2\); it must be \(n, 1\)"):
        log_normaliser(energy, 1.0, base, generator=stream(1), draws=torch.zeros(500, 2))


def test_mala_is_one_leapfrog_step() -> None:
    precision, truth = correlated(3, 1.0)
    base = MixtureBase.fit(1.3 * torch.randn(1000, 3, generator=stream(3)))
    z = log_normaliser(
        lambda x: 0.5 * ((x @ precision) * x).sum(1), 1.0, base, generator=stream(4), num_leapfrog=1
    )
    assert z.lower - 4 * z.lower_error < truth < z.upper + 4 * z.upper_error


def test_a_grid_follows_the_axes_of_the_data() -> None:
    density = Gaussian.conditioned(2, 1e6, stream())
    data = density.sample(500, stream(1))
    found = by_grid(FromLogProb(lambda x: density.log_prob(x.double()) + 3.0), 1.0, data.double())
    assert found == pytest.approx(3.0, abs=1e-3)


def test_the_likelihood_is_the_mean_log_density() -> None:
    data = torch.randn(4000, 5, generator=stream())
    found = likelihood(lambda x: 0.25 * x.square().sum(1), 0.5, data, particles=256, generator=stream(1))
    assert found is not None
    truth = (-0.5 * data.double().square().sum(1) - 2.5 * math.log(2 * math.pi)).mean().item()
    # Twice the interval: four standard errors, where one interval in twenty misses by design.
    assert abs(found.value - truth) < found.high - found.low
    assert found.high - found.low < 0.3
    assert "annealed importance sampling" in str(found)


def test_an_energy_that_is_no_density_has_no_likelihood() -> None:
    data = torch.randn(500, 3, generator=stream())

    def endless(x: Tensor) -> Tensor:
        return -1e9 * x.square().sum(1)

    with pytest.raises(NotReachedError, match="no density"):
        log_normaliser(endless, 1.0, MixtureBase.fit(data), generator=stream(1), particles=64)
    assert likelihood(endless, 1.0, data, particles=64, generator=stream(1)) is None


def test_the_next_law_leaves_half_of_the_draws() -> None:
    ratio = 30 * torch.randn(10_000, generator=stream(), dtype=torch.float64)
    share = next_share(ratio, 0.0)
    weights = (share * ratio).softmax(0)
    assert (1 / weights.square().sum() / 10_000).item() == pytest.approx(0.5, abs=1e-3)
    # log-weights of variance v leave exp(-v) of the draws: v = (30 · share)² = log 2.
    assert share == pytest.approx(math.log(2) ** 0.5 / 30, rel=0.1)
    assert next_share(torch.zeros(5, dtype=torch.float64), 0.3) == 1.0
    assert divided([0.0, 0.5, 1.0], 2) == [0.0, 0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize(("rows", "components"), [(1, 1), (3, 5), (5, 0)])
def test_a_base_that_cannot_be_fitted_is_refused(rows: int, components: int) -> None:
    with pytest.raises(InputError, match="cannot be fitted"):
        MixtureBase.fit(torch.zeros(rows, 2), components)
