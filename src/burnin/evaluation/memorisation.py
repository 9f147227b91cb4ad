"""Whether samples are copies of training data: are they nearer to it than fresh data is?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import Report
from burnin.evaluation.neighbours import Neighbours, nearest

COPIED = 0.01
"""Share of held-out data that is nearer to the training data than what counts as a copy."""


@dataclass(frozen=True)
class Memorisation:
    """Distances to the nearest training point: of samples beside those of held-out data.

    Attributes:
        nearer: the chance that a sample is nearer to the training data than a held-out point is, ties
            counting a half; 0.5 for samples of the data's own law, 1 for copies.
        z: how far that is from 0.5, in the standard deviations of chance; above 3 is memorisation, below -3
            means samples that are farther from the data than data is.
        copies: share of samples nearer than all but 1% of the held-out data; 0.01 by chance.
        samples, held_out, training: how many of each.
        neighbours: of the samples, in the training data.
    """

    nearer: float
    z: float
    copies: float
    samples: int
    held_out: int
    training: int
    neighbours: Neighbours


def memorisation(
    samples: Tensor,
    training: Tensor,
    held_out: Tensor,
    *,
    neighbours: int = 1,
    what: str = "neighbours",
    report: Report | None = None,
) -> Memorisation:
    """The Mann-Whitney test of distances to the training data (Meehan, Chaudhuri & Dasgupta 2020, one cell).

    With s and h the distances of a sample and of a held-out point to the nearest training point,

        nearer = P(s < h) + P(s = h)/2,  z = (nearer - 1/2) / sqrt((n + m + 1) / (12 n m)),

    the variance being lessened where distances are equal. Their C_T is -z.

    Arguments:
        samples, training, held_out: flat pictures or features, (n, d) each.
        neighbours: how many are kept of each sample, to be looked at.
        what, report: see `nearest`.

    Example:
        >>> import torch
        >>> stream = torch.Generator().manual_seed(0)
        >>> training, held_out = torch.randn(2, 200, 3, generator=stream)
        >>> found = memorisation(training[:50], training, held_out)
        >>> found.nearer, found.z > 3, found.copies
        (1.0, True, 1.0)
    """
    found = nearest(samples, training, k=neighbours, what=what, report=report)
    s = found.distance[:, 0]
    h = nearest(held_out, training).distance[:, 0]
    nearer, z = _mann_whitney(s, h)
    edge = h.quantile(COPIED)
    # Strictly nearer: where held-out data holds copies itself, a distance of 0 is no surprise.
    return Memorisation(nearer, z, (s < edge).double().mean().item(), len(s), len(h), len(training), found)


def _mann_whitney(s: Tensor, h: Tensor) -> tuple[float, float]:
    """P(s < h) + P(s = h)/2, and how far it is from a half in standard deviations."""
    n, m = len(s), len(h)
    rising = s.sort().values
    below = torch.searchsorted(rising, h, right=False) + torch.searchsorted(rising, h, right=True)
    nearer = below.double().mean().item() / (2 * n)
    _, ties = torch.unique(torch.cat([s, h]), return_counts=True)
    total = n + m
    tied = (ties.double() ** 3 - ties).sum().item() / (total * (total - 1))
    variance = (total + 1 - tied) / (12 * n * m)
    return nearer, (nearer - 0.5) / math.sqrt(variance) if variance > 0 else 0.0
