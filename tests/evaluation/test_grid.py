"""Densities on the grid: divergences with known answers, and what they do not depend on."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from burnin.data import Rings
from burnin.energies import FromLogProb, GaussianEnergy
from burnin.evaluation.grid import PlaneGrid, band_kl, band_masses, grid_kl
from burnin.evaluation.rings import ring_bands

RADII = (1.0, 2.0, 3.0)


def gaussian(grid: PlaneGrid, mean: tuple[float, float], sd: float) -> Tensor:
    energy = GaussianEnergy(torch.tensor(mean), torch.eye(2) / sd**2)
    return grid.log_density(energy, 1.0)


def test_positions_cover_the_plane_and_nothing_else() -> None:
    grid = PlaneGrid(4.0, 5, dim=10)
    x = grid.positions()
    assert x.shape == (25, 10)
    assert bool((x[:, 2:] == 0).all())
    assert x[:, :2].min() == -4
    assert x[:, :2].max() == 4
    assert x[:5, 0].tolist() == [-4.0] * 5  # the first coordinate is the slowest
    assert x[:5, 1].tolist() == [-4.0, -2.0, 0.0, 2.0, 4.0]
    torch.testing.assert_close(grid.radius(), x[:, :2].norm(dim=1))


@pytest.mark.parametrize("temperature", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("rings", [Rings.paper(), Rings.four()], ids=["10-D", "four"])
def test_the_truth_as_model_has_no_divergence(rings: Rings, temperature: float) -> None:
    grid = PlaneGrid(5.0, 121, rings.dim)
    model = grid.log_density(FromLogProb(rings.log_prob, temperature), temperature)
    truth = grid.log_truth(rings)
    assert truth.dtype == torch.float64
    assert truth.logsumexp(0).item() == pytest.approx(0, abs=1e-9)
    assert abs(grid_kl(truth, model)) < 1e-6
    assert abs(band_kl(truth, model, ring_bands(grid, rings.radii))) < 1e-6


def test_the_wrong_temperature_is_seen() -> None:
    rings = Rings.paper()
    grid = PlaneGrid(4.0, 121, 10)
    truth = grid.log_truth(rings)
    assert grid_kl(truth, grid.log_density(FromLogProb(rings.log_prob, 1.0), 2.0)) > 0.1


@pytest.mark.parametrize(
    ("mean", "sd"), [((0.0, 0.0), 1.0), ((0.7, -0.4), 1.0), ((0.0, 0.0), 1.6), ((0.5, 0.2), 0.8)]
)
def test_kl_of_two_gaussians_is_the_closed_form(mean: tuple[float, float], sd: float) -> None:
    grid = PlaneGrid(9.0, 181, 2)
    p, q = gaussian(grid, (0.0, 0.0), 1.0), gaussian(grid, mean, sd)
    distance = mean[0] ** 2 + mean[1] ** 2
    expected = 2 * math.log(sd) - 1 + (2 + distance) / (2 * sd**2)
    assert grid_kl(p, q) == pytest.approx(expected, abs=2e-5)


def test_constants_in_the_energy_and_chunks_do_not_matter() -> None:
    grid = PlaneGrid(3.0, 41, 2)

    def energy(x: Tensor) -> Tensor:
        return x.square().sum(1).cos()

    plain = grid.log_density(energy, 0.5)
    torch.testing.assert_close(grid.log_density(lambda x: energy(x) + 1000, 0.5), plain, rtol=0, atol=1e-3)
    torch.testing.assert_close(grid.log_density(energy, 0.5, chunk=100), plain)
    torch.testing.assert_close(grid.log_density(lambda x: energy(x).unsqueeze(1), 0.5), plain)


def test_where_the_truth_has_no_mass_the_model_does_not_count() -> None:
    truth = torch.tensor([0.5, 0.5, 0.0]).log()
    model = torch.tensor([0.5, 0.5, 0.0]).log()
    assert grid_kl(truth, model) == 0
    assert grid_kl(truth, torch.tensor([0.25, 0.25, 0.5]).log()) == pytest.approx(math.log(2))
    assert grid_kl(torch.tensor([0.5, 0.25, 0.25]).log(), truth) == math.inf


def disturbed() -> tuple[Tensor, Tensor, list[Tensor]]:
    """Rings as truth; as model rings of another width. No point of this grid is on the edge of two bands."""
    rings = Rings.paper()
    grid = PlaneGrid(4.0, 160, 10)
    wider = Rings(RADII, sd=0.13, thin_dims=7, thick_dims=1)
    model = grid.log_density(FromLogProb(wider.log_prob), 1.0)
    return grid.log_truth(rings), model, ring_bands(grid, RADII)


@pytest.mark.parametrize("factors", [(1.0, 1.0, 4.0), (0.2, 1.0, 7.0), (1e-3, 50.0, 1.0)])
def test_shape_and_mass_are_told_apart(factors: tuple[float, float, float]) -> None:
    """Bands multiplied by constants c: band_kl stays; KL changes by log Σ c·q - Σ p·log c."""
    truth, model, bands = disturbed()
    change = torch.zeros_like(model)
    for band, factor in zip(bands, factors, strict=True):
        assert not bool((change[band] != 0).any())  # the bands do not overlap
        change[band] = math.log(factor)
    other = (model + change).log_softmax(0)
    assert band_kl(truth, other, bands) == pytest.approx(band_kl(truth, model, bands), rel=1e-9)
    assert band_kl(truth, model, bands) > 0.01
    expected = (model + change).logsumexp(0) - (truth.exp() * change).sum()
    assert grid_kl(truth, other) - grid_kl(truth, model) == pytest.approx(expected.item(), rel=1e-6)


def test_bands_add_up_by_the_truths_mass() -> None:
    """KL = Σ_b p_b · KL_b + KL of the masses, for bands that fill the grid."""
    truth, model, _ = disturbed()
    left = torch.arange(len(truth)) < len(truth) // 3
    parts = [left, ~left]
    p, q = band_masses(truth, parts), band_masses(model, parts)
    between = sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    assert band_kl(truth, model, parts) + between == pytest.approx(grid_kl(truth, model), rel=1e-9)


def test_masses_of_the_rings_are_thirds() -> None:
    truth, _, bands = disturbed()
    masses = band_masses(truth, bands)
    assert sum(masses) == pytest.approx(1, abs=1e-5)
    assert masses == pytest.approx([1 / 3] * 3, abs=2e-3)
    everything = [torch.ones_like(bands[0])]
    assert band_masses(truth, everything) == pytest.approx([1.0])
