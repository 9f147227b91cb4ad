"""A step for each dimension, fitted to the energy's own gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from burnin.core import CheckpointError, Energy, energy_and_gradient
from burnin.ranks import ALONE, Ranks


class FisherScale:
    """sᵢ = T / ⟨(∂E/∂xᵢ)²⟩_data: long steps where the energy is flat, short ones where it is steep.

    With f = E/T, step·sᵢ·∂E/∂xᵢ = step·f′ᵢ/⟨f′ᵢ²⟩, so the step size has no units and one number serves
    dimensions of any width; the law of the chain stays exp(-E/T), since the scale is fixed along it.
    It is the hybrid paper's adaptive step (section 3), one for each dimension. The mean square is
    averaged over updates with `decay`. A scale is never above `largest`, which rules while the energy is
    still flat (the data's variance over T is the natural choice), and never below `floor`·`largest`:
    chains that cannot move any more would let a diverging energy grow for ever.
    """

    def __init__(self, largest: Tensor, temperature: float, *, decay: float, floor: float) -> None:
        self.largest = largest
        self.floor = floor
        self.temperature = temperature
        self.decay = decay
        self.mean_square = temperature / largest

    def update(self, energy: Energy, data: Tensor, ranks: Ranks = ALONE) -> None:
        """Takes the gradients at one batch of data, shared by `ranks`, into the average."""
        own = ranks.own(data)
        gradient = energy_and_gradient(energy, own)[1]
        fresh = ranks.sum(gradient.square().mean(0) * (len(own) / len(data)))
        self.mean_square = self.decay * self.mean_square + (1 - self.decay) * fresh

    def value(self) -> Tensor:
        """The scale of each dimension now."""
        scale = torch.minimum(self.temperature / self.mean_square, self.largest)
        return torch.maximum(scale, self.floor * self.largest)

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint keeps."""
        return {"mean_square": self.mean_square, "largest": self.largest}

    def restore(self, state: dict[str, Tensor]) -> None:
        """The inverse of `state`."""
        for name in ("mean_square", "largest"):
            if (state[name].shape, state[name].dtype) != (self.largest.shape, self.largest.dtype):
                raise CheckpointError("the checkpoint's scale has another shape: it was made with other data")
        self.mean_square, self.largest = state["mean_square"], state["largest"]
