"""Chains that go on from where earlier ones ended: persistent contrastive divergence."""

from __future__ import annotations

import torch
from torch import Tensor

from burnin.core import CheckpointError, Drawn, InputError
from burnin.ranks import ALONE, Ranks
from burnin.starts.noise import FromNoise


class Bank:
    """A bank of chains. A batch is drawn without replacement and written back where it came from.

    With ``refresh`` > 0 each drawn chain restarts from fresh noise with that probability, and its end
    takes the old chain's place (hybrid, section 3; 0.05 there, for whole batches at a time).

    Several processes hold a part of the bank each. By default every one draws its share of a batch from its
    own part, and chains stay where they are. With ``exchange`` a batch is drawn from the whole bank as one
    process would, and chains travel: two batches of positions are sent around in each update.

    Arguments:
        size: number of chains kept (60,000 in the hybrid paper).
        shape: shape of one chain's position.
        noise: what the bank is filled with at first, and what refreshed chains restart from.
        generator: draws the first contents.
        refresh: share of the drawn chains that restart.
        ranks: the processes that hold it.
        exchange: whether chains travel between them.

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
        ranks: Ranks = ALONE,
        exchange: bool = False,
    ) -> None:
        if size < 1:
            raise InputError(f"the bank's size is {size}; it must be at least 1")
        if not 0 <= refresh <= 1:
            raise InputError(f"the bank's refresh share is {refresh}; it must lie between 0 and 1")
        self.noise = noise
        self.refresh = refresh
        self.size = size
        self.ranks = ranks
        self.exchange = exchange
        self._held = ranks.rows(size)
        whole = noise.sample((size, *shape), generator)
        self.position = whole if ranks.size == 1 else ranks.own(whole).clone()

    def draw(self, data: Tensor, generator: torch.Generator) -> Drawn:
        """As many different chains as `data` has rows, some of them restarted.

        `data` is the batch of all processes. Rows of the others' chains hold nothing, without exchange.
        """
        n = data.shape[0]
        places = self._places(n, generator)
        here = self._here(places)
        position = self.position.new_zeros((n, *self.position.shape[1:]))
        position[here] = self.position[places[here] - self._held.start]
        if self.exchange:
            position = self.ranks.sum(position)
        if self.refresh > 0:
            restart = torch.rand(n, generator=generator, device=generator.device) < self.refresh
            fresh = self.noise.sample(position.shape, generator, dtype=position.dtype)
            position = torch.where(restart.reshape(-1, *([1] * (position.dim() - 1))), fresh, position)
        return Drawn(position.to(data.dtype), places)

    def store(self, drawn: Drawn, position: Tensor) -> None:
        """Writes this process's chains back to the places they came from."""
        assert drawn.places is not None, "stored chains were not drawn from this bank"
        places = drawn.places
        if self.exchange:
            position = self.ranks.gather(position, len(places))
        else:
            places = self.ranks.own(places)
        here = self._here(places)
        self.position[places[here] - self._held.start] = position[here].to(self.position.dtype)

    def state(self) -> dict[str, Tensor]:
        """The chains that this process holds."""
        return {"position": self.position}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Takes the chains of a `state`, or those of all processes, of which it keeps its own.

        Raises:
            CheckpointError: when they have another shape.
        """
        position, shape = state.get("position"), self.position.shape
        if position is not None and position.shape == (self.size, *shape[1:]):
            position = self.ranks.own(position)
        if position is None or position.shape != shape:
            found = None if position is None else tuple(position.shape)
            raise CheckpointError(
                f"the checkpoint's bank has shape {found}, this run's {(self.size, *shape[1:])}; "
                "it was made with other settings"
            )
        self.position = position.to(self.position.dtype, copy=True)

    def _places(self, n: int, generator: torch.Generator) -> Tensor:
        """Where a batch's chains are kept, drawn by all processes alike."""
        parts = [(n, slice(0, self.size))]
        if not self.exchange:
            batches = [self.ranks.rows(n, rank) for rank in range(self.ranks.size)]
            held = [self.ranks.rows(self.size, rank) for rank in range(self.ranks.size)]
            parts = [(b.stop - b.start, part) for b, part in zip(batches, held, strict=True)]
        places = []
        for wanted, part in parts:
            size = part.stop - part.start
            if wanted > size:
                raise InputError(
                    f"a batch of {wanted} does not fit a bank of {size}: raise bank_size or lower batch_size"
                )
            order = torch.randperm(size, generator=generator, device=generator.device)
            places.append(part.start + order[:wanted])
        return torch.cat(places)

    def _here(self, places: Tensor) -> Tensor:
        here: Tensor = (places >= self._held.start) & (places < self._held.stop)
        return here
