"""Chains in native code: the stock networks and samplers, all steps of a block in one call.

What is left of a step is arithmetic: activations stay in the cache, no operation is dispatched, chains
are shared out to threads, and the noise is that of the plain steps, so the numbers are theirs up to
rounding. The number of threads does not change them.
"""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import replace

import torch
from torch import Tensor

from burnin.closed_form import ClosedForm
from burnin.core import ChainState, Sampler, StepInfo
from burnin.samplers.annealed import Annealed
from burnin.samplers.blocks import Advanced, Block, Sums
from burnin.samplers.hmc import HMC
from burnin.samplers.langevin import Langevin
from burnin.samplers.mala import MALA

ACTIVATIONS = {"silu": 0, "gelu": 1, "leaky": 2, "softplus": 3}
BUILD_SECONDS = 8.0
"""What building the library costs, once for a machine."""
SAVED_SECONDS = 1e-4
"""What a native step saves at least: the dispatch of some thirty operations,"""
SAVED_PER_PRODUCT = 1e-11
"""and for each multiplication of the network, by what stays in the cache."""

Pointer = ctypes.c_void_p


class _Network(ctypes.Structure):
    _fields_ = (
        ("dim", ctypes.c_int64),
        ("num_frequencies", ctypes.c_int64),
        ("depth", ctypes.c_int64),
        ("num_outputs", ctypes.c_int64),
        *((name, Pointer) for name in ("widths", "weights", "biases", "frequencies", "mean", "std")),
        *((name, Pointer) for name in ("factor_precision", "factor_centre")),
        ("activation", ctypes.c_int32),
        ("slope", ctypes.c_float),
    )


class Problem(ctypes.Structure):
    """Problem of the native code: chains and what drives them."""

    _fields_ = (
        ("network", Pointer),
        ("packed", Pointer),
        ("sampler", ctypes.c_int32),
        ("num_threads", ctypes.c_int32),
        ("num_chains", ctypes.c_int64),
        ("num_steps", ctypes.c_int64),
        ("num_leapfrog", ctypes.c_int64),
        *((name, Pointer) for name in ("scale", "position", "energy", "gradient", "alive", "log_weight")),
        ("step_size", ctypes.c_double),
        *((name, Pointer) for name in ("normal", "spare")),
        *((name, ctypes.c_int64) for name in ("normal_stride", "spare_stride")),
        *((name, Pointer) for name in ("temperature", "step_sizes", "gain")),
        ("target", ctypes.c_double),
        *((name, Pointer) for name in ("reweight", "threshold")),
        ("norm_sum", ctypes.c_double),
        ("acceptance_sum", ctypes.c_double),
        ("non_finite", ctypes.c_int64),
        ("acceptance", Pointer),
        ("gradient_norm", Pointer),
    )


class PackedForm:
    """A network's weights as native code wants them: a copy, which does not follow training.

    Arguments:
        library: the compiled code.
        form: the energy.
        dim: dimensions of a position.
    """

    def __init__(self, library: ctypes.CDLL, form: ClosedForm, dim: int) -> None:
        self.library = library
        self.form = form
        self.dim = dim
        self.network, self._held = _network(form, dim)
        self.packed = library.burnin_pack(ctypes.byref(self.network))
        if not self.packed:
            raise MemoryError("there is no memory for the native copy of the network's weights")
        weakref.finalize(self, library.burnin_unpack, self.packed)


class NativeChain:
    """Takes chains of one sampler on one energy through blocks.

    Arguments:
        sampler: Langevin, MALA or HMC.
        energy: its weights.
        threads: how many threads it may use.
    """

    def __init__(self, sampler: Langevin | MALA | HMC, energy: PackedForm, *, threads: int) -> None:
        self.sampler = sampler
        self.energy = energy
        self.threads = threads

    def __call__(self, state: ChainState, block: Block) -> Advanced:
        """The chains after the block."""
        n, dim = state.position.shape
        # Copied by hand: torch would share a large copy out to its threads, which then spin on the cores
        # that the chains need.
        new = replace(
            state,
            position=_copy(state.position),
            energy=_copy(state.energy),
            gradient=_copy(state.gradient),
            alive=_copy(state.alive),
            log_weight=_copy(state.log_weight),
        )
        acceptance, norm = torch.empty(n), torch.empty(n)
        schedule = block.schedule
        coupled = any(numbers.reweight != 0 for numbers in schedule)
        adaptation = None if isinstance(self.sampler, Langevin) else self.sampler.adaptation
        inputs = {
            "scale": state.scale.expand(dim).contiguous(),
            "temperature": _doubles([float(numbers.temperature) for numbers in schedule]),
            "step_sizes": _doubles(
                [float(numbers.step_size) for numbers in schedule if numbers.step_size is not None]
            ),
            "gain": _doubles([float(numbers.gain) for numbers in schedule]) if adaptation else None,
            "reweight": _doubles([numbers.reweight for numbers in schedule]) if coupled else None,
            "threshold": _doubles([n * numbers.resample_below for numbers in schedule]) if coupled else None,
        }
        normal = block.normal if block.normal[0].is_contiguous() else block.normal.contiguous()
        problem = Problem(
            network=ctypes.addressof(self.energy.network),
            packed=self.energy.packed,
            sampler=_KINDS[type(self.sampler)],
            num_threads=self.threads,
            num_chains=n,
            num_steps=len(block),
            num_leapfrog=self.sampler.num_leapfrog if isinstance(self.sampler, HMC) else 1,
            position=new.position.data_ptr(),
            energy=new.energy.data_ptr(),
            gradient=new.gradient.data_ptr(),
            alive=new.alive.data_ptr(),
            log_weight=new.log_weight.data_ptr(),
            step_size=float(state.step_size),
            normal=normal.data_ptr(),
            normal_stride=normal.stride(0),
            spare=block.spare.data_ptr(),
            spare_stride=block.spare.stride(0),
            target=adaptation.target if adaptation is not None else 0.0,
            acceptance=acceptance.data_ptr(),
            gradient_norm=norm.data_ptr(),
            **{name: None if tensor is None else tensor.data_ptr() for name, tensor in inputs.items()},
        )
        code = self.energy.library.burnin_chain(ctypes.byref(problem))
        if code != 0:
            raise MemoryError(f"the native chains could not allocate their memory for {n} chains")
        new = replace(
            new,
            step_size=torch.tensor(problem.step_size, dtype=torch.float64),
            iteration=state.iteration + len(block),
        )
        non_finite = int(problem.non_finite)
        info = StepInfo(acceptance, norm, torch.tensor(non_finite))
        return Advanced(new, info, Sums(problem.norm_sum, problem.acceptance_sum, non_finite))


