"""Chains computed one operation at a time: what every sampler and every energy can do."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from burnin.core import ChainState, Energy, Sampler, StepInfo
from burnin.samplers.blocks import Advanced, Block, Sums

LARGE_BLOCK = 63 * 2**19
"""Just under the 32 MB that glibc takes for the largest block to learn from."""


class Plain:
    """Takes chains through blocks by the sampler's own step."""

    def __init__(self, sampler: Sampler, energy: Energy) -> None:
        keep_freed_memory()
        self.sampler = sampler
        self.energy = energy

    def __call__(self, state: ChainState, block: Block) -> Advanced:
        """The chains after the block."""
        infos: list[StepInfo] = []
        for index in range(len(block)):
            state, info = self.sampler.step(self.energy, state, block.step(index))
            infos.append(info)
        sums = sums_of(infos)
        return Advanced(state, infos[-1]._replace(non_finite=torch.tensor(sums.non_finite)), sums)


@cache
def keep_freed_memory() -> None:
    """Once in a process: lets glibc keep up to 63 MB of freed memory instead of giving it back at once.

    It gives back what lies unused at the heap's end beyond twice the largest block that was freed so far. At
    the end of a step on images that is all their feature maps, and the next step would fault every page in
    again: up to a sixth of its time. A block that was never touched costs nothing.
    """
    torch.empty(LARGE_BLOCK, dtype=torch.uint8)


def sums_of(infos: list[StepInfo]) -> Sums:
    """The sums over steps; a chain that began outside the finite numbers has no gradient norm."""
    norms = torch.stack([info.gradient_norm for info in infos])
    acceptance: Tensor = torch.stack([info.acceptance for info in infos]).mean(1)
    return Sums(
        gradient_norm=norms.nanmean(1).sum(dtype=torch.float64).item(),
        acceptance=acceptance.sum(dtype=torch.float64).item(),
        non_finite=int(torch.stack([info.non_finite for info in infos]).sum()),
    )
