"""Chains as arviz has them."""

from __future__ import annotations

import builtins
from typing import Any

import arviz_stats
import numpy as np
import pytest
import torch

from burnin import MALA, run
from burnin.core import InputError
from burnin.diagnostics import mixing
from burnin.interop import to_arviz


def energy(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x.square().sum(1)


def test_chains_and_draws_are_named_and_in_their_places() -> None:
    sampler, stream = MALA(0.5, 1.0), torch.Generator().manual_seed(0)
    state = sampler.init(energy, torch.randn(4, 3, generator=stream))
    result = run(sampler, energy, state, num_steps=200, generator=stream, keep_every=2)
    tree = to_arviz(result, energy=energy, columns=["a", "b", "c"])
    assert dict(tree.posterior.sizes) == {"chain": 4, "draw": 100, "column": 3}
    assert result.kept is not None
    # The third chain's seventh draw, by name.
    assert tree.posterior.x.sel(chain=2, draw=6, column="b").item() == result.kept[6, 2, 1].item()
    assert tree.sample_stats.energy.sel(chain=2, draw=6).item() == pytest.approx(
        energy(result.kept[6, 2:3]).item()
    )
    # arviz reads the tree, and its effective sample size is the one that burnin tells.
    stats: Any = arviz_stats
    by_arviz = stats.ess(tree, group="sample_stats").energy.item()
    assert by_arviz == pytest.approx(mixing(energy(result.kept.flatten(0, 1)).reshape(100, 4)).ess, rel=1e-6)


def test_rows_are_one_chain_and_pictures_are_flat() -> None:
    assert dict(to_arviz(torch.zeros(7, 2)).posterior.sizes) == {"chain": 1, "draw": 7, "column": 2}
    assert list(to_arviz(np.zeros((5, 2, 1, 2, 2))).posterior.column.values) == ["x1", "x2", "x3", "x4"]


def test_what_cannot_be_converted_says_what_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = MALA(0.5, 1.0)
    bare = run(
        sampler, energy, sampler.init(energy, torch.zeros(2, 1)), num_steps=1, generator=torch.Generator()
    )
    with pytest.raises(InputError, match="keep_every"):
        to_arviz(bare)
    with pytest.raises(InputError, match="2 column names for samples of 3"):
        to_arviz(torch.zeros(5, 2, 3), columns=["a", "b"])
    with pytest.raises(InputError, match=r"shape \(5,\); wanted \(draws, chains, dim\)"):
        to_arviz(torch.zeros(5))
    plain = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "arviz_base":
            raise ImportError(name)
        return plain(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"burnin\[arviz\]"):
        to_arviz(torch.zeros(5, 2))
