"""The finite-set Stein discrepancy: a few test locations instead of all pairs, fitted for power."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from burnin.core import InputError
from burnin.discrepancies.kernelised import TINY, normal_cdf
from burnin.discrepancies.kernels import Kernel, median_bandwidth, squared_distances
from burnin.discrepancies.models import Points

START_FACTORS = tuple(2.0 ** (step / 2) for step in range(-4, 5))
"""Multiples of the median bandwidth that the fit may start from."""
NARROWEST, WIDEST = 0.1, 10.0
"""Bounds of the fitted bandwidth, in medians."""
SIMULATION_BLOCK = 4_000_000

Null = Literal["signs", "spectrum"]
"""How the null is drawn: see `fssd`."""


@dataclass(frozen=True)
class FSSD:
    """The discrepancy at J locations, from the features τ(x) of each point, (n, dim·J).

    Attributes:
        features: τ; their mean is 0 under the model.
        null: draws of the statistic under the model, (draws,).
    """

    features: Tensor
    null: Tensor

    @property
    def value(self) -> float:
        """FSSD² without bias: the mean of τ(x)·τ(y) over pairs of different points."""
        return unbiased_square(self.features).item()

    @property
    def statistic(self) -> float:
        """n · FSSD²."""
        return len(self.features) * self.value

    @property
    def sigma(self) -> float:
        """The standard deviation of √n · FSSD² where the model is wrong."""
        return _variance(self.features).sqrt().item()

    @property
    def p_value(self) -> float:
        """The share of draws under the model that reach the statistic, itself counted among them."""
        return (1 + int((self.null >= self.statistic).sum())) / (1 + len(self.null))

    def power(self, num_points: int, level: float) -> float:
        """The chance that another set of data of this size is rejected, by the statistic's normal law."""
        if len(self.null) == 0:
            raise InputError("the power of the test needs the null's threshold; draw some")
        threshold = torch.quantile(self.null, 1 - level).item() / num_points
        return normal_cdf(math.sqrt(num_points) * (self.value - threshold) / max(self.sigma, TINY))


def stein_features(points: Points, locations: Tensor, kernel: Kernel) -> Tensor:
    """τ(x) = [s(x) k(x, v) + ∇ₓ k(x, v)] / √(dim·J) at J locations v, (n, dim·J) (Jitkrittum et al. 2017).

    Example:
        >>> from burnin.discrepancies.kernels import RBF
        >>> x = torch.tensor([[1.0]])
        >>> stein_features(Points(x, -x), torch.tensor([[1.0]]), RBF(1.0))
        tensor([[-1.]])
    """
    value, first, _ = kernel.derivatives(squared_distances(points.x, locations))
    apart = points.x.unsqueeze(2) - locations.T
    features = points.scores.unsqueeze(2) * value.unsqueeze(1) + 2 * first.unsqueeze(1) * apart
    return features.flatten(1) / math.sqrt(locations.numel())


def unbiased_square(features: Tensor) -> Tensor:
    """The squared norm of the features' mean, without the bias of squaring an estimate."""
    n = len(features)
    return (features.mean(0).square().sum() * n - features.square().sum(1).mean()) / (n - 1)


def fssd(
    points: Points,
    locations: Tensor,
    kernel: Kernel,
    *,
    num_simulations: int = 0,
    null: Null = "signs",
    generator: torch.Generator | None = None,
) -> FSSD:
    """FSSD² at given locations, and its null by simulation. In double precision.

    "signs" draws the statistic of the same features with random signs, whose mean is 0 as it is under the
    model. "spectrum" is the original's: n·FSSD² follows Σ ωᵢ (zᵢ² - 1) with standard normal z and the
    eigenvalues ω of the features' covariance, estimated from the points. That estimate makes Σ ω² too large
    by (Σ ω)²/n, so the test is too careful where the features are as many as the points: 1,000 of them in
    200 dimensions.

    Arguments:
        points: data and scores, (n, dim), not those that the locations were fitted to.
        locations: v, (J, dim).
        kernel: k.
        num_simulations: how many draws of the null.
        null: by which law.
        generator: draws them.

    Example:
        >>> from burnin.discrepancies.kernels import RBF
        >>> generator = torch.Generator().manual_seed(0)
        >>> x = torch.randn(500, 1, generator=generator)
        >>> fssd(
        ...     Points(x, 0.5 - x), torch.zeros(1, 1), RBF(1.0), num_simulations=999, generator=generator
        ... ).p_value
        0.001
    """
    if len(points.x) < 2:
        raise InputError(f"the FSSD needs at least 2 points; got {len(points.x)}")
    if num_simulations and generator is None:
        raise InputError("the null is drawn; give it a generator")
    doubled = Points(points.x.double(), points.scores.double())
    features = stein_features(doubled, locations.double(), kernel)
    draws = features.new_zeros(0)
    if generator is not None and num_simulations:
        draws = NULLS[null](features, num_simulations, generator)
    return FSSD(features, draws)


