"""How well chains have mixed: effective sample size and R-hat, by arviz's formulas."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from burnin.core import InputError

FEWEST_DRAWS = 8


@dataclass(frozen=True)
class Mixing:
    """What several chains of one quantity say about their own convergence.

    Attributes:
        ess: effective number of independent draws in all chains together (bulk).
        rhat: rank-normalised split R-hat (Vehtari et al. 2021); 1 when chains cannot be told apart.
    """

    ess: float
    rhat: float


def rank_correlation(x: Tensor, y: Tensor) -> float:
    """Spearman's correlation of two lists of numbers; 1 where it is not defined.

    Example:
        >>> import torch
        >>> round(rank_correlation(torch.tensor([1.0, 2.0, 9.0]), torch.tensor([5.0, 6.0, 7.0])), 6)
        1.0
    """
    ranks = torch.stack([x, y]).argsort(1).argsort(1).double()
    if not bool(torch.isfinite(x).all() and torch.isfinite(y).all()) or len(x) < 2:
        return 1.0
    value: float = torch.corrcoef(ranks)[0, 1].item()
    return value


def mixing(values: Tensor) -> Mixing:
    """ESS and R-hat of one quantity followed along several chains.

    Arguments:
        values: (draws, chains), of at least 2 chains. Fewer than 8 draws, or values that are not finite,
            tell nothing: no effective draws, an R-hat of infinity. So do chains of which some never moved,
            with one draw each.

    Example:
        >>> import torch
        >>> found = mixing(torch.randn(500, 4, generator=torch.Generator().manual_seed(0)))
        >>> found.ess > 1500, found.rhat < 1.01
        (True, True)
    """
    # arviz takes over a second to import; whoever asks for no diagnostics need not wait for it.
    from arviz_stats.base.array import array_stats

    if values.dim() != 2 or values.shape[1] < 2:
        raise InputError(
            f"chain diagnostics need (draws, chains), 2 chains or more; got {tuple(values.shape)}"
        )
    if len(values) < FEWEST_DRAWS:
        return Mixing(0.0, math.inf)
    chains = values.detach().double().cpu().numpy().T
    if not np.isfinite(chains).all():
        return Mixing(0.0, math.inf)
    moved = chains.std(1) > 0
    if not moved.all():
        return Mixing(float(len(chains)), math.inf)
    found: Any = array_stats
    return Mixing(
        ess=float(found.ess(chains, chain_axis=0, draw_axis=1)),
        rhat=float(found.rhat(chains, chain_axis=0, draw_axis=1)),
    )
