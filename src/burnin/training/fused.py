"""One update of the weights in one native call: contrast, gradient and Adam.

A small network's update is a hundred small tensor operations, each of which costs more to start than
to do. Where network, objective and optimiser are the stock ones, native code does them at once, on
the same tensors: weights, moments and step counts are updated in place, so everything else (checkpoints,
schedules, averages) sees no difference. The numbers are those of the tensor operations up to rounding.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from burnin.core import Energy
from burnin.objectives import VARIANTS, ArmInfo, BetaInfo, Negatives, contrast, pools_of
from burnin.ranks import ALONE
from burnin.samplers import Prepared

Pointer = ctypes.c_void_p


class Report(ctypes.Structure):
    """ArmReport of the native code."""

    _fields_ = tuple(
        (name, ctypes.c_double)
        for name in ("d", "std", "grad_scale", "effective", "largest", "positive", "gap")
    )


class Update(ctypes.Structure):
    """Update of the native code: the weights' part of an update."""

    _fields_ = (
        ("packed", Pointer),
        ("x", Pointer),
        ("num_data", ctypes.c_int64),
        ("num_arms", ctypes.c_int64),
        *((name, Pointer) for name in ("sizes", "pool", "weight", "beta", "variant")),
        ("temperature", ctypes.c_double),
        ("clip_norm", ctypes.c_double),
        *((name, Pointer) for name in ("parameters", "first_moment", "second_moment", "steps")),
        *((name, ctypes.c_double) for name in ("rate", "decay_first", "decay_second", "epsilon")),
        ("loss", ctypes.c_double),
        ("finite", ctypes.c_int64),
        ("reports", Pointer),
    )


@dataclass(frozen=True)
class Learned:
    """What an update says: the loss, each arm's contrast, whether all weights are still finite, and more."""

    loss: float
    infos: list[ArmInfo]
    finite: bool
    numbers: dict[str, float] = field(default_factory=dict)


def fused_update(
    energy: Energy,
    objective: object,
    optimizer: torch.optim.Optimizer,
    data: Tensor,
    negatives: Sequence[Negatives],
    clip_norm: float | None,
) -> Learned | None:
    """Updates the weights in one call; None, with nothing done, where it has to be done step by step.

    Arguments:
        energy: as `Engine.prepare` gave it.
        objective: what is made small; the contrast can be fused.
        optimizer: a plain Adam over the network's weights can be fused.
        data: the batch.
        negatives: of each arm.
        clip_norm: longest gradient; None for no limit.
    """
    temperature = contrast_temperature(objective)
    if temperature is None or not isinstance(energy, Prepared) or not is_plain_adam(optimizer):
        return None
    batch = torch.cat([data, *(arm.position for arm in negatives)])
    packed = energy.packed_for_weights(batch)
    if packed is None or any(arm.variant == "true_objective" and len(data) < 2 for arm in negatives):
        return None
    parameters = [*packed.form.weights, *packed.form.biases]
    if not trains(optimizer, parameters):
        return None
    call, held = describe_update(optimizer, parameters, negatives, len(data), temperature, clip_norm)
    call.packed, call.x = packed.packed, batch.data_ptr()
    reports = (Report * len(negatives))()
    call.reports = ctypes.addressof(reports)
    code = packed.library.burnin_update(ctypes.byref(call))
    if code != 0:
        raise MemoryError(f"there is no memory to learn from {len(batch)} positions")
    # What torch's schedulers look for: that the optimiser has made a step before they do.
    optimizer._opt_called = True  # type: ignore[attr-defined]
    infos = [info_of(report, arm.beta) for report, arm in zip(reports, negatives, strict=True)]
    del held  # alive until here: the call reads it
    return Learned(call.loss, infos, bool(call.finite))


