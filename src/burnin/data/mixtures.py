"""Gaussian mixtures, the checkerboard and Neal's funnel: toy densities whose logarithm is exact."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import InputError
from burnin.data.checks import require_at_least, require_points, require_positive

RING_RADIUS, RING_SD, RING_PARTS = 1.2, 0.085, 48
BLOB_DISTANCE, BLOB_SD = 2.8, 0.28
"""Of `two_scales`."""


@dataclass(frozen=True)
class GaussianMixture:
    r"""A mixture of isotropic Gaussians.

        p(x) = Σ_k w_k N(x; μ_k, σ_k² I)

    Arguments:
        means: the centres μ_k, K points of equal length.
        sd: σ of every component, or K numbers σ_k.
        weights: K positive numbers in proportion to w_k; stored divided by their sum.

    Example:
        >>> import torch
        >>> mixture = GaussianMixture(means=((0.0,), (4.0,)), sd=1.0, weights=(3, 1))
        >>> mixture.weights
        (0.75, 0.25)
        >>> mixture.sample(3, torch.Generator().manual_seed(0)).shape
        torch.Size([3, 1])
        >>> mixture.log_prob(torch.zeros(1, 1)).round(decimals=3)
        tensor([-1.2070])
    """

    means: tuple[tuple[float, ...], ...]
    sd: float | tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        means = tuple(tuple(float(value) for value in mean) for mean in self.means)
        if not means or not means[0] or any(len(mean) != len(means[0]) for mean in means):
            lengths = [len(mean) for mean in means]
            raise InputError(f"GaussianMixture: means have lengths {lengths}; they must be equal and above 0")
        if len(self.weights) != len(means):
            raise InputError(f"GaussianMixture: {len(self.weights)} weights for {len(means)} means")
        if not all(math.isfinite(value) for mean in means for value in mean):
            raise InputError("GaussianMixture: means hold NaN or infinity")
        for weight in self.weights:
            require_positive("GaussianMixture", weight=float(weight))
        if isinstance(self.sd, tuple) and len(self.sd) != len(means):
            raise InputError(f"GaussianMixture: {len(self.sd)} standard deviations for {len(means)} means")
        for sd in self.sds:
            require_positive("GaussianMixture", sd=sd)
        total = math.fsum(self.weights)
        object.__setattr__(self, "means", means)
        object.__setattr__(self, "weights", tuple(float(weight) / total for weight in self.weights))

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return len(self.means[0])

    @property
    def sds(self) -> tuple[float, ...]:
        """σ_k of each component."""
        if isinstance(self.sd, tuple):
            return tuple(float(sd) for sd in self.sd)
        return (float(self.sd),) * len(self.means)

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n independent draws, (n, dim), on the generator's device."""
        require_at_least("GaussianMixture", 0, n=n)
        device = generator.device
        edges = torch.tensor(self.weights, device=device, dtype=torch.float64).cumsum(0)
        uniform = torch.rand(n, generator=generator, device=device, dtype=torch.float64)
        # Rounding may leave the last edge a little below 1.
        component = torch.searchsorted(edges, uniform, right=True).clamp(max=len(self.weights) - 1)
        noise = torch.randn(n, self.dim, generator=generator, device=device)
        return (
            torch.tensor(self.means, device=device)[component]
            + torch.tensor(self.sds, device=device)[component, None] * noise
        )

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalised log-density, (n,), in the precision of x."""
        require_points("GaussianMixture", x, self.dim)
        means = torch.tensor(self.means, device=x.device, dtype=x.dtype)
        log_weights = torch.tensor(self.weights, device=x.device, dtype=x.dtype).log()
        sds = torch.tensor(self.sds, device=x.device, dtype=x.dtype)
        squares = ((x[:, None, :] - means) / sds[:, None]).square().sum(2)
        # Relative to the first component: one standard deviation for all changes no bit of the weights.
        log_heights = log_weights - self.dim * (sds / sds[0]).log()
        log_constant = self.dim * math.log(self.sds[0] * math.sqrt(2 * math.pi))
        return torch.logsumexp(log_heights - 0.5 * squares, dim=1) - log_constant


def _on_a_circle(weights: Sequence[float]) -> GaussianMixture:
    """Components of sd 0.15 on the unit circle at equal angles from (1, 0), counter-clockwise."""
    angles = [2 * math.pi * index / len(weights) for index in range(len(weights))]
    means = tuple((math.cos(angle), math.sin(angle)) for angle in angles)
    return GaussianMixture(means, sd=0.15, weights=tuple(weights))


def eight_gaussians() -> GaussianMixture:
    """Eight equal Gaussians of sd 0.15 on the unit circle: the 2-D toy of the convergent paper.

    Example:
        >>> eight_gaussians().weights[0]
        0.125
    """
    return _on_a_circle([1.0] * 8)


def unequal_gaussians() -> GaussianMixture:
    """The eight Gaussians with weights 1/36, 2/36, ..., 8/36, counter-clockwise from (1, 0).

    The robust paper (section 4.1) gives the components unequal weights but does not print them;
    this choice is ours. A model that finds all modes but not their masses fails on it.

    Example:
        >>> mixture = unequal_gaussians()
        >>> round(mixture.weights[7] / mixture.weights[0], 6)
        8.0
    """
    return _on_a_circle([float(index + 1) for index in range(8)])


def two_scales() -> GaussianMixture:
    """A thin ring around the origin, and a wide blob on either side of it; half of the mass each.

    The ring is 48 Gaussians so close that it has no gaps. Ring and blobs have nearly the same entropy, so
    that neither draws chains by its volume. A step that fits the ring does not reach the blobs in a
    short chain, and one that reaches them jumps over the ring.

    Example:
        >>> import torch
        >>> x = two_scales().sample(10_000, torch.Generator().manual_seed(0))
        >>> round((x.norm(dim=1) < 1.7).float().mean().item(), 2)
        0.5
    """
    angles = [2 * math.pi * index / RING_PARTS for index in range(RING_PARTS)]
    ring = [(RING_RADIUS * math.cos(angle), RING_RADIUS * math.sin(angle)) for angle in angles]
    blobs = [(-BLOB_DISTANCE, 0.0), (BLOB_DISTANCE, 0.0)]
    sds = [RING_SD] * len(ring) + [BLOB_SD] * len(blobs)
    weights = [1 / len(ring)] * len(ring) + [1 / len(blobs)] * len(blobs)
    return GaussianMixture((*ring, *blobs), tuple(sds), tuple(weights))


@dataclass(frozen=True)
class Checkerboard:
    r"""Uniform on every other square of a board centred at the origin, like the black squares of chess.

        p(x) = 1 / (number of filled squares · width²) on them, and 0 elsewhere

    The square at the bottom left is filled. A square holds its lower and left edges but not the
    others. Outside log_prob is -inf and its gradient is 0 everywhere: a density with holes, on which
    scores say nothing. With the defaults it is the board on [-4, 4]² used to test normalising flows.

    Arguments:
        cells: squares along each side of the board.
        width: side of one square.

    Example:
        >>> import torch
        >>> board = Checkerboard()
        >>> x = board.sample(3, torch.Generator().manual_seed(0))
        >>> board.log_prob(x).exp()
        tensor([0.0312, 0.0312, 0.0312])
        >>> board.log_prob(torch.tensor([[1.0, -1.0]]))
        tensor([-inf])
    """

    cells: int = 4
    width: float = 2.0

    def __post_init__(self) -> None:
        require_at_least("Checkerboard", 1, cells=self.cells)
        require_positive("Checkerboard", width=self.width)

    @property
    def dim(self) -> int:
        """Number of dimensions: 2."""
        return 2

    @property
    def filled(self) -> int:
        """Number of filled squares."""
        return (self.cells**2 + 1) // 2

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n independent draws, (n, 2), on the generator's device."""
        require_at_least("Checkerboard", 0, n=n)
        device = generator.device
        pick = torch.randint(self.filled, (n,), generator=generator, device=device)
        squares = torch.cartesian_prod(torch.arange(self.cells), torch.arange(self.cells))
        corner = squares[squares.sum(1) % 2 == 0].to(device)[pick]
        edges = self._edges(device, torch.get_default_dtype())
        lower, upper = edges[corner], edges[corner + 1]
        x = lower + self.width * torch.rand(n, 2, generator=generator, device=device)
        # Rounding may carry a point onto the upper edge, which belongs to the next square.
        return torch.minimum(x, torch.nextafter(upper, lower))

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalised log-density, (n,), in the precision of x: -inf outside, NaN where x is NaN."""
        require_points("Checkerboard", x, 2)
        cell = torch.bucketize(x.detach().contiguous(), self._edges(x.device, x.dtype), right=True) - 1
        on_board = ((cell >= 0) & (cell < self.cells)).all(1)
        inside = on_board & (cell.sum(1) % 2 == 0)
        # 0·x keeps the result differentiable, and NaN stays NaN.
        value = (0.0 * x).sum(1) - math.log(self.filled * self.width**2)
        return torch.where(inside | x.isnan().any(1), value, -math.inf)

    def _edges(self, device: torch.device, dtype: torch.dtype) -> Tensor:
        """Lines of the board along one side, (cells + 1,)."""
        half = 0.5 * self.cells * self.width
        return torch.tensor(
            [index * self.width - half for index in range(self.cells + 1)], device=device, dtype=dtype
        )


@dataclass(frozen=True)
class Funnel:
    r"""Neal's funnel (Slice sampling, 2003, section 8): a neck so narrow that one step size never fits.

        v ~ N(0, scale²),  x_i | v ~ N(0, exp(v)),  i = 1, ..., dim - 1

    The first coordinate is v. In Neal's paper dim is 10 and scale is 3.

    Arguments:
        dim: number of dimensions, v included.
        scale: standard deviation of v.

    Example:
        >>> import torch
        >>> funnel = Funnel()
        >>> funnel.sample(3, torch.Generator().manual_seed(0)).shape
        torch.Size([3, 2])
        >>> funnel.log_prob(torch.zeros(1, 2)).round(decimals=3)
        tensor([-2.9360])
    """

    dim: int = 2
    scale: float = 3.0

    def __post_init__(self) -> None:
        require_at_least("Funnel", 2, dim=self.dim)
        require_positive("Funnel", scale=self.scale)

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n independent draws, (n, dim), on the generator's device."""
        require_at_least("Funnel", 0, n=n)
        noise = torch.randn(n, self.dim, generator=generator, device=generator.device)
        v = self.scale * noise[:, :1]
        return torch.cat([v, (0.5 * v).exp() * noise[:, 1:]], dim=1)

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalised log-density, (n,), in the precision of x."""
        require_points("Funnel", x, self.dim)
        v, rest = x[:, 0], x[:, 1:]
        squares = (rest * (-0.5 * v).exp()[:, None]).square().sum(1)
        log_neck = -0.5 * (v / self.scale).square() - math.log(self.scale)
        log_constant = 0.5 * self.dim * math.log(2 * math.pi)
        return log_neck - 0.5 * squares - 0.5 * (self.dim - 1) * v - log_constant