def signed_null(features: Tensor, num_simulations: int, generator: torch.Generator) -> Tensor:
    """Draws of n·FSSD² of the features with random signs, the wild bootstrap of Rademacher weights.

    Its variance is 2 ⟨(τ(x)·τ(y))²⟩ over pairs of different points, which estimates 2 Σ ω² without bias.
    """
    n = len(features)
    own, draws = features.square().sum(), []
    rows = max(1, SIMULATION_BLOCK // max(features.shape))
    for first in range(0, num_simulations, rows):
        shape = (min(rows, num_simulations - first), n)
        bits = torch.randint(0, 2, shape, generator=generator, device=generator.device)
        signs = 2 * bits.to(features) - 1
        draws.append(((signs @ features).square().sum(1) - own) / (n - 1))
    return torch.cat(draws)


def spectral_null(features: Tensor, num_simulations: int, generator: torch.Generator) -> Tensor:
    """Draws of Σ ωᵢ (zᵢ² - 1), ω the eigenvalues of the features' covariance."""
    n, size = features.shape
    away = features - features.mean(0)
    # The same eigenvalues but for zeros, from whichever product is smaller.
    product = away.T @ away if size <= n else away @ away.T
    weights = torch.linalg.eigvalsh(product / (n - 1)).clamp_min(0)
    draws = []
    rows = max(1, SIMULATION_BLOCK // len(weights))
    for first in range(0, num_simulations, rows):
        shape = (min(rows, num_simulations - first), len(weights))
        normal = torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device)
        draws.append((normal.to(weights.device).square() - 1) @ weights)
    return torch.cat(draws)


NULLS: Mapping[Null, Callable[[Tensor, int, torch.Generator], Tensor]] = {
    "signs": signed_null,
    "spectrum": spectral_null,
}


def fit_locations(
    points: Points,
    kernel: Kernel,
    *,
    num_locations: int = 5,
    generator: torch.Generator,
    iterations: int = 100,
    regulariser: float = 1e-2,
    fit_bandwidth: bool = True,
) -> tuple[Tensor, Kernel]:
    """Locations and bandwidth that make the test most powerful: the largest FSSD² / √(σ² + regulariser).

    Locations start as draws from a Gaussian fitted to the data, the bandwidth at the best of some multiples
    of the median distance; L-BFGS goes on from there. Fit to other points than those that are tested.

    Arguments:
        points: data and scores, (n, dim).
        kernel: its kind; its bandwidth too, unless it is fitted.
        num_locations: J.
        generator: draws the first locations.
        iterations: of L-BFGS at most.
        regulariser: keeps the ratio from growing by a vanishing variance.
        fit_bandwidth: choose the bandwidth too.

    Example:
        >>> from burnin.discrepancies.kernels import RBF
        >>> generator = torch.Generator().manual_seed(0)
        >>> x = torch.randn(200, 2, generator=generator)
        >>> locations, kernel = fit_locations(Points(x, 1 - x), RBF(1.0), generator=generator)
        >>> locations.shape
        torch.Size([5, 2])
    """
    doubled = Points(points.x.double(), points.scores.double())
    first = _gaussian_draws(doubled.x, num_locations, generator)

    def power(locations: Tensor, bandwidth: float | Tensor) -> Tensor:
        features = stein_features(doubled, locations, kernel.with_bandwidth(bandwidth))
        return unbiased_square(features) / (_variance(features) + regulariser).sqrt()

    start: float = float(kernel.bandwidth)
    if fit_bandwidth:
        median = median_bandwidth(doubled.x, generator)
        start = median * max(START_FACTORS, key=lambda factor: power(first, median * factor).item())
        lowest, highest = math.log(NARROWEST * median), math.log(WIDEST * median)
    else:
        lowest = highest = math.log(start)
    locations = first.clone().requires_grad_(True)
    log_bandwidth = torch.tensor(math.log(start), dtype=torch.float64, requires_grad=fit_bandwidth)
    best: tuple[float, Tensor, float] = (-math.inf, first, start)
    moved = [locations, log_bandwidth] if fit_bandwidth else [locations]
    optimiser = torch.optim.LBFGS(moved, max_iter=iterations, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        nonlocal best
        optimiser.zero_grad()
        bandwidth = log_bandwidth.clamp(lowest, highest).exp()
        value = power(locations, bandwidth)
        if value.item() > best[0]:
            best = (value.item(), locations.detach().clone(), bandwidth.item())
        (-value).backward()  # type: ignore[no-untyped-call]
        return -value

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    return best[1], kernel.with_bandwidth(best[2])


def _variance(features: Tensor) -> Tensor:
    """The variance of √n · FSSD² where the model is wrong: 4 Var of τ(x)·mean."""
    along = features @ features.mean(0)
    return 4 * along.var(correction=0)


def _gaussian_draws(x: Tensor, number: int, generator: torch.Generator) -> Tensor:
    """Draws from the Gaussian of the data's mean and covariance."""
    dim = x.shape[1]
    covariance = torch.cov(x.T).reshape(dim, dim)
    values, vectors = torch.linalg.eigh(covariance)
    root = vectors * values.clamp_min(0).sqrt()
    normal = torch.randn(number, dim, generator=generator, dtype=torch.float64, device=generator.device)
    draws: Tensor = x.mean(0) + normal.to(x.device) @ root.T
    return draws
