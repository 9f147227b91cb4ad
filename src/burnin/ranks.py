"""The processes that work together on one run, and what they have to tell each other.

Everything rests on one operation, a sum over all processes. Batches and chains are drawn whole on each, from
the same streams, and each keeps its own rows; so a run's numbers do not depend on how many processes share
it, but for rounding. One process alone is the case in which every operation here is the identity.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import final

import torch
from torch import Tensor, nn

from burnin.core import InputError


class Ranks(ABC):
    """One of `size` processes, number `rank` of them. All must call the same operations in the same order."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """Which one this is; the first, 0, is the one that writes."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many there are."""

    @property
    @abstractmethod
    def neighbours(self) -> int:
        """How many of them share this machine."""

    @abstractmethod
    def sum(self, x: Tensor) -> Tensor:
        """The sum of every process's x; the same bits on each."""

    def place(self, energy: nn.Module, *, averaged: bool) -> None:  # noqa: B027  (most have nothing to do)
        """Lays out the weights, before an optimiser knows them: by default all of them on each process.

        Arguments:
            energy: whose weights.
            averaged: whether a running average of them is kept.
        """

    def renew(self, energy: nn.Module) -> None:  # noqa: B027
        """Called when the weights have changed."""

    def whole(self, x: Tensor) -> Tensor:
        """All of a tensor that may be laid out over the processes."""
        return x

    def part(self, x: Tensor, weight: Tensor) -> Tensor:
        """What a process keeps of x, laid out as `weight` is."""
        return x

    def rows(self, total: int, rank: int | None = None) -> slice:
        """Which of `total` rows are a process's own, by default this one's: shares differ by one at most.

        Example:
            >>> ALONE.rows(5)
            slice(0, 5, None)
        """
        rank = self.rank if rank is None else rank
        return slice(rank * total // self.size, (rank + 1) * total // self.size)

    def own(self, x: Tensor) -> Tensor:
        """This process's rows of what all have drawn."""
        return x[self.rows(len(x))]

    def gather(self, own: Tensor, total: int) -> Tensor:
        """All rows, from each process's own: the inverse of `own`."""
        if self.size == 1:
            return own
        rows = self.rows(total)
        if len(own) != rows.stop - rows.start:
            raise InputError(
                f"process {self.rank} of {self.size} has {len(own)} of {total} rows; it must have "
                f"{rows.stop - rows.start}"
            )
        whole = own.new_zeros((total, *own.shape[1:]))
        whole[rows] = own
        return self.sum(whole)

    def gather_parts(self, parts: Sequence[Tensor]) -> list[Tensor]:
        """Several vectors gathered, each by itself, in one exchange."""
        if self.size == 1:
            return list(parts)
        totals = [int(total) for total in self.sum(torch.tensor([len(part) for part in parts]))]
        whole = parts[0].new_zeros(sum(totals))
        wholes = list(torch.split(whole, totals))
        for part, of_all in zip(parts, wholes, strict=True):
            of_all[self.rows(len(of_all))] = part
        return list(torch.split(self.sum(whole), totals))

    def any(self, flag: bool) -> bool:
        """Whether it is so on any process; a place where all wait for each other."""
        return flag if self.size == 1 else bool(self.sum(torch.tensor(float(flag))) > 0)

    def first(self, x: Tensor) -> Tensor:
        """What the first process has."""
        return self.sum(x if self.rank == 0 else torch.zeros_like(x))

    def laid_out(self, x: Tensor) -> bool:
        """Whether this is a part, and the others have the rest: then its gradients are summed already."""
        return False

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Adds up every process's gradients of the weights, in one exchange."""
        if self.size == 1:
            return
        gradients = [p.grad for p in parameters if p.grad is not None and not self.laid_out(p)]
        if not gradients:
            return
        flat = self.sum(torch.cat([gradient.flatten() for gradient in gradients]))
        sizes = [gradient.numel() for gradient in gradients]
        for gradient, part in zip(gradients, torch.split(flat, sizes), strict=True):
            gradient.copy_(part.view_as(gradient))


@final
class Alone(Ranks):
    """One process: nobody to wait for."""

    @property
    def rank(self) -> int:
        """The first."""
        return 0

    @property
    def size(self) -> int:
        """One."""
        return 1

    @property
    def neighbours(self) -> int:
        """Itself."""
        return 1

    def sum(self, x: Tensor) -> Tensor:
        """Itself."""
        return x


ALONE = Alone()
