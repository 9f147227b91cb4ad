"""Linear ICA: its density by change of variables, its draws by their sources, its energy by its density."""

from __future__ import annotations

import math

import pytest
import torch

from burnin.core import InputError
from burnin.data import LinearICA
from burnin.energies import ICAEnergy
from burnin.objectives import log_likelihood
from burnin.sources import SOURCES, Source, draw_sources, source_log_prob, well_conditioned_matrix
from tests.data.grids import assert_agree, assert_mean_is, total_mass

ENTROPY: dict[Source, float] = {"laplace": 1 + math.log(2), "logistic": 2.0}
VARIANCE: dict[Source, float] = {"laplace": 2.0, "logistic": math.pi**2 / 3}
every_source = pytest.mark.parametrize("source", SOURCES)


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@every_source
def test_the_density_integrates_to_one(source: Source) -> None:
    ica = LinearICA(torch.tensor([[3.0, 1.0], [-0.5, 2.0]]), source)
    # Tails beyond 14: at least 14·2 in a source, exp(-28); the kink costs the midpoint rule some h².
    assert total_mass(ica.log_prob, 14.0, 1400) == pytest.approx(1, abs=2e-3)


@every_source
def test_log_prob_is_the_change_of_variables(source: Source) -> None:
    ica = LinearICA.random(7, source, stream())
    z = draw_sources(source, (30, 7), stream(1)).double()
    x = z @ ica.mixing.T
    expected = source_log_prob(source, z).sum(1) - torch.linalg.slogdet(ica.mixing).logabsdet
    torch.testing.assert_close(ica.log_prob(x), expected, rtol=1e-9, atol=1e-9)


@every_source
def test_sources_are_of_their_law(source: Source) -> None:
    z = draw_sources(source, (100_000,), stream(2))
    assert_mean_is(z, 0.0)
    assert_mean_is(z.square(), VARIANCE[source])
    assert_mean_is(-source_log_prob(source, z), ENTROPY[source])
    assert bool(z.isfinite().all())


@every_source
def test_draws_follow_the_density(source: Source) -> None:
    ica = LinearICA(torch.tensor([[1.0, 0.4], [-0.3, 1.2]]), source)
    x = ica.sample(40_000, stream(3))
    assert_agree(x, ica.log_prob, 12.0)
    volume = math.log(1.2 + 0.12)
    assert_mean_is(ica.log_prob(x), -2 * ENTROPY[source] + volume)


@pytest.mark.parametrize("dim", [2, 10, 50])
def test_random_matrices_are_well_conditioned(dim: int) -> None:
    assert float(torch.linalg.cond(well_conditioned_matrix(dim, stream()))) < dim
    unmixed = LinearICA.random(dim, "laplace", stream())
    mixed = LinearICA.random(dim, "laplace", stream(), gaussian="mixing")
    torch.testing.assert_close(mixed.mixing, unmixed.unmixing)
    assert unmixed.sample(4, stream()).shape == (4, dim)


def test_the_papers_likelihoods_are_of_a_gaussian_unmixing_matrix() -> None:
    """-10.98 in 10 and -25.53 in 50 dimensions (stein, Figure 8): of the other matrix they would be far."""
    for dim, printed in ((10, -10.98), (50, -25.53)):
        of = {
            kind: -2.0 * dim
            + torch.linalg.slogdet(
                LinearICA.random(dim, "logistic", stream(), gaussian=kind).unmixing
            ).logabsdet.item()
            for kind in ("unmixing", "mixing")
        }
        assert abs(of["unmixing"] - printed) < 5
        assert abs(of["mixing"] - printed) > 10


@every_source
@pytest.mark.parametrize("temperature", [0.3, 1.0])
def test_the_energy_with_its_normaliser_is_the_density(source: Source, temperature: float) -> None:
    ica = LinearICA.random(5, source, stream())
    energy = ICAEnergy(ica.unmixing, source, temperature=temperature)
    x = ica.sample(20, stream(1)).double()
    torch.testing.assert_close(log_likelihood(energy, x, temperature).detach(), ica.log_prob(x))
    assert not ICAEnergy.random(5, source, stream(9)).unmixing.allclose(energy.unmixing.float())


def test_bad_input_is_named() -> None:
    with pytest.raises(InputError, match="square"):
        LinearICA(torch.zeros(2, 3), "laplace")
    with pytest.raises(InputError, match="singular"):
        LinearICA(torch.ones(2, 2), "laplace")
    with pytest.raises(InputError, match="known are laplace, logistic"):
        LinearICA(torch.eye(2), "cauchy")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least 2"):
        well_conditioned_matrix(1, stream())
    with pytest.raises(InputError, match=r"wanted \(n, 2\)"):
        LinearICA(torch.eye(2), "laplace").log_prob(torch.zeros(3, 3))
    with pytest.raises(InputError, match="square"):
        ICAEnergy(torch.zeros(2, 3), "laplace")


@every_source
def test_whitened_it_is_the_same_law_in_other_coordinates(source: Source) -> None:
    ica = LinearICA.random(5, source, stream())
    white = ica.whitened(stream(1))
    matrix = white.mixing @ ica.unmixing  # A of x = A x₀, from x = W z and x₀ = W₀ z
    x = ica.sample(50, stream(2)).double()
    torch.testing.assert_close(white.log_prob(x @ matrix.T) + white.log_stretch, ica.log_prob(x))
    covariance = VARIANCE[source] * white.mixing @ white.mixing.T
    # An entry of a sample covariance of 100,000 has a standard error of at most sqrt((6 - 1)/n), 6 being the
    # kurtosis of Laplace sources; five of them for 15 entries.
    assert (covariance - torch.eye(5)).abs().max() < 5 * math.sqrt(5 / 100_000)
