"""Chains that go on from where earlier ones ended: persistent contrastive divergence."""

from __future__ import annotations

import torch
from torch import Tensor

from burnin.core import CheckpointError, Drawn, InputError
from burnin.starts.noise import FromNoise


class Bank:
    """A bank of chains. A batch is drawn without replacement and written back where it came from.

    With ``refresh`` > 0 each drawn chain restarts from fresh noise with that probability, and its end
    takes the old chain's place (hybrid, section 3; 0.05 there, for whole batches at a time).

    Arguments:
        size: number of chains kept (60,000 in the hybrid paper).
        shape: shape of one chain's position.
        noise: what the bank is filled with at first, and what refreshed chains restart from.
        generator: draws the first contents.
        refresh: share of the drawn chains that restart.

    Example:
        >>> import torch
        >>> stream = torch.Generator().manual_seed(0)
        >>> bank = Bank(100, (2,), FromNoise(), stream)
        >>> drawn = bank.draw(torch.empty(10, 2), stream)
        >>> bank.store(drawn, torch.zeros(10, 2))
        >>> int((bank.position == 0).all(1).sum())
        10
    """

    def __init__(
        self,
        size: int,
        shape: tuple[int, ...],
        noise: FromNoise,
        generator: torch.Generator,
        *,
        refresh: float = 0.0,
    ) -> None:
        if size < 1:
            raise InputError(f"the bank's size is {size}; it must be at least 1")
        if not 0 <= refresh <= 1:
            raise InputError(f"the bank's refresh share is {refresh}; it must lie between 0 and 1")
        self.noise = noise
        self.refresh = refresh
        self.position = noise.sample((size, *shape), generator)

    def draw(self, data: Tensor, generator: torch.Generator) -> Drawn:
        """As many different chains as `data` has rows, some of them restarted."""
        n, size = data.shape[0], self.position.shape[0]
        if n > size:
            raise InputError(
                f"a batch of {n} does not fit a bank of {size}: raise bank_size or lower batch_size"
            )
        places = torch.randperm(size, generator=generator, device=generator.device)[:n]
        position = self.position[places]
        if self.refresh > 0:
            restart = torch.rand(n, generator=generator, device=generator.device) < self.refresh
            fresh = self.noise.sample(position.shape, generator, dtype=position.dtype)
            position = torch.where(restart.reshape(-1, *([1] * (position.dim() - 1))), fresh, position)
        return Drawn(position.to(data.dtype), places)

    def store(self, drawn: Drawn, position: Tensor) -> None:
        """Writes the chains back to the places they came from."""
        assert drawn.places is not None, "stored chains were not drawn from this bank"
        self.position[drawn.places] = position.to(self.position.dtype)

    def state(self) -> dict[str, Tensor]:
        """The chains."""
        return {"position": self.position}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Takes the chains of a checkpoint, if they have this bank's shape."""
        position = state.get("position")
        if position is None or position.shape != self.position.shape:
            found = None if position is None else tuple(position.shape)
            raise CheckpointError(
                f"the checkpoint's bank has shape {found}, this run's {tuple(self.position.shape)}; "
                "it was made with other settings"
            )
        self.position = position.to(self.position.dtype, copy=True)
