"""Blocks of steps: the random numbers of several steps at once, and what comes out of them.

Drawing them step by step costs a call each; drawing them in blocks costs one. Rows are padded to a
multiple of 16, the group in which torch makes normal numbers on a CPU: so a block of ten steps holds
the same numbers as two of five, and a run may stop anywhere and go on as if it had not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from burnin.core import ChainState, Feed, Sampler, Scheduled, StepInfo
from burnin.ranks import Ranks

GROUP = 16
BLOCK_STEPS = 100
BLOCK_NUMBERS = 2**20
"""A block is at most this many numbers, 4 MB of float32: it stays in the cache and memory is bounded."""


@dataclass(frozen=True)
class Block:
    """What several steps need beside the energy and the state.

    Attributes:
        normal: noise, (k, n, ...).
        spare: further normal numbers, (k, n + 1).
        schedule: the sampler's numbers for each step.
    """

    normal: Tensor
    spare: Tensor
    schedule: list[Scheduled]

    def __len__(self) -> int:
        return len(self.schedule)

    def step(self, index: int) -> Feed:
        """The feed of one step."""
        return Feed(self.normal[index], self.spare[index], self.schedule[index])

    def part(self, start: int, stop: int) -> Block:
        """Steps start, …, stop - 1."""
        return Block(self.normal[start:stop], self.spare[start:stop], self.schedule[start:stop])


class Sums(NamedTuple):
    """Over the steps of a block: gradient norm and acceptance, each averaged over chains; bad proposals."""

    gradient_norm: float
    acceptance: float
    non_finite: int

    def plus(self, other: Sums) -> Sums:
        """The sums over both."""
        return Sums(
            self.gradient_norm + other.gradient_norm,
            self.acceptance + other.acceptance,
            self.non_finite + other.non_finite,
        )


class Advanced(NamedTuple):
    """Chains after a block: where they are, the last step's info, and the sums over the steps.

    The info's `non_finite` counts the proposals of all the block's steps.
    """

    state: ChainState
    info: StepInfo
    sums: Sums


class Advance(Protocol):
    """Takes chains through a block of steps."""

    def __call__(self, state: ChainState, block: Block) -> Advanced:
        """The chains after it."""
        ...


@dataclass(frozen=True)
class Share:
    """Chains that are some of a larger number, whose random numbers are drawn for all and kept for these.

    Attributes:
        total: how many chains there are on all processes.
        places: which of them are here, (n,).
    """

    total: int
    places: Tensor

    @classmethod
    def of(cls, ranks: Ranks, totals: Sequence[int]) -> Share | None:
        """This process's share of batches of chains that run one behind the other; None for all of them."""
        if ranks.size == 1:
            return None
        parts = torch.split(torch.arange(sum(totals)), list(totals))
        return cls(sum(totals), torch.cat([ranks.own(part) for part in parts]))

    def whole(self, position: Tensor) -> Tensor:
        """Positions of all chains, as far as their shape goes."""
        return position.new_empty(()).expand(self.total, *position.shape[1:])

    def own(self, block: Block) -> Block:
        """The part of a block for all that these chains need; the last spare number is everybody's."""
        spare = torch.cat([self.places, torch.tensor([self.total])])
        return Block(block.normal[:, self.places], block.spare[:, spare], block.schedule)


def block_length(position: Tensor) -> int:
    """How many steps' numbers to draw at once."""
    row = position.numel() + position.shape[0] + 1
    return max(1, min(BLOCK_STEPS, BLOCK_NUMBERS // row))


def draw_rows(position: Tensor, num_steps: int, generator: torch.Generator) -> Tensor:
    """The numbers of so many steps of chains like `position`, a padded row for each step."""
    width = math.ceil((position.numel() + position.shape[0] + 1) / GROUP) * GROUP
    return torch.randn(num_steps, width, generator=generator, dtype=position.dtype, device=position.device)


def draw_block(
    sampler: Sampler,
    state: ChainState,
    num_steps: int,
    generator: torch.Generator,
    share: Share | None = None,
) -> Block:
    """The next steps' feed, at most `num_steps`, from the chains' own stream."""
    position = state.position if share is None else share.whole(state.position)
    num_steps = min(block_length(position), num_steps)
    n, numel = position.shape[0], position.numel()
    rows = draw_rows(position, num_steps, generator)
    block = Block(
        normal=rows[:, :numel].view(num_steps, *position.shape),
        spare=rows[:, numel : numel + n + 1],
        schedule=sampler.schedule(state.iteration, num_steps),
    )
    return block if share is None else share.own(block)
