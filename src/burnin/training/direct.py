"""One update by an objective without chains, and what a checkpoint keeps of such an objective."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from burnin.core import InputError
from burnin.objectives import DirectObjective
from burnin.rng import Streams
from burnin.training.checkpoint import Snapshot, load_weights, pack_optimizer, unpack_optimizer
from burnin.training.parts import Parts


@dataclass(frozen=True)
class DirectlyLearned:
    """What an update says: the loss, the objective's numbers, and whether all weights are still finite."""

    loss: float
    numbers: dict[str, float]
    finite: bool


def direct_update(
    parts: Parts, objective: DirectObjective, batch_size: int, streams: Streams
) -> DirectlyLearned:
    """Lets the objective prepare (its critic), then moves the energy and what is learned along with it.

    Arguments:
        parts: the energy, the data, the optimiser.
        objective: what is made small.
        batch_size: points of each batch.
        streams: "data" draws batches, "objective" noise and probes.
    """

    def draw() -> Tensor:
        return parts.data.sample(batch_size, streams["data"])

    energy, noise = parts.energy, streams["objective"]
    learned = [p for group in parts.optimizer.param_groups for p in group["params"]]
    if missing := {id(p) for p in objective.companions()} - {id(p) for p in learned}:
        raise InputError(
            f"{len(missing)} parameters of the objective are not in the optimiser; give it the energy's "
            "parameters and the objective's companions()"
        )
    _follow_rate(objective, parts.optimizer)
    objective.before_update(energy, draw, noise)
    data = draw()
    if parts.scale is not None:  # for the chains that sample or judge the model later
        parts.scale.update(energy, data)
    parts.optimizer.zero_grad(set_to_none=True)
    loss, numbers = objective.loss(energy, data, noise)
    loss, of_classes = parts.with_classes(loss, streams)
    # Only the weights' gradients: a score's graph leads to the data too.
    loss.backward(inputs=learned)  # type: ignore[no-untyped-call]
    if parts.clip_norm is not None:
        nn.utils.clip_grad_norm_(learned, parts.clip_norm)
    parts.optimizer.step()
    norm = nn.utils.get_total_norm([*energy.parameters(), *objective.parameters()])
    return DirectlyLearned(loss.item(), numbers | of_classes, math.isfinite(norm.item()))


def _follow_rate(objective: DirectObjective, optimizer: torch.optim.Optimizer) -> None:
    """The objective's own rates fall with the energy's: a critic that still moves fast when the energy hardly
    does hands its noise on to it."""
    first = optimizer.param_groups[0]
    share = first["lr"] / first["initial_lr"] if first.get("initial_lr") else 1.0
    for group in [group for own in objective.optimizers().values() for group in own.param_groups]:
        group.setdefault("initial_lr", group["lr"])
        group["lr"] = group["initial_lr"] * share


def objective_tensors(objective: DirectObjective) -> dict[str, Mapping[str, Tensor]]:
    """What the objective has learned and was fitted with, and its optimisers' moments, by room."""
    optimizers = {
        f"objective-{name}": pack_optimizer(o).tensors for name, o in objective.optimizers().items()
    }
    return {"objective": objective.state_dict(), **optimizers}


def pack_objective(objective: DirectObjective) -> dict[str, Any]:
    """The numbers of its optimisers."""
    return {name: pack_optimizer(optimizer).state for name, optimizer in objective.optimizers().items()}


def restore_objective(objective: DirectObjective, snapshot: Snapshot) -> None:
    """Puts the objective and its optimisers back to where `snapshot` was taken."""
    load_weights(objective, snapshot.part("objective"))
    for name, optimizer in objective.optimizers().items():
        packed = Snapshot(snapshot.part(f"objective-{name}"), snapshot.state["objective"][name])
        unpack_optimizer(optimizer, packed)
