"""Chains that start at the data: contrastive divergence."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import Drawn
from burnin.starts.stateless import Stateless


@dataclass(frozen=True)
class FromData(Stateless):
    """Each chain starts at one row of the batch, which pairs negatives with positives.

    Pairing is what keeps the variance of the contrast low (hybrid, section 4.2.3).

    Example:
        >>> import torch
        >>> x = torch.ones(3, 2)
        >>> FromData().draw(x, torch.Generator()).position.equal(x)
        True
    """

    def draw(self, data: Tensor, generator: torch.Generator) -> Drawn:
        """The batch itself."""
        return Drawn(data)
