"""How the learning rate changes over a run, as a factor for torch's LambdaLR."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

Decay = Literal["none", "linear", "cosine", "geometric"]


def rate_factor(
    num_updates: int, *, decay: Decay, decay_from: float, final_rate: float, warmup: int
) -> Callable[[int], float]:
    """1 until the share `decay_from` of all updates, then down to `final_rate` at the last.

    Arguments:
        num_updates: length of the run.
        decay: the shape of the fall.
        decay_from: share of the run at which it starts.
        final_rate: what is left at the end, as a share of the first rate.
        warmup: updates over which the rate first rises linearly.

    Example:
        >>> factor = rate_factor(100, decay="linear", decay_from=0.5, final_rate=0.0, warmup=0)
        >>> [factor(0), factor(50), factor(75), factor(100)]
        [1.0, 1.0, 0.5, 0.0]
    """

    def factor(update: int) -> float:
        rise = min(1.0, (update + 1) / warmup) if warmup else 1.0
        start = decay_from * num_updates
        done = min(1.0, max(0.0, (update - start) / max(1e-9, num_updates - start)))
        if decay == "linear":
            return rise * (1 - (1 - final_rate) * done)
        if decay == "cosine":
            return rise * (final_rate + (1 - final_rate) * 0.5 * (1 + math.cos(math.pi * done)))
        if decay == "geometric":
            return rise * math.exp(math.log(final_rate) * done)
        return rise

    return factor
