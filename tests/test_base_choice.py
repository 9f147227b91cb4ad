"""The mixture that a table's density starts from: its density, its choice, and learning what it lacks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from burnin.base_choice import COMPONENTS, FOLDS, choose_base
from burnin.core import InputError
from burnin.energies import MLP, MixtureFactor
from burnin.evaluation import MixtureBase
from burnin.objectives import BaseContrast


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def made(full: bool) -> MixtureBase:
    """Two components in three dimensions."""
    means = torch.tensor([[0.0, 1.0, -1.0], [2.0, 0.0, 0.5]], dtype=torch.float64)
    scales = torch.tensor([[0.5, 1.0, 1.5], [1.2, 0.3, 0.8]], dtype=torch.float64)
    factors = scales.diag_embed() + 0.4 * torch.ones(3, 3).tril(-1).double() if full else scales
    return MixtureBase(torch.tensor([0.25, 0.75], dtype=torch.float64).log(), means, factors)


def exact(base: MixtureBase, x: Tensor) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    factors = base.factors if base.factors.dim() == 3 else base.factors.diag_embed()
    each = [
        weight * stats.multivariate_normal(mean, factor @ factor.T).pdf(x)
        for weight, mean, factor in zip(base.log_weights.exp().numpy(), base.means, factors, strict=True)
    ]
    return np.asarray(np.log(np.sum(each, axis=0)))


@pytest.mark.parametrize("full", [True, False])
def test_a_mixture_of_either_shape_has_its_density_score_and_draws(full: bool) -> None:
    base = made(full)
    x = torch.randn(20, 3, generator=stream(1), dtype=torch.float64, requires_grad=True)
    value, score = base.log_prob_and_score(x.detach())
    np.testing.assert_allclose(value.numpy(), exact(base, x.detach()), rtol=1e-10)
    tape = torch.autograd.grad(base.log_prob(x).sum(), x)[0]
    torch.testing.assert_close(score, tape)
    drawn = base.sample(20_000, stream())
    mean = (base.log_weights.exp()[:, None] * base.means).sum(0)
    error = (base.variance / 20_000).sqrt()
    assert bool(((drawn.double().mean(0) - mean).abs() < 4 * error).all())
    # The standard error of a variance is at most about sqrt(3/n) of it for these shapes.
    assert bool((drawn.double().var(0) / base.variance - 1).abs().max() < 4 * (3 / 20_000) ** 0.5)


@pytest.mark.parametrize("full", [True, False])
def test_it_is_kept_in_a_file_and_a_damaged_one_is_named(full: bool, tmp_path: Path) -> None:
    path = tmp_path / "base.npz"
    made(full).save(path)
    x = torch.randn(5, 3, generator=stream())
    torch.testing.assert_close(MixtureBase.load(path).log_prob(x), made(full).log_prob(x))
    path.write_bytes(b"PK")
    with pytest.raises(InputError, match="damaged"):
        MixtureBase.load(path)


def clusters(n: int, seed: int) -> Tensor:
    side = 3.0 * torch.randint(3, (n, 1), generator=stream(seed)) - 3
    return 0.4 * torch.randn(n, 2, generator=stream(seed + 100)) + side * torch.tensor([1.0, 0.0])


def test_the_choice_finds_the_clusters_and_says_what_unseen_rows_have() -> None:
    base, choice = choose_base(clusters(300, 0), seed=0)
    assert choice.components >= 3
    assert len(base.means) <= choice.components * FOLDS
    assert choice.tried == sum(map(len, COMPONENTS.values()))
    fresh = clusters(2000, 1)
    each = base.log_prob(fresh)
    truth = -2 * np.log(0.4) - np.log(2 * np.pi) - 1 - np.log(3)
    # Up to 29 numbers from 240 rows each: 29/(2·240) = 0.06 are lost; the sum's scatter is below 1 nat a row.
    assert -0.15 < each.mean().item() - truth < 0.1
    assert abs(choice.log_density - each.mean().item()) < 4 * each.std().item() / 300**0.5
    again, _ = choose_base(clusters(300, 0), seed=0)
    torch.testing.assert_close(again.means, base.means, rtol=0, atol=0)


def crossed(n: int, seed: int) -> Tensor:
    """Three parts in nine columns, each narrow in three of them."""
    which = torch.arange(n) % 3
    scales = torch.where(torch.arange(9) % 3 == torch.arange(3)[:, None], 0.2, 1.0)
    centres = 2.0 * torch.arange(3)[:, None] * torch.ones(9)
    return centres[which] + scales[which] * torch.randn(n, 9, generator=stream(seed))


def test_shapes_are_told_apart() -> None:
    """Parts along the columns are diagonal there, and turned at random in no coordinates."""
    rows, turn = crossed(150, 0), torch.linalg.qr(torch.randn(9, 9, generator=stream(5)))[0]
    for x, shape, dims in ((rows, "columns", 2), (rows @ turn, "full", 3)):
        base, choice = choose_base(x / x.std(0), seed=0)
        assert (choice.shape, choice.components, base.factors.dim()) == (shape, 3, dims)


def test_a_mixture_that_is_moved_keeps_its_mass() -> None:
    """log p(y) = log p(z) - log |det|, for either shape, and standard deviations stay along axes."""
    matrix, offset = torch.tensor([[2.0, 0.3, 0], [0, -1.0, 0.5], [0.1, 0, 0.7]]).double(), torch.ones(3)
    x = torch.randn(50, 3, generator=stream()).double()
    for full in (True, False):
        base = made(full)
        moved = base.moved(matrix, offset.double())
        expected = base.log_prob(x) - torch.linalg.slogdet(matrix).logabsdet
        torch.testing.assert_close(moved.log_prob(x @ matrix + offset), expected)
    scales = torch.tensor([0.5, 2.0, 3.0]).double()
    moved = made(False).moved(scales.diag(), offset.double(), along_axes=True)
    assert moved.factors.shape == (2, 3)
    torch.testing.assert_close(
        moved.log_prob(x * scales + offset), made(False).log_prob(x) - scales.log().sum()
    )


def test_few_rows_and_one_dimension() -> None:
    base, choice = choose_base(torch.tensor([[0.1], [0.4], [-0.3], [1.0], [-1.1]]), seed=0)
    assert choice.components == 1
    assert torch.isfinite(base.log_prob(torch.zeros(1, 1))).all()


class Quadratic(nn.Module):
    """a x², what two Gaussians of different width differ by."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return self.a * x.square().sum(1)


