"""What a training run is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from burnin.core import Density, Energy
from burnin.objectives import ArmInfo, Classification, DirectObjective, Negatives, contrast
from burnin.ranks import ALONE, Ranks
from burnin.rng import Streams
from burnin.samplers import Engine
from burnin.training.arms import Arm
from burnin.training.frugal import Frugal
from burnin.training.guard import GuardSettings
from burnin.training.scale import FisherScale

Objective = Callable[[Energy, Tensor, Sequence[Negatives]], tuple[Tensor, list[ArmInfo]]]
Metrics = Mapping[str, float]


@dataclass(frozen=True)
class Parts:
    """What a training run is made of; each part may be exchanged for another of its kind.

    Attributes:
        energy: the network; any nn.Module from a batch to (n,) or (n, 1).
        data: where batches come from.
        arms: where negatives come from; none for an objective without chains.
        optimizer: any torch optimiser of the energy's parameters.
        scheduler: any torch learning-rate scheduler of that optimiser, stepped at every update.
        objective: what is made small: the contrast with the arms' negatives, or an objective without
            chains (`burnin.objectives.DirectObjective`), whose companions the optimiser must know.
        scale: the per-dimension step, if it is to be fitted.
        average: decay of the running average of the weights, which becomes the model; 0 for none.
        clip_norm: longest gradient of the network's weights, for a total weight 1 of the arms or for an
            objective without any; longer ones are shortened to it. None for no limit.
        guard: what counts as divergence; None raises at the first non-finite value.
        engine: how chains are computed; None chooses by itself.
        classification: the other half of a joint energy's loss: cross-entropy on labelled data.
        ranks: the processes that train together. Banks, objective and classification must know them too
            (``partial(contrast, ranks=ranks)``); `burnin.assemble.build_trainer` sees to it.
        frugal: how passes through the network save memory or time, if they are to.
    """

    energy: nn.Module
    data: Density
    arms: Sequence[Arm]
    optimizer: torch.optim.Optimizer
    scheduler: torch.optim.lr_scheduler.LRScheduler | None = None
    objective: Objective | DirectObjective = contrast
    scale: FisherScale | None = None
    average: float = 0.0
    clip_norm: float | None = None
    guard: GuardSettings | None = None
    engine: Engine | None = None
    classification: Classification | None = None
    ranks: Ranks = ALONE
    frugal: Frugal | None = None

    def with_classes(self, loss: Tensor, streams: Streams) -> tuple[Tensor, dict[str, float]]:
        """-log p(y|x) + weight · loss, where there are classes to learn; and their numbers."""
        if self.classification is None:
            return loss, {}
        entropy, numbers = self.classification.loss(streams["labels"])
        return entropy + self.classification.weight * loss, numbers
