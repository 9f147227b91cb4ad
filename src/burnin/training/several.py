"""Several updates in one native call, for the simplest of schemes: one arm of plain Langevin chains.

Small networks on toys make a hundred thousand updates of a millisecond each, of which Python would spend
more than half. Here only the random numbers are drawn update by update, by the same calls from the same
streams; so the numbers are those of single updates up to rounding, wherever a run is cut.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from burnin.core import Density
from burnin.objectives import ArmInfo, Negatives
from burnin.rng import Streams
from burnin.samplers import Engine, Langevin, Prepared
from burnin.samplers.blocks import block_length, draw_rows
from burnin.samplers.native import PackedForm, Problem
from burnin.starts import FromData, FromNoise
from burnin.training.arms import Arm
from burnin.training.fused import (
    Pointer,
    Report,
    contrast_temperature,
    describe_update,
    info_of,
    is_plain_adam,
    trains,
)

RESULTS = {
    "loss": torch.float64,
    "norm": torch.float64,
    "acceptance": torch.float64,
    "stopped": torch.int64,
    "non_finite": torch.int64,
    "finite": torch.int64,
}


class _Training(ctypes.Structure):
    _fields_ = (
        *((name, Pointer) for name in ("network", "chain", "update")),
        ("num_updates", ctypes.c_int64),
        *((name, Pointer) for name in ("data", "position", "normal")),
        ("normal_stride", ctypes.c_int64),
        ("rates", Pointer),
        *((name, Pointer) for name in RESULTS),
    )


@dataclass(frozen=True)
class Made:
    """What one of several updates says."""

    loss: float
    info: ArmInfo
    gradient_norm: float
    acceptance: float
    step_size: float
    num_stopped: int
    num_non_finite: int
    finite: bool
    learning_rate: float


@dataclass(frozen=True)
class Plan:
    """The parts of a training run that several updates need."""

    energy: nn.Module
    data: Density
    arm: Arm
    sampler: Langevin
    beta: float
    step_size: float
    temperature: float
    optimizer: torch.optim.Optimizer
    scheduler: torch.optim.lr_scheduler.LRScheduler | None


def plan_of(
    energy: nn.Module,
    data: Density,
    arms: Sequence[Arm],
    optimizer: torch.optim.Optimizer,
    scheduler: torch.optim.lr_scheduler.LRScheduler | None,
    objective: object,
) -> Plan | None:
    """How to make several updates at once; None where the parts are not the simple ones."""
    temperature = contrast_temperature(objective)
    if temperature is None or len(arms) != 1 or not is_plain_adam(optimizer):
        return None
    arm = arms[0]
    if type(arm.start) not in (FromNoise, FromData) or not isinstance(arm.beta, int | float):
        return None
    sampler = arm.sampler_at(0)
    if type(sampler) is not Langevin or not isinstance(sampler.step_size, int | float):
        return None
    beta, step_size = float(arm.beta), float(sampler.step_size)
    return Plan(energy, data, arm, sampler, beta, step_size, temperature, optimizer, scheduler)


def several_updates(
    plan: Plan, count: int, batch_size: int, streams: Streams, engine: Engine, native_code: bool | None
) -> list[Made] | None:
    """Makes `count` updates; None, with nothing drawn and nothing done, where it has to be done singly."""
    arm = plan.arm
    n = min(batch_size, arm.num_chains or batch_size)
    if arm.variant == "true_objective" and batch_size < 2:
        return None
    probe = torch.empty(batch_size + n, plan.data.dim)
    energy = engine.prepare(plan.energy, probe, native_code)
    if not isinstance(energy, Prepared) or arm.num_steps > block_length(probe[:n]):
        return None
    packed = energy.packed_for_weights(probe)
    if packed is None or not trains(plan.optimizer, [*packed.form.weights, *packed.form.biases]):
        return None
    engine.take_updates()
    batches, starts, rows = [], [], []
    for _ in range(count):
        data = plan.data.sample(batch_size, streams["data"])
        start = arm.start.draw(data[:n], streams["chains"]).position
        batches.append(data)
        starts.append(start)
        if arm.num_steps:
            rows.append(draw_rows(start, arm.num_steps, streams["chains"]))
    rates = []
    plan.optimizer._opt_called = True  # type: ignore[attr-defined]  # as in fused_update
    for _ in range(count):
        rates.append(float(plan.optimizer.param_groups[0]["lr"]))
        if plan.scheduler is not None:
            plan.scheduler.step()
    noise = torch.stack(rows) if rows else torch.zeros(count, 1, 1)
    return _call(plan, packed, torch.stack(batches), torch.stack(starts), noise, rates, engine)


def _call(
    plan: Plan,
    packed: PackedForm,
    data: Tensor,
    position: Tensor,
    rows: Tensor,
    rates: list[float],
    engine: Engine,
) -> list[Made]:
    arm, sampler = plan.arm, plan.sampler
    count, n, dim = position.shape
    negatives = [Negatives(position[0], arm.weight, plan.beta, arm.variant)]
    parameters = [*packed.form.weights, *packed.form.biases]
    update, held = describe_update(
        plan.optimizer, parameters, negatives, data.shape[1], plan.temperature, None
    )
    reports = (Report * count)()
    update.reports = ctypes.addressof(reports)
    step_size = plan.step_size
    scale = torch.ones(dim)
    heat = torch.full((max(1, arm.num_steps),), sampler.temperature, dtype=torch.float64)
    chain = Problem(
        sampler=0,
        num_threads=engine.threads or torch.get_num_threads(),
        num_chains=n,
        num_steps=arm.num_steps,
        num_leapfrog=1,
        scale=scale.data_ptr(),
        step_size=step_size,
        normal_stride=rows.shape[2],
        spare_stride=rows.shape[2],
        temperature=heat.data_ptr(),
    )
    results = {name: torch.zeros(count, dtype=kind) for name, kind in RESULTS.items()}
    learning_rates = torch.tensor(rates, dtype=torch.float64)
    call = _Training(
        network=ctypes.addressof(packed.network),
        chain=ctypes.addressof(chain),
        update=ctypes.addressof(update),
        num_updates=count,
        data=data.data_ptr(),
        position=position.data_ptr(),
        normal=rows.data_ptr(),
        normal_stride=rows.stride(0),
        rates=learning_rates.data_ptr(),
        **{name: tensor.data_ptr() for name, tensor in results.items()},
    )
    code = packed.library.burnin_train(ctypes.byref(call))
    if code != 0:
        raise MemoryError(f"there is no memory for {count} updates")
    del held  # alive until here: the call reads it
    columns = [tensor.tolist() for tensor in results.values()]
    return [
        Made(loss, info_of(report, plan.beta), norm, acceptance, step_size, stopped, bad, bool(finite), rate)
        for report, rate, loss, norm, acceptance, stopped, bad, finite in zip(
            reports, rates, *columns, strict=True
        )
    ]