_KINDS: dict[type, int] = {Langevin: 0, MALA: 1, HMC: 2}


def fits(sampler: Sampler, form: ClosedForm | None, state: ChainState) -> bool:
    """Whether the native code computes this: a stock sampler and network, float32, on the processor."""
    inner = sampler.inner if type(sampler) is Annealed else sampler
    if form is None or type(inner) not in _KINDS:
        return False
    return state.scale.dim() <= 1 and state.scale.dtype == torch.float32 and computes(form, state.position)


def computes(form: ClosedForm, x: Tensor) -> bool:
    """Whether the native code knows this energy of these positions: float32, on the processor."""
    if x.dim() != 2 or len(x) == 0 or len(form.weights) < 2 or form.activation not in ACTIVATIONS:
        return False
    extras = (form.mean, form.std, form.frequencies, form.centre, form.stiffness)
    tensors = [x, *form.weights, *form.biases, *(t for t in extras if t is not None)]
    if any(t.dtype != torch.float32 or t.device.type != "cpu" for t in tensors):
        return False
    features = x.shape[1] * (1 + 2 * (0 if form.frequencies is None else len(form.frequencies)))
    return form.weights[0].shape[1] == features


def pays(form: ClosedForm, rows: int, steps: int) -> bool:
    """Whether so many steps of so many chains win the time back that building the library takes."""
    products = 2 * rows * sum(weight.numel() for weight in form.weights)
    return steps * (SAVED_SECONDS + SAVED_PER_PRODUCT * products) > BUILD_SECONDS


def bind(sampler: Sampler, energy: PackedForm, threads: int) -> NativeChain:
    """The native chain of what `fits`."""
    inner = sampler.inner if isinstance(sampler, Annealed) else sampler
    assert isinstance(inner, Langevin | MALA | HMC)
    return NativeChain(inner, energy, threads=threads)


def _network(form: ClosedForm, dim: int) -> tuple[_Network, list[object]]:
    """The C structure, and what must live as long as it does."""
    weights = [weight.contiguous() for weight in form.weights]
    biases = [bias.contiguous() for bias in form.biases]
    depth = len(weights) - 1
    widths = (ctypes.c_int64 * depth)(*[weight.shape[0] for weight in weights[:-1]])
    weight_pointers = (Pointer * (depth + 1))(*[weight.data_ptr() for weight in weights])
    bias_pointers = (Pointer * (depth + 1))(*[bias.data_ptr() for bias in biases])
    named: dict[str, Tensor] = {
        name: tensor.expand(size).contiguous()
        for name, tensor, size in (
            ("frequencies", form.frequencies, -1),
            ("mean", form.mean, dim),
            ("std", form.std, dim),
            ("factor_precision", form.stiffness, dim),
            ("factor_centre", form.centre, dim),
        )
        if tensor is not None
    }
    network = _Network(
        dim=dim,
        num_frequencies=0 if form.frequencies is None else len(form.frequencies),
        depth=depth,
        num_outputs=len(weights[-1]),
        widths=ctypes.addressof(widths),
        weights=ctypes.addressof(weight_pointers),
        biases=ctypes.addressof(bias_pointers),
        activation=ACTIVATIONS[form.activation],
        slope=form.slope,
        **{name: tensor.data_ptr() for name, tensor in named.items()},
    )
    return network, [weights, biases, widths, weight_pointers, bias_pointers, named]


def _copy(tensor: Tensor) -> Tensor:
    source = tensor.contiguous()
    copy = torch.empty_like(source)
    ctypes.memmove(copy.data_ptr(), source.data_ptr(), source.nbytes)
    return copy


def _doubles(values: list[float]) -> Tensor | None:
    return torch.tensor(values, dtype=torch.float64) if values else None
