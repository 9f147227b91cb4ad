"""Processes that are threads: what several of them compute, without the time that processes take to start."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, final

import torch
from torch import Tensor

from burnin.ranks import Ranks

T = TypeVar("T")


@final
class Threads(Ranks):
    """One of several threads that add up tensors in the order of their ranks."""

    def __init__(self, rank: int, barrier: threading.Barrier, shelf: dict[int, Tensor]) -> None:
        self._rank, self._barrier, self._shelf = rank, barrier, shelf

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def size(self) -> int:
        return self._barrier.parties

    @property
    def neighbours(self) -> int:
        return self.size

    def sum(self, x: Tensor) -> Tensor:
        self._shelf[self._rank] = x
        self._barrier.wait(60)
        assert len({(part.shape, part.dtype) for part in self._shelf.values()}) == 1, "they are out of step"
        total = torch.stack([self._shelf[rank] for rank in range(self.size)]).sum(0).to(x.dtype)
        self._barrier.wait(60)
        return total


def together(size: int, work: Callable[[Ranks], T]) -> list[T]:
    """What each of `size` threads returns."""
    barrier, shelf = threading.Barrier(size), dict[int, Tensor]()

    def one(rank: int) -> T:
        try:
            return work(Threads(rank, barrier, shelf))
        except BaseException:
            barrier.abort()  # the others would wait for ever
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(one, rank) for rank in range(size)]
    broken = [f.exception() for f in futures if f.exception() is not None]
    for error in sorted(broken, key=lambda e: isinstance(e, threading.BrokenBarrierError)):
        assert error is not None
        raise error
    return [future.result() for future in futures]