def describe_update(
    optimizer: torch.optim.Optimizer,
    parameters: Sequence[Tensor],
    negatives: Sequence[Negatives],
    num_data: int,
    temperature: float,
    clip_norm: float | None,
) -> tuple[Update, object]:
    """The update as native code wants it, but for the positions, and what must live until it was made."""
    states = [_state(optimizer, parameter) for parameter in parameters]
    pool_of = {arm: number for number, pool in enumerate(pools_of(negatives)) for arm in pool}
    arrays: dict[str, tuple[Any, list[Any]]] = {
        "sizes": (ctypes.c_int64, [len(arm.position) for arm in negatives]),
        "pool": (ctypes.c_int64, [pool_of[i] for i in range(len(negatives))]),
        "weight": (ctypes.c_double, [arm.weight for arm in negatives]),
        "beta": (ctypes.c_double, [arm.beta for arm in negatives]),
        "variant": (ctypes.c_int32, [VARIANTS.index(arm.variant) for arm in negatives]),
        "parameters": (Pointer, _addresses(parameters)),
        "first_moment": (Pointer, _addresses([state["exp_avg"] for state in states])),
        "second_moment": (Pointer, _addresses([state["exp_avg_sq"] for state in states])),
        "steps": (Pointer, _addresses([state["step"] for state in states])),
    }
    held = {name: (kind * len(values))(*values) for name, (kind, values) in arrays.items()}
    group = optimizer.param_groups[0]
    call = Update(
        num_data=num_data,
        num_arms=len(negatives),
        temperature=temperature,
        clip_norm=clip_norm or 0.0,
        rate=group["lr"],
        decay_first=group["betas"][0],
        decay_second=group["betas"][1],
        epsilon=group["eps"],
        **{name: ctypes.addressof(array) for name, array in held.items()},
    )
    return call, held


def contrast_temperature(objective: object) -> float | None:
    """The temperature of a contrast of one process; None for any other objective."""
    if objective is contrast:
        return 1.0
    if isinstance(objective, partial) and objective.func is contrast and not objective.args:
        # Native code knows the points of one process only.
        alone = objective.keywords.get("ranks", ALONE).size == 1
        return float(objective.keywords.get("temperature", 1.0)) if alone else None
    return None


def trains(optimizer: torch.optim.Optimizer, parameters: Sequence[Tensor]) -> bool:
    """Whether these, each in one piece of memory, are what the optimiser's one group trains."""
    trained = {id(parameter) for parameter in optimizer.param_groups[0]["params"]}
    return trained == {id(p) for p in parameters} and all(p.is_contiguous() for p in parameters)


def is_plain_adam(optimizer: torch.optim.Optimizer) -> bool:
    """Whether it is torch's Adam with one group and nothing added."""
    if type(optimizer) is not torch.optim.Adam or len(optimizer.param_groups) != 1:
        return False
    group = optimizer.param_groups[0]
    more = ("amsgrad", "maximize", "weight_decay", "differentiable", "capturable")
    hooks = (optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks)
    return isinstance(group["lr"], float) and not any(group[name] for name in more) and not any(hooks)


def _state(optimizer: torch.optim.Optimizer, parameter: Tensor) -> dict[str, Tensor]:
    """Adam's state of one parameter, made as Adam makes it before its first step."""
    state: dict[str, Tensor] = optimizer.state[parameter]
    if not state:
        state["step"] = torch.tensor(0.0, dtype=torch.float32)
        state["exp_avg"] = torch.zeros_like(parameter)
        state["exp_avg_sq"] = torch.zeros_like(parameter)
    return state


def _addresses(tensors: Sequence[Tensor]) -> list[int]:
    return [tensor.data_ptr() for tensor in tensors]


def info_of(report: Report, beta: float) -> ArmInfo:
    """What native code says of an arm, as the objective would."""
    snr = 0.0 if report.std == 0 else report.d / report.std
    weighted = None
    if beta != 0:
        weighted = BetaInfo(report.grad_scale, report.effective, report.largest, report.positive, report.gap)
    return ArmInfo(report.d, report.std, snr, weighted)
