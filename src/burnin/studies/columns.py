"""Columns of a toy study's figure: the truth, and each row's density beside where its chains end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch

from burnin.data import make_known_density
from burnin.evaluation.assess import plane_of
from burnin.report import figures
from burnin.report.toys import Column
from burnin.rng import Streams


def toy_columns(out: Path, data: str, rows: Mapping[str, str], chains: str) -> list[Column]:
    """Reads the rows' densities and samples.

    Arguments:
        out: the study's folder.
        data: name of the known density that they were trained on.
        rows: title of each column, and the row it shows.
        chains: title of the columns of chains.
    """
    density = make_known_density(data)
    fresh = density.sample(20_000, Streams(0)["figure"])
    columns: list[Column] = []
    for title, row in rows.items():
        tensors = safetensors.torch.load_file(out / f"{row}.safetensors")
        grid = plane_of(density, fresh, math.isqrt(len(tensors["log_density"])))
        assert grid is not None
        if not columns:
            columns.append(Column("data", grid, grid.log_truth(density)))
        columns.append(Column(title, grid, tensors["log_density"].double()))
        ends = figures.kernel_density(tensors["samples"], grid).clamp(min=1e-12).log()
        columns.append(Column(chains, grid, ends))
    return columns
