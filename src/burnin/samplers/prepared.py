"""An energy with its short ways: gradients written out, or computed by native code.

Made for one update of the weights, or for one run of chains: native code works on a copy of the weights
that does not follow training.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from burnin.closed_form import ClosedForm
from burnin.core import Energy
from burnin.samplers.build import Built
from burnin.samplers.native import PackedForm, Pointer, computes

LARGEST_WORK = 2e8
"""Multiply-adds of one pass above which torch's own products, on its own threads, do as well."""


class Prepared:
    """What a network and its closed form offer, each by the shortest way there is.

    Calling it gives the energy with a graph to input and weights, like the network itself. Chains ask
    for `energy_and_gradient`, losses of the weights alone for `energy_of_weights`.

    Arguments:
        energy: the network.
        form: its closed form.
        built: native code, or why there is none.
    """

    def __init__(self, energy: Energy, form: ClosedForm, built: Built) -> None:
        self._energy = energy
        self._form = form
        self.built = built
        self._packed: PackedForm | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """E(x)."""
        return self._energy(x)

    def closed_form(self) -> ClosedForm:
        """The form."""
        return self._form

    def packed(self, dim: int) -> PackedForm | None:
        """The weights for native code, packed at the first call; None where there is no such code."""
        if self._packed is None and self.built.library is not None:
            self._packed = PackedForm(self.built.library, self._form, dim)
        return self._packed

    def energy_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """E(x), (n,), and ∇E(x), both without a graph."""
        packed = self._packed_for(x)
        if packed is None:
            return self._form.energy_and_gradient(x)
        x = x.detach().contiguous()
        value, gradient = torch.empty(len(x)), torch.empty_like(x)
        code = packed.library.burnin_evaluate(
            packed.packed, x.data_ptr(), len(x), value.data_ptr(), gradient.data_ptr()
        )
        if code != 0:
            raise MemoryError(f"there is no memory for the energies of {len(x)} positions")
        return value, gradient

    def energy_of_weights(self, x: Tensor) -> Tensor:
        """E(x), (n,), through which gradients flow to the weights, not to x."""
        form = self._form
        if not form.trains(self._energy):
            return self._energy(x)
        packed = self._packed_for(x)
        if packed is None:
            return form.energy_of_weights(x)
        value: Tensor = _Learn.apply(packed, x, *form.weights, *form.biases)  # type: ignore[no-untyped-call]
        return value

    def packed_for_weights(self, x: Tensor) -> PackedForm | None:
        """The weights for native code that learns from x; None where it cannot, or should not."""
        return self._packed_for(x) if self._form.trains(self._energy) else None

    def _packed_for(self, x: Tensor) -> PackedForm | None:
        work = len(x) * sum(weight.numel() for weight in self._form.weights)
        if self.built.library is None or work > LARGEST_WORK or not computes(self._form, x):
            return None
        return self.packed(x.shape[1])


class _Learn(torch.autograd.Function):
    """The energy as a node of torch's graph, both ways in native code."""

    @staticmethod
    def forward(ctx: Any, packed: PackedForm, x: Tensor, *parameters: Tensor) -> Tensor:
        x = x.contiguous()
        value = torch.empty(len(x))
        kept = packed.library.burnin_learn(packed.packed, x.data_ptr(), len(x), value.data_ptr())
        if not kept:
            raise MemoryError(f"there is no memory to learn from {len(x)} positions")
        ctx.kept = _Kept(packed, kept, len(x))
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
        kept: _Kept = ctx.kept
        if kept.used:
            raise RuntimeError("the gradient of these energies was taken before; compute the energies again")
        kept.used = True
        form, library = kept.packed.form, kept.packed.library
        weights = [torch.empty(weight.shape) for weight in form.weights]
        biases = [torch.empty(bias.shape) for bias in form.biases]
        outer = outer.contiguous()
        code = library.burnin_weight_gradients(
            kept.address, kept.rows, outer.data_ptr(), _pointers(weights), _pointers(biases)
        )
        if code != 0:
            raise MemoryError(f"there is no memory to learn from {kept.rows} positions")
        return (None, None, *weights, *biases)


class _Kept:
    """What native code keeps between the two ways; freed with this object."""

    def __init__(self, packed: PackedForm, address: int, rows: int) -> None:
        self.packed = packed
        self.address = address
        self.rows = rows
        self.used = False
        weakref.finalize(self, packed.library.burnin_forget, address)


def _pointers(tensors: list[Tensor]) -> ctypes.Array[ctypes.c_void_p]:
    return (Pointer * len(tensors))(*[tensor.data_ptr() for tensor in tensors])
