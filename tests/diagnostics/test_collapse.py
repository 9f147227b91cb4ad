"""A d that runs away is noticed, with its beginning; one that scatters or turns back is told apart."""

from __future__ import annotations

import json

import numpy as np
import pytest

from burnin.diagnostics.collapse import BLOCK, FALLS, CollapseDetector, count_updates, find_collapses
from burnin.diagnostics.correlation import Values
from tests.diagnostics.series import auto_regressive, white


def collapses(d: Values) -> list[tuple[int, int, int | None]]:
    return [(c.began, c.noticed, c.ended) for c in find_collapses(range(1, len(d) + 1), d)]


def test_expansions_and_contractions_are_counted() -> None:
    found = count_updates(np.array([-1.0, -2.0, 3.0, 0.0]))
    assert (found.expansions, found.contractions, found.num_updates) == (2, 1, 4)
    assert (found.expansion_share, found.contraction_share) == (0.5, 0.25)
    assert count_updates(np.array([])).expansion_share == 0


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_a_run_away_is_noticed_with_its_beginning(noise: float) -> None:
    """Steady for 1,000 updates, then -exp(t/150), with a spread that grows along."""
    steady = white(1000, 0)
    fall = -np.exp(np.arange(1, 1501) / 150) * (1 + noise * white(1500, 1))
    found = collapses(np.concatenate([steady, fall]))
    assert len(found) == 1
    began, noticed, ended = found[0]
    # The steady part may end in lower and lower blocks by chance; the fall itself begins at 1,001.
    assert 1000 - FALLS * BLOCK < began <= 1000 + 3 * BLOCK
    assert began + FALLS * BLOCK - 1 <= noticed <= 1000 + 2 * FALLS * BLOCK
    assert ended is None


@pytest.mark.parametrize("seed", range(50))
def test_scatter_is_no_collapse(seed: int) -> None:
    n = 5000
    assert collapses(white(n, seed)) == []
    assert collapses(white(n, seed) - 3) == []
    assert collapses(auto_regressive(0.9, n, seed) - 1) == []
    assert collapses(np.random.default_rng(seed).standard_cauchy(n) - 1) == []  # odd batches


def test_neither_rising_nor_slow_falls_are_a_collapse() -> None:
    t = np.arange(1, 3001)
    assert collapses(np.exp(t / 150)) == []
    assert collapses(-np.exp(-t / 500)) == []  # negative, on its way to 0
    assert collapses(-10 - 0.001 * t + 0.1 * white(3000, 0)) == []  # sinks, but does not grow twofold
    assert collapses(-t[:450].astype(float)) == []  # too short to be certain


def test_a_collapse_that_turns_back_has_ended() -> None:
    t = np.arange(1, 801)
    d = np.concatenate([-np.exp(t / 100), np.zeros(400), -np.exp(t / 100)])
    (began, noticed, ended), (again, _, open_end) = collapses(d)
    assert (began, noticed, ended) == (1, 500, 801)
    assert again == 1201
    assert open_end is None


def test_its_state_goes_through_json() -> None:
    d = np.concatenate([-np.exp(np.arange(800) / 100), np.zeros(200)]).tolist()
    whole = CollapseDetector()
    expected = [whole.add(update, value) for update, value in enumerate(d, 1)]
    assert sum(found is not None for found in expected) == 2
    for cut in (0, 37, 499, 500, 650, 930):
        first, second = CollapseDetector(), CollapseDetector()
        before = [first.add(update, value) for update, value in enumerate(d[:cut], 1)]
        second.restore(json.loads(json.dumps(first.state())))
        after = [second.add(update, value) for update, value in enumerate(d[cut:], cut + 1)]
        assert before + after == expected
        assert second.state() == whole.state()
