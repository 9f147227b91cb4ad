"""Named random streams from one seed. Nothing here, or anywhere in burnin, seeds a global generator.

Each stream's seed is a hash of the run's seed and the stream's name, so a stream gives the same
numbers whatever other streams exist and whatever ran before.
"""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor


def derive_seed(seed: int, name: str) -> int:
    """A 63-bit seed for the stream `name` of `seed`: SHA-256 of both, so streams do not overlap.

    Example:
        >>> derive_seed(0, "data") == derive_seed(0, "data")
        True
        >>> derive_seed(0, "data") == derive_seed(0, "chain")
        False
    """
    digest = hashlib.sha256(f"burnin:{seed}:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


class Streams:
    """A family of named generators that grow from one seed and can be saved and restored.

    Arguments:
        seed: the run's seed.
        device: where the generators live.

    Example:
        >>> import torch
        >>> a, b = Streams(1), Streams(1)
        >>> _ = torch.randn(5, generator=a["other"])
        >>> bool((torch.randn(2, generator=a["data"]) == torch.randn(2, generator=b["data"])).all())
        True
    """

    def __init__(self, seed: int, device: torch.device | str = "cpu") -> None:
        self.seed = seed
        self.device = torch.device(device)
        self._generators: dict[str, torch.Generator] = {}

    def __getitem__(self, name: str) -> torch.Generator:
        """The stream of this name, made on first use and the same object ever after."""
        if name not in self._generators:
            generator = torch.Generator(device=self.device)
            generator.manual_seed(derive_seed(self.seed, name))
            self._generators[name] = generator
        return self._generators[name]

    def state(self) -> dict[str, Tensor]:
        """The state of every stream used so far, as byte tensors."""
        return {name: generator.get_state() for name, generator in sorted(self._generators.items())}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Puts every stream of `state` back to where it was; streams not in it start afresh."""
        # Streams that come back stay the objects they were: a holder of one follows.
        self._generators = {name: value for name, value in self._generators.items() if name in state}
        for name, value in state.items():
            self[name].set_state(value.cpu())
