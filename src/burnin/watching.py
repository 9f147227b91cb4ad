"""Watches a fit: the held-out likelihood, the best weights so far, when it is enough."""

from __future__ import annotations

import time

import torch
from torch import Tensor

from burnin.core import CheckpointError
from burnin.energies import MixtureFactor
from burnin.evaluation import MixtureBase
from burnin.evaluation.tracking import LikelihoodTrack, Look
from burnin.rng import Streams
from burnin.settings import Config
from burnin.training import Trainer
from burnin.training.checkpoint import Snapshot

LOOK_EVERY = 25


class Watch:
    """Looks at the held-out likelihood, keeps the best weights, and says when it is enough.

    The points are `apart` when training does not see them. With `seen`, from a checkpoint, it goes on from
    what it had seen then.
    """

    def __init__(
        self,
        trainer: Trainer,
        points: Tensor,
        apart: bool,
        base: MixtureBase,
        config: Config,
        patience: int,
        deadline: float | None,
        seen: Snapshot | None,
    ) -> None:
        streams = Streams(config.run.seed)
        self._apart = apart
        # The same draws of the base at every look, and after every pause.
        self._track = LikelihoodTrack(config.model.temperature, points, base, streams["track"])
        self._trainer, self._patience, self._deadline = trainer, patience, deadline
        self._looked, self._since = -1, 0
        self.gained, self.late = False, False
        self.best = trainer.snapshot().clone()
        self.why = "all updates made"
        if seen is None:
            self._highest = self._look().value
        else:
            self._restore(seen)

    def state(self, contamination: float) -> Snapshot:
        """What is needed to go on, and the share of outliers that was asked for."""
        tensors = {"highest": torch.tensor(self._highest, dtype=torch.float64)}
        tensors |= {f"best.{name}": value for name, value in self.best.tensors.items()}
        counts = {"looked": self._looked, "since": self._since, "gained": self.gained}
        return Snapshot(tensors, {**counts, "best": self.best.state, "contamination": contamination})

    def _restore(self, seen: Snapshot) -> None:
        try:
            self._highest = float(seen.tensors["highest"])
            self.best = Snapshot(seen.part("best"), seen.state["best"])
            self._looked, self._since = int(seen.state["looked"]), int(seen.state["since"])
            self.gained = bool(seen.state["gained"])
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise CheckpointError(f"the checkpoint lacks {error}: another version wrote it") from error

    def enough(self, step: int) -> bool:
        """Asked after each update."""
        if step % LOOK_EVERY == 0:
            self.look(step)
            if self._since >= self._patience:
                self.why = "the held-out likelihood no longer rises"
                return True
        if self._deadline is not None and time.monotonic() > self._deadline:
            self.why, self.late = "the time is up", True
            return True
        return False

    def look(self, step: int) -> None:
        """One look, unless this update has been looked at."""
        if step == self._looked:
            return
        self._looked = step
        found = self._look()
        if found.value > self._highest and found.trusted:
            self._highest, self._since, self.gained = found.value, 0, True
            self.best = self._trainer.snapshot().clone()
        else:
            self._since += 1

    def best_temperature(self) -> float:
        """The T at which the network as it is now fits the held-out points best; without such, its own."""
        if not self._apart:
            return self._corrected().temperature
        return self._track.best_temperature(self._corrected())

    def _look(self) -> Look:
        return self._track.look(self._corrected())

    def _corrected(self) -> MixtureFactor:
        model = self._trainer.model
        assert isinstance(model, MixtureFactor)
        return model
