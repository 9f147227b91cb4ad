"""Samples with their nearest training pictures: to see whether they are copies."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from matplotlib.figure import Figure
from torch import Tensor

from burnin.evaluation.neighbours import Neighbours

CELL, GAP = 0.62, 0.14
LEFT, TOP, EDGE = 1.0, 0.5, 0.08
"""Inches: of a picture, between kinds of rows, and of the room for words."""


def neighbours_figure(
    samples: Tensor, training: Tensor, found: Mapping[str, Neighbours], shown: int = 8
) -> Figure:
    """The samples nearest to training pictures, and below each its neighbours, by every way of looking.

    Arguments:
        samples, training: bytes, 255 the brightest, (n, channels, height, width).
        found: for "pixels" and for the name of a network, the neighbours of the samples in the training
            pictures; the first decides which samples are shown.
        shown: how many samples.
    """
    first = next(iter(found.values()))
    chosen = first.distance[:, 0].argsort(stable=True)[:shown]
    groups = [("samples", [samples[chosen]])]
    for way, one in found.items():
        told = "by pixels" if way == "pixels" else "by features"
        groups.append((told, [training[one.index[chosen, k]] for k in range(one.index.shape[1])]))
    rows = sum(len(pictures) for _, pictures in groups)
    width = LEFT + max(CELL * len(chosen), 4.6) + EDGE
    height = TOP + CELL * rows + GAP * (len(groups) - 1) + EDGE
    figure = Figure(figsize=(width, height))
    networks = [way for way in found if way != "pixels"]
    title = "The samples nearest to a training picture, above their nearest training pictures"
    figure.text(EDGE / width, 1 - 0.16 / height, title, fontsize=8.5, va="center")
    if networks:
        told = f"features: {networks[0]}"
        figure.text(EDGE / width, 1 - 0.34 / height, told, fontsize=7.5, va="center", color="0.35")
    y = height - TOP
    for told, strips in groups:
        figure.text((LEFT - 0.1) / width, (y - CELL / 2) / height, told, fontsize=9, ha="right", va="center")
        for pictures in strips:
            y -= CELL
            _strip(figure, pictures, (LEFT / width, y / height, CELL * len(chosen) / width, CELL / height))
        y -= GAP
    return figure


def _strip(figure: Figure, pictures: Tensor, box: tuple[float, float, float, float]) -> None:
    """Pictures side by side, with white between."""
    axes = figure.add_axes(box)
    bright = torch.nn.functional.pad(pictures.float() / 255, (1, 1, 1, 1), value=1.0)
    strip = torch.cat(list(bright), 2).permute(1, 2, 0)
    if strip.shape[2] == 1:
        axes.imshow(
            strip[:, :, 0].numpy(), cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect="auto"
        )
    else:
        axes.imshow(strip.numpy(), interpolation="nearest", aspect="auto")
    axes.set_axis_off()
