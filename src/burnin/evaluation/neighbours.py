"""Nearest neighbours by Euclidean distance, in blocks: memory does not grow with the number of pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import InputError, Report

ROWS, COLUMNS = 1024, 4096
"""Of a block of distances: 32 MB in double precision."""


@dataclass(frozen=True)
class Neighbours:
    """The nearest of some rows to each of others.

    Attributes:
        distance: to each, rising, (n, k).
        index: which rows they are, (n, k).
    """

    distance: Tensor
    index: Tensor


def nearest(
    x: Tensor,
    among: Tensor,
    *,
    k: int = 1,
    itself: bool = False,
    what: str = "neighbours",
    report: Report | None = None,
) -> Neighbours:
    """The k nearest rows of `among` to each row of `x`.

    They are found by ‖x‖² + ‖y‖² - 2x·y; the distances to those found are then computed from the
    differences, so that a copy is at distance 0.

    Arguments:
        x: (n, ...), flattened to rows.
        among: (m, ...).
        k: how many.
        itself: `x` is `among`, and no row is its own neighbour.
        what: what is said of it to `report`.
        report: told how far it is.

    Raises:
        InputError: when there are fewer than k rows, or their lengths differ.

    Example:
        >>> import torch
        >>> found = nearest(torch.tensor([[0.0], [5.0]]), torch.tensor([[1.0], [4.5], [9.0]]))
        >>> found.distance.flatten().tolist(), found.index.flatten().tolist()
        ([1.0, 0.5], [0, 1])
    """
    x, among = rows_of(x), rows_of(among)
    require_same_length(x, among)
    if itself and len(x) != len(among):
        raise InputError(f"itself is for one set; there are {len(x)} and {len(among)} rows")
    if not 1 <= k <= len(among) - itself:
        raise InputError(
            f"{k} neighbours are wanted among {len(among)} rows; give more rows, or want fewer neighbours"
        )
    origin = among.mean(0)
    indices = []
    for start, part in _blocks(x - origin, ROWS):
        best, where = part.new_empty(len(part), 0), torch.empty(len(part), 0, dtype=torch.long)
        for first, others in _blocks(among - origin, COLUMNS):
            distance = torch.cdist(part, others)
            if itself:
                own = torch.arange(start, start + len(part)).unsqueeze(1)
                distance.masked_fill_(own == torch.arange(first, first + len(others)), torch.inf)
            number = torch.arange(first, first + len(others)).expand(len(part), -1)
            best, where = _smallest(torch.cat([best, distance], 1), torch.cat([where, number], 1), k)
        indices.append(where)
        if report is not None:
            report(what, start + len(part), len(x))
    index = torch.cat(indices)
    exact = torch.cat([(one.unsqueeze(1) - among[i]).norm(dim=2) for one, i in _paired(x, index)])
    exact, order = exact.sort(dim=1, stable=True)
    return Neighbours(exact, index.gather(1, order))


def distance_blocks(x: Tensor, y: Tensor) -> Iterator[tuple[slice, slice, Tensor]]:
    """All distances between rows of x and of y, block by block: which rows, which columns, the distances."""
    x, y = rows_of(x), rows_of(y)
    require_same_length(x, y)
    origin = y.mean(0)
    for start, part in _blocks(x - origin, ROWS):
        for first, others in _blocks(y - origin, COLUMNS):
            block = torch.cdist(part, others)
            yield slice(start, start + len(part)), slice(first, first + len(others)), block


def rows_of(x: Tensor) -> Tensor:
    """Flat rows in double precision, in which differences of squared norms keep their digits."""
    if x.dim() < 2 or len(x) == 0:
        raise InputError(f"wanted rows, (n, d) with n at least 1; got {tuple(x.shape)}")
    return x.flatten(1).double()


def require_same_length(x: Tensor, y: Tensor) -> None:
    """Raises InputError when rows cannot be compared."""
    if x.shape[1] != y.shape[1]:
        raise InputError(f"rows have {x.shape[1]} and {y.shape[1]} numbers; they must have as many")


def _blocks(x: Tensor, size: int) -> Iterator[tuple[int, Tensor]]:
    for start in range(0, len(x), size):
        yield start, x[start : start + size]


def _smallest(distance: Tensor, index: Tensor, k: int) -> tuple[Tensor, Tensor]:
    if distance.shape[1] <= k:
        return distance, index
    best, place = distance.topk(k, largest=False)
    return best, index.gather(1, place)


def _paired(x: Tensor, index: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    size = max(1, 4 * ROWS // index.shape[1])
    return zip(torch.split(x, size), torch.split(index, size), strict=True)
