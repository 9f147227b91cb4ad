"""Labelled pictures as a joint energy's training draws them, when all are labelled or only some."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from burnin.core import Density, InputError
from burnin.data.corruption import NoisyDensity, clean
from burnin.data.pictures import Pictures


@dataclass(frozen=True, eq=False)
class LabelledDraws:
    """Draws of pictures with their classes, with the same noise as draws without.

    Attributes:
        pictures: those whose labels are known.
        noise: standard deviation of the Gaussian noise of each draw.
    """

    pictures: Pictures
    noise: float = 0.0

    def __call__(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """n pictures, (n, dim), and their classes, (n,)."""
        x, labels = self.pictures.sample_labelled(n, generator)
        if self.noise > 0:
            x = x + self.noise * torch.randn(x.shape, generator=generator, dtype=x.dtype)
        return x, labels


def labelled_draws(
    data: Density, classes: int, known: int | None, generator: torch.Generator
) -> LabelledDraws:
    """Draws of the data's labelled pictures.

    Arguments:
        data: pictures with labels, with noise or without.
        classes: how many there are; a label beyond is refused.
        known: how many labels are known, as many of each class as can be; None for all. The other pictures
            are still learned, without their classes.
        generator: chooses them.

    Example:
        >>> import torch
        >>> from burnin.data import digits8
        >>> draws = labelled_draws(digits8(), 10, 100, torch.Generator().manual_seed(0))
        >>> draws.pictures.labels.bincount().tolist()
        [10, 10, 10, 10, 10, 10, 10, 10, 10, 10]
    """
    pictures = clean(data)
    if not isinstance(pictures, Pictures) or pictures.labels is None:
        raise InputError(
            "joint energies learn from labels, and this data has none: take a named set with label files, "
            "or a folder with a subfolder for each class; or leave out [joint]"
        )
    highest = int(pictures.labels.max())
    if highest >= classes:
        raise InputError(f"joint.classes is {classes}; the data has {highest + 1} classes: set it to that")
    if known is not None:
        if not classes <= known <= len(pictures):
            raise InputError(
                f"joint.labels is {known}; wanted between the number of classes, {classes}, and that of the "
                f"pictures, {len(pictures)}"
            )
        row = _evenly(pictures.labels, known, generator)
        pictures = replace(pictures, pixels=pictures.pixels[row], labels=pictures.labels[row])
    return LabelledDraws(pictures, data.noise if isinstance(data, NoisyDensity) else 0.0)


def _evenly(labels: Tensor, known: int, generator: torch.Generator) -> Tensor:
    """Rows of `known` labels: the first of each class in a random order, then the second of each, …"""
    order = torch.randperm(len(labels), generator=generator)
    turn = torch.empty_like(order)
    for label in range(int(labels.max()) + 1):
        own = order[labels[order] == label]
        turn[own] = torch.arange(len(own))
    return turn.argsort(stable=True)[:known].sort().values
