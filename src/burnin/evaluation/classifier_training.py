"""Trains the classifier whose features pictures are compared by."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from burnin.core import DivergedError, InputError
from burnin.data.labels import LabelledPictures
from burnin.evaluation.classifier import Classifier, ClassifierNet, to_input
from burnin.rng import Streams

BATCH = 128
RATE = 2e-3
WARMUP = 0.05
SMOOTHING = 0.05
"""Of the labels: without it probabilities become so sharp that the Inception Score says little."""

OnUpdate = Callable[[int, float], None]
"""Told the number of updates made and the loss."""


def train_classifier(
    data: LabelledPictures, *, updates: int = 2000, seed: int = 0, on_update: OnUpdate | None = None
) -> Classifier:
    """A classifier of labelled pictures, by Adam on the cross-entropy, its rate falling as a cosine.

    The same seed gives the same network on the same machine.

    Arguments:
        data: the pictures.
        updates: how many batches of 128.
        seed: of the first weights and of the batches.
        on_update: called after each.

    Raises:
        DivergedError: when the loss is no longer finite.

    Example:
        >>> from burnin.data.labels import load_labelled
        >>> train_classifier(load_labelled("digits8"), updates=30).name[:22]
        'burnin-digits8-8 (own '
    """
    if updates < 1:
        raise InputError(f"the number of updates is {updates}; it must be at least 1")
    streams = Streams(seed)
    _, channels, height, width = data.pixels.shape
    shape = (channels, height, width)
    net = ClassifierNet(shape, data.classes, streams["weights"])
    optimizer = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, updates))
    batches = _Batches(len(data.pixels), streams["batches"])
    for step in range(1, updates + 1):
        rows = batches.draw()
        _, logits = net(to_input(data.pixels[rows]))
        loss = torch.nn.functional.cross_entropy(logits, data.labels[rows], label_smoothing=SMOOTHING)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        scheduler.step()
        if not math.isfinite(loss.item()):
            raise DivergedError(f"the classifier's loss is {loss.item()} at update {step}")
        if on_update is not None:
            on_update(step, loss.item())
    net = net.eval().requires_grad_(False)
    accuracy = accuracy_of(net, data.test_pixels, data.test_labels)
    return Classifier(net, data.name, shape, data.classes, accuracy, updates, seed)


def accuracy_of(net: ClassifierNet, pixels: Tensor, labels: Tensor) -> float:
    """The share of pictures whose likeliest class is the right one."""
    right = 0
    with torch.no_grad():
        for part, truth in zip(torch.split(pixels, 1024), torch.split(labels, 1024), strict=True):
            right += int((net(to_input(part))[1].argmax(1) == truth).sum())
    return right / len(labels)


def _rate(step: int, updates: int) -> float:
    warm = max(1, round(WARMUP * updates))
    return min(1.0, (step + 1) / warm) * 0.5 * (1 + math.cos(math.pi * step / updates))


class _Batches:
    """Every row once in each pass, in a fresh order."""

    def __init__(self, rows: int, generator: torch.Generator) -> None:
        self.rows, self.generator = rows, generator
        self.left = torch.empty(0, dtype=torch.long)

    def draw(self) -> Tensor:
        size = min(BATCH, self.rows)
        if len(self.left) < size:
            self.left = torch.randperm(self.rows, generator=self.generator)
        taken, self.left = self.left[:size], self.left[size:]
        return taken
