"""A population from afar comes to the law of a right model, where that corrects a mixture too."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from burnin.evaluation.adjusted import cooled_from_afar
from burnin.evaluation.bridge import MixtureBase
from burnin.evaluation.distance import DistanceScale
from burnin.evaluation.model import Chain, Model
from burnin.samplers import MALA
from burnin.starts import FromNoise

DIM, N = 30, 300


class Mixed:
    """Draws of six Gaussians, some twenty times as wide as others."""

    def __init__(self) -> None:
        stream = torch.Generator().manual_seed(0)
        means = 2 * torch.randn(6, DIM, generator=stream, dtype=torch.float64)
        widths = torch.tensor([0.05, 0.1, 0.2, 0.4, 0.7, 1.0], dtype=torch.float64)
        self.base = MixtureBase(
            torch.full((6,), 1 / 6, dtype=torch.float64).log(), means, widths[:, None].expand(6, DIM).clone()
        )
        self.dim = DIM

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        return self.base.sample(n, generator)


class Right(nn.Module):
    """E = -log q, and more where the first coordinate is positive."""

    def __init__(self, base: MixtureBase, more: float = 0.0) -> None:
        super().__init__()
        self.base, self.more = base, more

    def forward(self, x: Tensor) -> Tensor:
        value, score = self.base.log_prob_and_score(x.detach())
        # By its score, as log_prob keeps no graph that is worth walking.
        return -(value + (score * (x - x.detach())).sum(1)).to(x.dtype) + self.more * (x[:, 0] > 0)


def of(data: Mixed, energy: nn.Module) -> Model:
    chain = Chain(MALA(0.002, 1.0), 20)
    return Model(energy, 1.0, data, FromNoise(), chain, chain, True, None, "truth", 0, base=data.base)


def test_the_masses_of_narrow_and_wide_gaussians_are_kept_on_the_way_from_the_base() -> None:
    data, stream = Mixed(), torch.Generator().manual_seed(1)
    unit = DistanceScale.fit(data, N, 1000, stream, num_sets=6)
    fresh, model = data.sample(1000, stream), of(data, Right(data.base))
    walked = cooled_from_afar(model, fresh, N, 50, stream)
    assert N / 4 < walked.effective <= N  # a quarter of a nat leaves most families
    assert unit.distance(walked.sampled.position, walked.effective) < 2
    cooled = cooled_from_afar(replace(model, base=None), fresh, N, 500, stream)
    assert unit.distance(cooled.sampled.position, cooled.effective) > 5, "cooling cannot undo what heat did"


def test_mass_in_the_wrong_place_is_found() -> None:
    data, stream = Mixed(), torch.Generator().manual_seed(1)
    unit = DistanceScale.fit(data, N, 1000, stream, num_sets=6)
    walked = cooled_from_afar(of(data, Right(data.base, more=4.0)), data.sample(1000, stream), N, 50, stream)
    assert unit.distance(walked.sampled.position, walked.effective) > 5
