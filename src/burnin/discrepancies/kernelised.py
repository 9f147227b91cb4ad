"""The kernelised Stein discrepancy: quadratic in blocks, and its linear-time variant."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from burnin.core import InputError, Report
from burnin.discrepancies.kernels import Kernel, stein_kernel, stein_kernel_of_pairs
from burnin.discrepancies.models import Points
from burnin.discrepancies.skewed import corrected, skewness, upper_tail

BLOCK = 512
"""Rows of pairs at a time: matrices of this size stay in a processor's cache."""
FACTORS = tuple(2.0 ** (step / 4) for step in range(-16, 17))
"""Multiples of a first bandwidth that `optimise_bandwidth` tries: 1/16 to 16, 19% apart."""
TINY = 1e-12


@dataclass(frozen=True)
class KSD:
    """The quadratic-time discrepancy of n points (stein, equation 5), in both its forms.

    Attributes:
        u: the mean of the Stein kernel over pairs of different points; without bias, so it may be negative.
        v: the mean over all pairs, a point with itself included; never negative.
        row_means: the mean over the other points, for each point, (n,); their spread is the discrepancy's.
        bootstrap: what u would be under the model, drawn by the wild bootstrap, (draws,).
    """

    u: float
    v: float
    row_means: Tensor
    bootstrap: Tensor

    @property
    def sigma(self) -> float:
        """The standard deviation of √n·u where the model is wrong: 2 sd of the row means."""
        return 2 * self.row_means.std().item()

    @property
    def p_value(self) -> float:
        """The share of draws under the model that reach u, u itself counted among them."""
        return (1 + int((self.bootstrap >= self.u).sum())) / (1 + len(self.bootstrap))

    def power(self, num_points: int, level: float) -> float:
        """The chance that another such set of data of this size is rejected, by u's normal law."""
        if len(self.bootstrap) == 0:
            raise InputError("the power of the test needs the bootstrap's threshold; draw some")
        threshold = torch.quantile(self.bootstrap, 1 - level).item() * len(self.row_means) / num_points
        return normal_cdf(math.sqrt(num_points) * (self.u - threshold) / max(self.sigma, TINY))


def ksd(
    points: Points,
    kernel: Kernel,
    *,
    num_bootstrap: int = 0,
    generator: torch.Generator | None = None,
    block: int = BLOCK,
    report: Report | None = None,
) -> KSD:
    """The kernelised Stein discrepancy and its null by the wild bootstrap, in blocks of pairs.

    Under the model n·u follows a weighted sum of chi-squares. With signs wᵢ = ±1 of equal odds,

        1/n(n-1) Σ_{i≠j} wᵢ wⱼ h(xᵢ, xⱼ)

    follows it too, for independent points (Chwialkowski et al. 2016). No n×n matrix is made: memory grows
    with block² and with one byte for each sign, so 100,000 points are a matter of time alone. The discrepancy
    is computed in double precision, the bootstrap's draws in single precision within a block.

    Arguments:
        points: data and scores, (n, dim).
        kernel: k.
        num_bootstrap: how many draws of the null.
        generator: draws the signs; needed when there are draws.
        block: rows of pairs at a time.
        report: told how far it is.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> x = torch.randn(200, 2, generator=generator)
        >>> from burnin.discrepancies.kernels import RBF
        >>> right = ksd(Points(x, -x), RBF(1.0), num_bootstrap=500, generator=generator)
        >>> wrong = ksd(Points(x, 0.5 - x), RBF(1.0), num_bootstrap=500, generator=generator)
        >>> right.p_value > 0.05, wrong.p_value < 0.05
        (True, True)
    """
    n = len(points.x)
    if n < 2:
        raise InputError(f"the KSD needs at least 2 points; got {n}")
    if num_bootstrap and generator is None:
        raise InputError("the bootstrap draws signs; give it a generator")
    points = centred(points)
    signs = torch.zeros(n, 0, dtype=torch.int8)
    if generator is not None and num_bootstrap:
        signs = torch.empty(n, num_bootstrap, dtype=torch.int8, device=generator.device)
        signs.random_(0, 2, generator=generator).mul_(2).sub_(1)
    signs = signs.to(points.x.device)
    rows = points.x.new_zeros(n)
    diagonal = 0.0
    draws = points.x.new_zeros(num_bootstrap)
    for pair, (i, j, done, total) in enumerate(_blocks(n, block)):
        h = stein_kernel(kernel, points.rows(*i), points.rows(*j))
        own = i == j
        if own:
            diagonal += h.diagonal().sum().item()
            h.fill_diagonal_(0)
        rows[slice(*i)] += h.sum(1)
        if not own:
            rows[slice(*j)] += h.sum(0)
        if num_bootstrap:
            # The draws are told apart by their third digit at most: single precision within a block is enough
            # for them, and with many draws this product is most of the work.
            moved = h.float() @ signs[slice(*j)].float()
            draws += (1 if own else 2) * (signs[slice(*i)].float() * moved).sum(0).double()
        if report is not None and (pair % 8 == 0 or done == total):
            report("pairs of points", done, total)
    pairs = n * (n - 1)
    all_of_them = rows.sum().item()
    return KSD(all_of_them / pairs, (all_of_them + diagonal) / n**2, rows / (n - 1), draws / pairs)


