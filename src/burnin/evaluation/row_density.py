"""The log-density of a table's rows under a model of their coordinates."""

from __future__ import annotations

import copy
import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from burnin.core import evaluate
from burnin.data import Encoding
from burnin.data.encoding import Codes

NOISE_POINTS = 64
"""Points of the noise that a row's probability is averaged over, the same for every row."""
CHUNK = 2**15


def row_log_density(
    energy: nn.Module, temperature: float, log_z: float, encoding: Encoding, codes: Codes
) -> NDArray[np.float64]:
    """log p of each row in the table's own units, (n,); -inf for a word that was never seen.

    A row with steps or words stands for a cell of coordinates. Its probability is the density's integral
    over the cell, by importance sampling from the encoding's noise q at points u₁ … u_M of a Sobol sequence:

        p(row) = mean over m of p(f(row, u_m)) / q(u_m), where f lies in the cell.

    A column of numbers with a step counts with its density, probability over step; one of words with its
    probability. The points are the same for every row and call, so the order of rows does not matter.

    Arguments:
        energy: E of the whitened coordinates.
        temperature: T.
        log_z: log ∫ exp(-E/T) over them.
        encoding: what the columns are.
        codes: the rows.
    """
    exact = copy.deepcopy(energy).double().eval()
    width = encoding.num_noisy
    points = 1 if width == 0 else NOISE_POINTS
    if width:
        sobol = torch.quasirandom.SobolEngine(width, scramble=True, seed=0)  # type: ignore[no-untyped-call]
        uniform = sobol.draw(points, dtype=torch.float64).clamp(1e-9, 1 - 1e-9)
        log_q = encoding.log_noise(uniform)
    else:
        uniform, log_q = torch.zeros(1, 0, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    mean, matrix = encoding.affine
    found = []
    for part in np.array_split(codes, max(1, math.ceil(len(codes) * points / CHUNK))):
        repeated = np.repeat(part, points, axis=0)
        features = encoding.features(repeated, uniform.repeat(len(part), 1))
        with torch.no_grad():
            log_p = -evaluate(exact, (features - mean) @ matrix) / temperature
        log_p = log_p.masked_fill(~encoding.in_cells(repeated, features), -math.inf)
        each = log_p.reshape(len(part), points) - log_q
        found.append(each.logsumexp(1) - math.log(points))
    return (torch.cat(found) - log_z + encoding.log_volume).numpy()
