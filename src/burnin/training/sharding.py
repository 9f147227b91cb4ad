"""Weights shared out over processes (fsdp): each keeps a part of them, of gradients and of Adam's moments.

Chains walk one energy for hundreds of steps. So the weights are put together at the first step and kept until
they change: one exchange for each update, as without sharing; what is saved is the optimiser's memory.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor


def share_out(energy: nn.Module, size: int) -> None:
    """Lets each of `size` processes keep its part of the weights."""
    for parameter in energy.parameters():  # channels-last kernels cannot be shared out as they lie
        parameter.data = parameter.data.contiguous()
    sharded = fully_shard(energy, mesh=init_device_mesh("cpu", (size,)), reshard_after_forward=False)
    sharded.set_reshard_after_backward(False)
    # Gradients are added up, not averaged; gloo knows only sums.
    sharded.set_gradient_divide_factor(1.0)
    sharded.set_force_sum_reduction_for_comms(True)


def forget_whole(energy: nn.Module) -> None:
    """Leaves only the parts, as the whole is that of before the update."""
    assert isinstance(energy, FSDPModule)
    energy.reshard()


def is_part(x: Tensor) -> bool:
    """Whether other processes hold the rest."""
    return isinstance(x, DTensor)


def whole_of(x: Tensor) -> Tensor:
    """All of a tensor, of which each process has a part."""
    return x.full_tensor() if isinstance(x, DTensor) else x


def part_like(x: Tensor, weight: Tensor) -> Tensor:
    """The part of x that a process holds of `weight`."""
    if not isinstance(weight, DTensor) or isinstance(x, DTensor):
        return x
    # Every process has read the whole: nothing needs to be sent.
    return distribute_tensor(x, weight.device_mesh, weight.placements, src_data_rank=None)
