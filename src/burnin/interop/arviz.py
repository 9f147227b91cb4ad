"""Chains as arviz has them: chain, draw and column named, energies beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from burnin.core import Energy, InputError, evaluate
from burnin.samplers import RunResult

if TYPE_CHECKING:
    from xarray import DataTree

VARIABLE, COLUMN = "x", "column"


def to_arviz(
    samples: RunResult | Tensor | NDArray[np.floating],
    *,
    energy: Energy | None = None,
    columns: Sequence[str] | None = None,
) -> DataTree:
    """Samples as an arviz tree: `posterior` holds x by chain, draw and column, `sample_stats` the energy.

    Arguments:
        samples: what `run(…, keep_every=…)` returned, or positions in the order in which chains keep them:
            (draws, chains, dim), also as `burnin sample --keep` writes them; (draws, dim) is one chain.
        energy: E, evaluated at every position, where it is wanted.
        columns: a name for each dimension; x1, x2, … by default.

    Raises:
        InputError: for samples of another shape, or when arviz-base is not installed.

    Example:
        >>> import torch
        >>> tree = to_arviz(torch.zeros(50, 4, 2), energy=lambda x: x.square().sum(1), columns=["a", "b"])
        >>> dict(tree.posterior.sizes), tree.sample_stats.energy.shape
        ({'chain': 4, 'draw': 50, 'column': 2}, (4, 50))
    """
    try:
        from arviz_base import from_dict
    except ImportError as error:
        raise InputError("to_arviz needs arviz-base: pip install 'burnin[arviz]'") from error
    x = _positions(samples)
    draws, chains, dim = x.shape
    names = [f"x{index + 1}" for index in range(dim)] if columns is None else list(columns)
    if len(names) != dim:
        raise InputError(f"{len(names)} column names for samples of {dim} dimensions")
    groups = {"posterior": {VARIABLE: x.transpose(0, 1).numpy()}}
    if energy is not None:
        with torch.no_grad():
            value = evaluate(energy, x.reshape(draws * chains, dim)).reshape(draws, chains)
        groups["sample_stats"] = {"energy": value.T.cpu().numpy()}
    return from_dict(groups, coords={COLUMN: names}, dims={VARIABLE: [COLUMN]})


def _positions(samples: RunResult | Tensor | NDArray[np.floating]) -> Tensor:
    """(draws, chains, dim)."""
    if isinstance(samples, RunResult):
        if samples.kept is None:
            raise InputError("the run kept no positions; call run with keep_every, such as keep_every=10")
        samples = samples.kept
    x = torch.as_tensor(samples).detach().cpu()
    if x.dim() == 2:
        x = x[:, None]
    if x.dim() > 3:
        x = x.flatten(2)
    if x.dim() != 3 or 0 in x.shape:
        raise InputError(
            f"samples have shape {tuple(samples.shape)}; wanted (draws, chains, dim) or (draws, dim)"
        )
    return x
