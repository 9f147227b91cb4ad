"""The kernel distance between two sets of features: unbiased at any size, with its standard error."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import InputError
from burnin.evaluation.neighbours import COLUMNS, ROWS, require_same_length, rows_of

GROUPS = 20
DEGREE = 3


@dataclass(frozen=True)
class KernelDistance:
    """MMD² and its standard error; it may be below 0, as it must be when the laws are equal."""

    value: float
    error: float


def kernel_distance(x: Tensor, y: Tensor, *, groups: int = GROUPS) -> KernelDistance:
    """The unbiased squared maximum mean discrepancy with a polynomial kernel (KID; Bińkowski et al. 2018).

        MMD² = E k(x, x') + E k(y, y') - 2 E k(x, y),  k(x, y) = (x·y/d + 1)³,

    over all pairs of different rows. Its error is that of the jackknife that leaves out a group of rows of
    each set; groups are made of every `groups`-th row, and sums of the kernel between groups are all that is
    kept.

    Raises:
        InputError: when a set has fewer than two rows for each group, or their lengths differ.

    Example:
        >>> import torch
        >>> stream = torch.Generator().manual_seed(0)
        >>> x, y = torch.randn(2, 400, 3, generator=stream)
        >>> found = kernel_distance(x, y)
        >>> abs(found.value) < 3 * found.error
        True
    """
    x, y = rows_of(x), rows_of(y)
    require_same_length(x, y)
    if min(len(x), len(y)) < 2 * groups:
        raise InputError(
            f"there are {len(x)} and {len(y)} rows; the kernel distance needs at least {2 * groups} of each"
        )
    group_x, group_y = torch.arange(len(x)) % groups, torch.arange(len(y)) % groups
    xx, yy = _sums(x, x, group_x, group_x, groups), _sums(y, y, group_y, group_y, groups)
    xy = _sums(x, y, group_x, group_y, groups)
    sizes_x, sizes_y = (group.bincount(minlength=groups).double() for group in (group_x, group_y))
    own_x, own_y = _own(x, group_x, groups), _own(y, group_y, groups)

    def value(kept: Tensor) -> float:
        n, m = sizes_x[kept].sum(), sizes_y[kept].sum()
        within_x = (xx[kept][:, kept].sum() - own_x[kept].sum()) / (n * (n - 1))
        within_y = (yy[kept][:, kept].sum() - own_y[kept].sum()) / (m * (m - 1))
        return (within_x + within_y - 2 * xy[kept][:, kept].sum() / (n * m)).item()

    everything = torch.ones(groups, dtype=torch.bool)
    each = [value(everything & (torch.arange(groups) != g)) for g in range(groups)]
    left_out = torch.tensor(each, dtype=torch.float64)
    spread = (left_out - left_out.mean()).square().sum().item()
    return KernelDistance(value(everything), math.sqrt((groups - 1) / groups * spread))


def _kernel(products: Tensor, dim: int) -> Tensor:
    return (products / dim + 1) ** DEGREE


def _sums(x: Tensor, y: Tensor, group_x: Tensor, group_y: Tensor, groups: int) -> Tensor:
    """Sums of the kernel over all pairs of rows, for each pair of groups; in blocks."""
    total = x.new_zeros(groups, groups)
    for rows, of_rows in zip(torch.split(x, ROWS), torch.split(group_x, ROWS), strict=True):
        for columns, of_columns in zip(torch.split(y, COLUMNS), torch.split(group_y, COLUMNS), strict=True):
            block = _kernel(rows @ columns.T, x.shape[1])
            by_column = block.new_zeros(len(rows), groups).index_add_(1, of_columns, block)
            total.index_add_(0, of_rows, by_column)
    return total


def _own(x: Tensor, group: Tensor, groups: int) -> Tensor:
    """Sums of the kernel of rows with themselves, for each group."""
    return x.new_zeros(groups).index_add_(0, group, _kernel(x.square().sum(1), x.shape[1]))
