"""Precision and recall, density and coverage: are samples like data, and is all data among samples?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.evaluation.neighbours import distance_blocks, nearest, rows_of

OF_PRECISION, OF_DENSITY = 3, 5
"""Neighbours that make a ball, as in the two papers."""


@dataclass(frozen=True)
class Coverage:
    """Four numbers of samples beside data.

    Attributes:
        precision: share of samples in a ball of the data.
        recall: share of data in a ball of the samples.
        density: number of the data's balls that a sample is in, over k; 1 for samples of the data's own law.
        coverage: share of the data's balls that hold a sample; `same_law_coverage` for the data's own law.
    """

    precision: float
    recall: float
    density: float
    coverage: float


def coverage_of(
    samples: Tensor, data: Tensor, *, of_precision: int = OF_PRECISION, of_density: int = OF_DENSITY
) -> Coverage:
    """Compares samples with data by balls around points that reach to their k-th nearest neighbours.

    With B_k(z) the ball around z of the radius of its k-th neighbour in its own set (Kynkäänniemi et al.
    2019, k = 3):

        precision = P(sample in ∪ B_k(data)),  recall = P(data in ∪ B_k(samples)),

    and (Naeem et al. 2020, k = 5)

        density = Σ_{samples, data} 1[sample in B_k(data)] / (k · samples),
        coverage = P(B_k(data) holds a sample).

    Arguments:
        samples, data: features, (n, d) and (m, d), more than k of each.
        of_precision, of_density: k of each pair.

    Raises:
        InputError: when there are too few rows.

    Example:
        >>> import torch
        >>> x = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
        >>> coverage_of(x + 100, x)
        Coverage(precision=0.0, recall=0.0, density=0.0, coverage=0.0)
    """
    samples, data = rows_of(samples), rows_of(data)
    most = max(of_precision, of_density)
    radius = nearest(data, data, k=most, itself=True).distance
    around_samples = nearest(samples, samples, k=of_precision, itself=True).distance[:, -1]
    small, large = radius[:, of_precision - 1], radius[:, of_density - 1]
    precise = torch.zeros(len(samples), dtype=torch.bool)
    recalled = torch.zeros(len(data), dtype=torch.bool)
    covered = torch.zeros(len(data), dtype=torch.bool)
    inside = 0
    for rows, columns, distance in distance_blocks(samples, data):
        precise[rows] |= (distance <= small[columns]).any(1)
        recalled[columns] |= (distance <= around_samples[rows].unsqueeze(1)).any(0)
        within = distance <= large[columns]
        covered[columns] |= within.any(0)
        inside += int(within.sum())
    return Coverage(
        precision=precise.double().mean().item(),
        recall=recalled.double().mean().item(),
        density=inside / (of_density * len(samples)),
        coverage=covered.double().mean().item(),
    )


def same_law_coverage(samples: int, data: int, k: int = OF_DENSITY) -> float:
    """The coverage to be expected of samples of the data's own law (Naeem et al. 2020, lemma 2).

        1 - Π_{i=1..k} (data - i) / (data + samples - i)

    The ball holds no sample when the k nearest of all other points are data.

    Example:
        >>> round(same_law_coverage(1000, 1000), 3)
        0.969
    """
    left = 1.0
    for i in range(1, k + 1):
        left *= (data - i) / (data + samples - i)
    return 1 - left
