"""Rank tests: is one draw among others where chance would put it?"""

from __future__ import annotations

from typing import Any

import torch
from scipy import stats
from torch import Tensor


def rank_among(value: Tensor, others: Tensor, generator: torch.Generator) -> Tensor:
    """How many of the others lie below, (n,); a tie is broken by a draw, so that no rank is preferred.

    Uniform on 0 … L where the value and its L others could change places.

    Arguments:
        value: (n,).
        others: (L, n).
        generator: breaks ties: a chain that rejects stays at the very same number.

    Example:
        >>> others = torch.tensor([[1.0], [2.0], [4.0]])
        >>> rank_among(torch.tensor([3.0]), others, torch.Generator().manual_seed(0))
        tensor([2])
    """
    below, same = (others < value).sum(0), (others == value).sum(0)
    uniform = torch.rand(same.shape, generator=generator, dtype=torch.float64)
    return below + (uniform * (same + 1)).long()


def along_both_ways(forth: Tensor, back: Tensor, taken: Tensor) -> Tensor:
    """The first `taken` values of one chain from a point and the first L - `taken` of another, (L, n).

    Together with the point they are L + 1 steps of one chain in which the point has a random place
    (Gandy and Scott 2020, unit tests of Markov chains): a chain that is reversible and whose law is the
    point's looks the same in both directions, so the point's rank among all is uniform, whatever the
    chain's correlations.

    Arguments:
        forth: values along the first chain, (L, n).
        back: along the second, (L, n).
        taken: from 0 to L, (n,).

    Example:
        >>> forth, back = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([[-1.0], [-2.0], [-3.0]])
        >>> along_both_ways(forth, back, torch.tensor([1])).flatten()
        tensor([ 1., -1., -2.])
    """
    place = torch.arange(len(forth)).unsqueeze(1).expand_as(forth)
    return torch.where(place < taken, forth, back.gather(0, (place - taken).clamp_min(0)))


def uniformity(ranks: Tensor, places: int, generator: torch.Generator) -> dict[str, Any]:
    """Whether ranks on 0 … places - 1 are uniform.

    `p` is of the chi-square test of their counts, `ks_p` of the Kolmogorov-Smirnov test of
    (rank + u) / places with uniform u, which sees shifts rather than single places.

    Example:
        >>> found = uniformity(torch.arange(1000) % 10, 10, torch.Generator().manual_seed(0))
        >>> found["counts"], found["p"]
        ([100, 100, 100, 100, 100, 100, 100, 100, 100, 100], 1.0)
    """
    counts = torch.bincount(ranks, minlength=places)
    spread = (ranks + torch.rand(ranks.shape, generator=generator, dtype=torch.float64)) / places
    return {
        "counts": counts.tolist(),
        "p": float(stats.chisquare(counts.numpy()).pvalue),
        "ks_p": float(stats.kstest(spread.numpy(), "uniform").pvalue),
    }


def binomial_range(number: int, chance: float, level: float) -> tuple[int, int]:
    """The smallest and largest count that chance makes, but for (1 - level) / 2 beyond either.

    Example:
        >>> binomial_range(1000, 0.05, 0.95)
        (37, 64)
    """
    low, high = stats.binom.interval(level, number, chance)
    return int(low), int(high)
