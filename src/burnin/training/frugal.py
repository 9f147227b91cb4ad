"""Passes through a network that save memory or time: in pieces of the batch, and chains in bfloat16."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from burnin.closed_form import closed_form
from burnin.core import Energy, InputError, energy_and_gradient, evaluate
from burnin.samplers import Langevin
from burnin.training.arms import Arm


@dataclass(frozen=True)
class Frugal:
    """What is saved on.

    Attributes:
        pieces: into how many pieces a batch is cut. Chains go through the network piece by piece; of the loss
            each piece's activations are computed again on the way back, and its gradients are added to those
            of the others. The numbers are those of the whole batch up to rounding, β's weights included.
        bf16: whether the network's layers are computed in bfloat16 along the chains. The loss, d and the
            weights stay in float32.
    """

    pieces: int = 1
    bf16: bool = False

    def require_safe(self, energy: Energy, arms: Sequence[Arm]) -> None:
        """Refuses what would be wrong, or slower, with it.

        A Metropolis check and the weights of annealing read differences of energies, of which bfloat16 knows
        three digits; a Langevin step reads the gradient, whose error is far below its own noise.
        """
        if closed_form(energy) is not None:
            raise InputError(
                "run.pieces and run.precision are for networks of pictures; a perceptron has faster ways: "
                "leave them out"
            )
        if checked := [arm.name for arm in arms if self.bf16 and not isinstance(arm.sampler, Langevin)]:
            raise InputError(
                f"run.precision is bf16, but the chains of {checked[0]} read energies (a Metropolis check, "
                "or resampling), for which it is too coarse; take plain Langevin chains, or float32"
            )


@dataclass(frozen=True, eq=False)
class FrugalEnergy:
    """An energy whose passes are frugal, for chains and for losses of its weights."""

    energy: Energy
    how: Frugal

    def __call__(self, x: Tensor) -> Tensor:
        """E(x), (n,), in one pass."""
        return evaluate(self.energy, x)

    def energy_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """E(x) and ∇E(x), both without a graph."""
        parts = [energy_and_gradient(self._along_chains, piece) for piece in self._pieces(x)]
        return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])

    def energy_of_weights(self, x: Tensor) -> Tensor:
        """E(x), (n,), through which gradients flow to the weights."""
        if self.how.pieces == 1:
            return self(x)
        parts = [
            checkpoint(self, piece, use_reentrant=False, preserve_rng_state=False)
            for piece in self._pieces(x)
        ]
        return torch.cat(parts)

    def _along_chains(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.how.bf16):
            return evaluate(self.energy, x).to(x.dtype)

    def _pieces(self, x: Tensor) -> Sequence[Tensor]:
        return torch.tensor_split(x, max(1, min(self.how.pieces, len(x))))
