"""Data that is not there: what an exported model was trained on, of which only the shape is known."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import InputError


@dataclass(frozen=True)
class AbsentData:
    """The columns of data that cannot be drawn from.

    Arguments:
        columns: a name for each dimension.
        shape: (channels, height, width), where it was pictures.

    Example:
        >>> AbsentData(("height", "weight")).dim
        2
    """

    columns: tuple[str, ...]
    shape: tuple[int, int, int] | None = None

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return len(self.columns)

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """Raises InputError: there are no rows."""
        raise InputError(
            "an exported model comes without its data; give it rows to be judged on: "
            "dataclasses.replace(model, data=Table(rows, model.columns))"
        )
