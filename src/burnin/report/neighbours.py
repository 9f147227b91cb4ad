"""Samples with their nearest training pictures: to see whether they are copies."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from matplotlib.figure import Figure
from torch import Tensor

from burnin.evaluation.neighbours import Neighbours
from burnin.report import figures

CELL = 0.62
LABEL = 1.35


def neighbours_figure(
    samples: Tensor, training: Tensor, found: Mapping[str, Neighbours], shown: int = 8
) -> Figure:
    """The samples nearest to training pictures, and below each its neighbours, by every way of looking.

    Arguments:
        samples, training: bytes, 255 the brightest, (n, channels, height, width).
        found: for each way, by pixels say, the neighbours of the samples in the training pictures.
        shown: how many samples.
    """
    first = next(iter(found.values()))
    chosen = first.distance[:, 0].argsort(stable=True)[:shown]
    down = 1 + sum(one.index.shape[1] for one in found.values())
    figure = Figure(figsize=(LABEL + CELL * len(chosen), 0.45 + CELL * down))
    width, height = figure.get_size_inches()
    figure.text(
        LABEL / width, 1 - 0.2 / height, "the samples nearest to a training picture", fontsize=9, va="center"
    )
    top = 1 - 0.4 / height
    rows: list[tuple[str, Tensor]] = [("sample", samples[chosen])]
    for way, one in found.items():
        short = "pixels" if way == "pixels" else "features"
        for place in range(one.index.shape[1]):
            told = f"by {short}" if place == 0 else ""
            rows.append((told, training[one.index[chosen, place]]))
    for row, (told, pictures) in enumerate(rows):
        bottom = top - (row + 1) * CELL / height
        figure.text(
            (LABEL - 0.1) / width, bottom + 0.5 * CELL / height, told, fontsize=9, ha="right", va="center"
        )
        box = (LABEL / width, bottom, CELL * len(chosen) / width, CELL / height)
        _strip(figure, pictures, box, sample=row == 0)
    return figure


def _strip(figure: Figure, pictures: Tensor, box: tuple[float, float, float, float], *, sample: bool) -> None:
    """Pictures side by side; those of samples with a coloured line below."""
    axes = figure.add_axes(box)
    bright = torch.nn.functional.pad(pictures.float() / 255, (1, 1, 1, 1), value=1.0)
    strip = torch.cat(list(bright), 2).permute(1, 2, 0)
    if strip.shape[2] == 1:
        axes.imshow(
            strip[:, :, 0].numpy(), cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect="auto"
        )
    else:
        axes.imshow(strip.numpy(), interpolation="nearest", aspect="auto")
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)
    if sample:
        axes.spines["bottom"].set_visible(True)
        axes.spines["bottom"].set_color(figures.SAMPLES)
        axes.spines["bottom"].set_linewidth(2)