def test_the_contrast_learns_what_the_base_lacks() -> None:
    """From N(0, 1.3²) to N(0, 1): a = ½ (1 - 1/1.69) and c = log Z = -log 1.3."""
    base = MixtureBase(torch.zeros(1), torch.zeros(1, 1).double(), 1.3 * torch.ones(1, 1).double())
    parts = (part.float() for part in (base.log_weights, base.means, base.factors))
    net = Quadratic()
    energy = MixtureFactor(net, *parts, temperature=1.0)
    objective = BaseContrast(base.sample, temperature=1.0, ratio=2)
    optimizer = torch.optim.Adam([*energy.parameters(), *objective.companions()], lr=0.02)
    data, noise = stream(1), stream(2)
    learned = []
    for step in range(600):
        loss, _ = objective.loss(energy, torch.randn(1000, 1, generator=data), noise)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if step >= 300:
            learned.append((net.a.item(), objective.log_normaliser.item()))
    a, c = np.mean(learned, axis=0)
    # 300,000 data points in the average: errors of some 0.003.
    assert abs(a - 0.5 * (1 - 1 / 1.69)) < 0.015
    assert abs(c + np.log(1.3)) < 0.015


def test_the_contrast_refuses_an_energy_that_corrects_nothing() -> None:
    objective = BaseContrast(made(True).sample, temperature=1.0)
    net = MLP(3, width=4, depth=1, generator=stream())
    with pytest.raises(InputError, match="MixtureFactor"):
        objective.loss(net, torch.zeros(4, 3), stream())


def test_no_component_is_made_of_an_outlier() -> None:
    """Else it would be called usual; a cluster of some rows has its own."""
    stream = torch.Generator().manual_seed(0)
    rows = torch.randn(120, 3, generator=stream)
    rows[:20] += 8
    rows[41, 0] = 15.0
    base, _ = choose_base(rows, seed=0, components=5)
    log_density = base.log_prob(rows)
    assert log_density.argmin().item() == 41
    assert log_density[:20].min() > log_density[41] + 10
