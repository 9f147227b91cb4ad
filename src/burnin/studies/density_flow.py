"""A small normalising flow of zuko's with the face of scikit-learn: what EnergyDensity is compared with."""

from __future__ import annotations

import copy
import math
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from burnin.core import InputError

BATCH = 128
LOOK_EVERY, PATIENCE = 25, 4


class Flow:
    """A masked autoregressive flow, trained by Adam until the likelihood of validation rows no longer rises.

    Arguments:
        transforms: how many.
        width: units of each of their two layers.
        learning_rate: of Adam.
        updates: at most.
        seed: of weights and batches.
        stop_at: the update to end at, where there are no validation rows.
    """

    def __init__(
        self,
        *,
        transforms: int,
        width: int,
        learning_rate: float,
        updates: int,
        seed: int,
        stop_at: int | None = None,
    ) -> None:
        self.transforms, self.width, self.learning_rate = transforms, width, learning_rate
        self.updates = updates if stop_at is None else stop_at
        self.seed = seed
        self.best_update = self.updates
        self._flow: Any = None

    def fit(self, rows: NDArray[np.float64], validation: NDArray[np.float64] | None = None) -> Self:
        """Learns from rows; keeps the weights that were best on the validation rows."""
        x = torch.as_tensor(rows, dtype=torch.float32)
        # zuko draws its weights from the global generator: a fork leaves that as it was.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            flow = _zuko().flows.MAF(
                x.shape[1], 0, transforms=self.transforms, hidden_features=(self.width, self.width)
            )
        stream = torch.Generator().manual_seed(self.seed)
        optimizer = torch.optim.Adam(flow.parameters(), self.learning_rate)
        held = None if validation is None else torch.as_tensor(validation, dtype=torch.float32)
        best, highest, since = copy.deepcopy(flow.state_dict()), -math.inf, 0
        for update in range(self.updates + 1):
            if held is not None and update % LOOK_EVERY == 0:
                with torch.no_grad():
                    value = flow().log_prob(held).mean().item()
                if value > highest:
                    best, highest, since = copy.deepcopy(flow.state_dict()), value, 0
                    self.best_update = update
                else:
                    since += 1
                if since >= PATIENCE:
                    break
            batch = x[torch.randint(len(x), (BATCH,), generator=stream)]
            loss = -flow().log_prob(batch).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if held is not None:
            flow.load_state_dict(best)
        self._flow = flow
        return self

    def score_samples(self, X: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: N803
        """The log-density of each row."""
        with torch.no_grad():
            log_prob = self._flow().log_prob(torch.as_tensor(X, dtype=torch.float32))
        return np.asarray(log_prob.double().numpy())


def _zuko() -> Any:
    try:
        import zuko
    except ImportError as error:
        raise InputError("the flow needs zuko: pip install -c constraints.txt 'burnin[peers]'") from error
    return zuko
