"""Chains computed one operation at a time: what every sampler and every energy can do."""

from __future__ import annotations

import torch
from torch import Tensor

from burnin.core import ChainState, Energy, Sampler, StepInfo
from burnin.samplers.blocks import Advanced, Block, Sums


class Plain:
    """Takes chains through blocks by the sampler's own step."""

    def __init__(self, sampler: Sampler, energy: Energy) -> None:
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


def sums_of(infos: list[StepInfo]) -> Sums:
    """The sums over steps; a chain that began outside the finite numbers has no gradient norm."""
    norms = torch.stack([info.gradient_norm for info in infos])
    acceptance: Tensor = torch.stack([info.acceptance for info in infos]).mean(1)
    return Sums(
        gradient_norm=norms.nanmean(1).sum(dtype=torch.float64).item(),
        acceptance=acceptance.sum(dtype=torch.float64).item(),
        non_finite=int(torch.stack([info.non_finite for info in infos]).sum()),
    )