class LinearKSD(NamedTuple):
    """The linear-time discrepancy: the Stein kernel of n/2 disjoint pairs.

    Attributes:
        values: h of each pair; their mean is the discrepancy, without bias.
    """

    values: Tensor

    @property
    def mean(self) -> float:
        """The discrepancy."""
        return self.values.mean().item()

    @property
    def statistic(self) -> float:
        """√m · mean / √(mean of h²), standard normal under the model, where h has mean 0."""
        return math.sqrt(len(self.values)) * self.mean / max(self.values.square().mean().sqrt().item(), TINY)

    @property
    def p_value(self) -> float:
        """The chance of a mean at least as large under the model, by Student's t with Hall's correction.

        h has a long upper tail: a few pairs are near to each other and the others count little. Then the
        normal law (`normal_p_value`) rejects right models less often than the level says.
        """
        spread = self.values.std(unbiased=False).clamp_min(TINY)
        t = math.sqrt(len(self.values)) * self.values.mean() / spread
        return float(upper_tail(corrected(t, skewness(self.values), len(self.values))))

    @property
    def normal_p_value(self) -> float:
        """As Liu et al. have it: the statistic taken for standard normal."""
        return normal_cdf(-self.statistic)

    def power(self, num_points: int, level: float) -> float:
        """The chance that another such set of data of this size is rejected, by the means' normal law."""
        error = max(self.values.std().item(), TINY) / math.sqrt(num_points // 2)
        threshold = normal_quantile(1 - level) * self.values.square().mean().sqrt().item()
        return normal_cdf((self.mean - threshold / math.sqrt(num_points // 2)) / error)


def linear_ksd(points: Points, kernel: Kernel) -> LinearKSD:
    """The linear-time KSD (Liu et al. 2016, equation 17): point i of one half with point i of the other.

    Example:
        >>> from burnin.discrepancies.kernels import RBF
        >>> x = torch.randn(1000, 2, generator=torch.Generator().manual_seed(0))
        >>> linear_ksd(Points(x, 1 - x), RBF(1.0)).p_value < 0.01
        True
    """
    half = len(points.x) // 2
    if half < 2:
        raise InputError(f"the linear-time KSD needs at least 4 points; got {len(points.x)}")
    points = centred(points)
    values = stein_kernel_of_pairs(kernel, points.rows(0, half), points.rows(half, 2 * half))
    return LinearKSD(values)


def optimise_bandwidth(
    points: Points,
    kernel: Kernel,
    criterion: Literal["power", "discrepancy"] = "power",
    *,
    least_share: float = 0.0,
) -> Kernel:
    """The kernel with the best of 33 bandwidths, 1/16 to 16 times its own.

    For a test the best is the most powerful, u/σ (Sutherland et al. 2016); for a ranking that of the largest
    discrepancy (stein, appendix B.2). Choose on other points than those that are judged.

    Arguments:
        points: data and scores, (n, dim).
        kernel: with the bandwidth in whose multiples is looked.
        criterion: what is best.
        least_share: bandwidths at which a smaller share of the pairs counts (`effective_share`) are left
            out, or all but the one with the largest share.

    Example:
        >>> from burnin.discrepancies.kernels import RBF
        >>> x = torch.randn(100, 1, generator=torch.Generator().manual_seed(0))
        >>> kernel = optimise_bandwidth(Points(x, 1 - x), RBF(1.0))
        >>> round(float(kernel.bandwidth), 2)
        2.38
    """

    def quality(factor: float) -> float:
        result = ksd(points, kernel.with_bandwidth(kernel.bandwidth * factor))
        return result.u if criterion == "discrepancy" else result.u / max(result.sigma, TINY)

    allowed = FACTORS
    if least_share > 0:
        shares = {f: effective_share(points, kernel.with_bandwidth(kernel.bandwidth * f)) for f in FACTORS}
        allowed = tuple(factor for factor, share in shares.items() if share >= least_share)
        allowed = allowed or (max(shares, key=lambda factor: shares[factor]),)
    best = max(allowed, key=quality)
    return kernel.with_bandwidth(kernel.bandwidth * best)


def effective_share(points: Points, kernel: Kernel, block: int = BLOCK) -> float:
    """⟨h²⟩² / ⟨h⁴⟩ over pairs of different points: the share of the pairs that a mean of h is really over.

    A narrow kernel sees few pairs that are near to each other, and the law of their mean is not normal.

    Example:
        >>> from burnin.discrepancies.kernels import RBF
        >>> x = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
        >>> wide, narrow = (effective_share(Points(x, -x), RBF(width)) for width in (3.0, 0.1))
        >>> round(wide, 2), round(narrow, 3)
        (0.17, 0.003)
    """
    points = centred(points)
    n, second, fourth = len(points.x), 0.0, 0.0
    for i, j, _, _ in _blocks(n, block):
        h = stein_kernel(kernel, points.rows(*i), points.rows(*j))
        if i == j:
            h.fill_diagonal_(0)
        squares = h.square_()
        twice = 1 if i == j else 2
        second += twice * squares.sum().item()
        fourth += twice * squares.square_().sum().item()
    return second**2 / max(fourth * n * (n - 1), TINY)


def centred(points: Points) -> Points:
    """In double precision, the data's mean at 0: radial kernels do not notice, rounding does."""
    x = points.x.double()
    return Points(x - x.mean(0), points.scores.double())


def normal_cdf(x: float) -> float:
    """Φ(x), accurate in the lower tail too.

    Example:
        >>> round(normal_cdf(-1.6448536), 6), normal_cdf(-30.0) > 0
        (0.05, True)
    """
    return 0.5 * math.erfc(-x / math.sqrt(2))


def normal_quantile(probability: float) -> float:
    """Φ⁻¹: the number below which a standard normal one lies with this probability.

    Example:
        >>> round(normal_quantile(0.95), 4)
        1.6449
    """
    return float(torch.special.ndtri(torch.tensor(probability, dtype=torch.float64)).item())


def _blocks(n: int, size: int) -> Iterator[tuple[tuple[int, int], tuple[int, int], int, int]]:
    """The pairs of row ranges on and above the diagonal, with how many are done after each, of how many."""
    ranges = [(first, min(first + size, n)) for first in range(0, n, size)]
    total = len(ranges) * (len(ranges) + 1) // 2
    done = 0
    for index, left in enumerate(ranges):
        for right in ranges[index:]:
            done += 1
            yield left, right, done, total
