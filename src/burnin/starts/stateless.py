"""The part that starts without memory share."""

from __future__ import annotations

from torch import Tensor

from burnin.core import CheckpointError, Drawn


class Stateless:
    """Nothing to store, nothing to save."""

    def store(self, drawn: Drawn, position: Tensor) -> None:
        """Chains are forgotten."""

    def state(self) -> dict[str, Tensor]:
        """Empty."""
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Nothing to restore; tensors in `state` mean that it was made by another start."""
        if state:
            raise CheckpointError(
                f"the checkpoint holds {sorted(state)} for a {type(self).__name__} start, which keeps none; "
                "it was made with other arms"
            )
