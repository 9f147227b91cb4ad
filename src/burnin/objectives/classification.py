"""The classifier's part of a joint energy's loss: cross-entropy on labelled data (robust, appendix M)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import InputError
from burnin.ranks import ALONE, Ranks

Logits = Callable[[Tensor], Tensor]
"""From a batch to (n, classes)."""
DrawLabelled = Callable[[int, torch.Generator], tuple[Tensor, Tensor]]
"""n labelled points and their classes, from a generator."""


@dataclass(frozen=True)
class Classification:
    """-⟨log p(y|x)⟩ on batches of labelled data, beside weight · (-log p(x)) by any objective.

    JEM maximises log p(y|x) + weight · log p(x). Its contrast is that of E, that is T times the one of
    f = -E/T (appendix M.2), and so is burnin's. Labelled points are drawn by themselves, so that some data
    may have none.

    Attributes:
        logits: the classifier inside the energy.
        draw: labelled points.
        batch_size: how many for each update.
        weight: of the objective that learns p(x).
        ranks: the processes that share each batch; the sum of their losses' gradients is that of the batch.
    """

    logits: Logits
    draw: DrawLabelled
    batch_size: int
    weight: float = 1.0
    ranks: Ranks = ALONE

    def __post_init__(self) -> None:
        if self.batch_size < 1 or not self.weight >= 0:
            raise InputError(
                f"the classification has batch_size {self.batch_size} and weight {self.weight}; wanted at "
                "least 1, and not below 0"
            )

    def loss(self, generator: torch.Generator) -> tuple[Tensor, dict[str, float]]:
        """The cross-entropy of a batch with its graph, and numbers worth logging.

        Example:
            >>> import torch
            >>> ones = lambda n, generator: (torch.ones(n, 2), torch.zeros(n, dtype=torch.long))
            >>> part = Classification(torch.nn.Linear(2, 3), ones, batch_size=4)
            >>> loss, numbers = part.loss(torch.Generator())
            >>> sorted(numbers)
            ['class_accuracy', 'cross_entropy']
        """
        x, labels = self.draw(self.batch_size, generator)
        x, labels = self.ranks.own(x), self.ranks.own(labels)
        logits = self.logits(x)
        share = len(x) / self.batch_size
        part = share * torch.nn.functional.cross_entropy(logits, labels)
        right = share * (logits.detach().argmax(1) == labels).float().mean()
        entropy, accuracy = self.ranks.sum(torch.stack([part.detach(), right]))
        loss = part + (entropy - part.detach())  # the value of all, the gradient of this process's part
        return loss, {"cross_entropy": entropy.item(), "class_accuracy": accuracy.item()}
