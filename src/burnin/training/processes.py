"""Processes of torch.distributed, set up by lightning-fabric, that train or sample together.

Who they are is told by the variables that torchrun sets (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, …);
`burnin train --devices 2` sets the same for the processes that it starts.
"""

from __future__ import annotations

import logging
import os
import re
from typing import Literal, final, get_args

import torch
from torch import Tensor, nn

from burnin.closed_form import closed_form
from burnin.core import BurninError, InputError
from burnin.energies import spectral
from burnin.limits import brief
from burnin.ranks import ALONE, Ranks

Strategy = Literal["ddp", "fsdp"]
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


class LostProcessError(BurninError):
    """Another process of the run has ended, so that this one cannot go on."""

    exit_code = 4


@final
class Processes(Ranks):
    """The processes of the default group of torch.distributed.

    Arguments:
        strategy: "ddp" keeps all weights on each process; "fsdp" a part of weights, gradients and the
            optimiser's moments on each, with the weights put together once for each update.
    """

    def __init__(self, strategy: str = "ddp") -> None:
        if strategy not in get_args(Strategy):
            known = ", ".join(get_args(Strategy))
            raise InputError(f"the strategy is {strategy!r}; it must be one of {known}")
        self.strategy = strategy
        self._rank = torch.distributed.get_rank()
        self._size = torch.distributed.get_world_size()

    @property
    def rank(self) -> int:
        """Which one this is."""
        return self._rank

    @property
    def size(self) -> int:
        """How many there are."""
        return self._size

    @property
    def neighbours(self) -> int:
        """How many of them torchrun, or burnin, has started on this machine."""
        return int(os.environ.get("LOCAL_WORLD_SIZE", 1))

    def sum(self, x: Tensor) -> Tensor:
        """The sum over all processes.

        Raises:
            LostProcessError: when one of them is gone.
        """
        total = x.clone()
        try:
            torch.distributed.all_reduce(total)
        except RuntimeError as error:
            # gloo begins with the place in its own source, and ends with advice for its own users.
            reason = re.sub(r"^\[\S+\] ", "", str(error)).split(". ")[0]
            raise LostProcessError(
                f"another process of this run is gone, and so this one ends ({brief(reason)}); the last "
                "checkpoint is whole: go on with --resume, with as many processes as you like"
            ) from error
        return total

    def place(self, energy: nn.Module, *, averaged: bool) -> None:
        """Shares out the weights, for "fsdp"."""
        if self.strategy == "ddp":
            return
        if averaged or closed_form(energy) is not None or spectral.has_norms(energy):
            raise InputError(
                "fsdp shares out the weights of networks of pictures, without spectral norm and without a "
                "running average (model.average = 0); take --strategy ddp"
            )
        from burnin.training.sharding import share_out

        share_out(energy, self._size)

    def renew(self, energy: nn.Module) -> None:
        """Puts the weights together anew at the next use, for "fsdp"."""
        if self.strategy == "fsdp":
            from burnin.training.sharding import forget_whole

            forget_whole(energy)

    def whole(self, x: Tensor) -> Tensor:
        """All of a tensor."""
        from burnin.training.sharding import whole_of

        return whole_of(x)

    def part(self, x: Tensor, weight: Tensor) -> Tensor:
        """What this process keeps of x."""
        from burnin.training.sharding import part_like

        return part_like(x, weight)

    def laid_out(self, x: Tensor) -> bool:
        """Whether the others have the rest of it."""
        from burnin.training.sharding import is_part

        return is_part(x)


def started_together() -> bool:
    """Whether torchrun, or burnin itself, has started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ


def join_processes(strategy: str = "ddp") -> Ranks:
    """Meets the other processes, where there are any.

    Raises:
        InputError: when lightning-fabric is missing, or the variables are.
    """
    if not started_together():
        return ALONE
    if missing := [name for name in VARIABLES if name not in os.environ]:
        raise InputError(f"one of several processes, but {missing[0]} is not set; start them with torchrun")
    try:
        from lightning_fabric import Fabric
        from lightning_fabric.plugins.environments import TorchElasticEnvironment
    except ImportError as error:
        raise InputError("several processes need lightning-fabric: pip install 'burnin[cluster]'") from error
    logging.getLogger("lightning_fabric").setLevel(logging.ERROR)
    here = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    fabric = Fabric(
        accelerator="cpu",
        devices=here,
        num_nodes=int(os.environ["WORLD_SIZE"]) // here,
        strategy="ddp",
        plugins=[TorchElasticEnvironment()],
    )
    fabric.launch()
    return Processes(strategy)
