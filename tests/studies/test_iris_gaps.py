"""Iris with gaps: what is measured, and how splits are put together."""

from __future__ import annotations

import math

import pytest

from burnin.studies.iris_gaps import GapsPart, GapsRecipe, measure, pool, summary


def test_a_split_is_measured_in_the_columns_own_units() -> None:
    recipe = GapsRecipe(title="small", gaps=GapsPart(rows=20, draws=4, max_updates=2))
    seen: list[str] = []
    row = measure(recipe, lambda what, *_: seen.append(what))
    assert seen == ["fit", "chains"]
    # A quarter of 80 numbers and of 20 species: within 4 standard errors of a binomial.
    assert abs(row["cells"] - 20) < 4 * math.sqrt(80 * 0.25 * 0.75)
    assert 0 <= row["words"] < 5 + 4 * math.sqrt(20 * 0.25 * 0.75)
    # Standardised columns: the mean of the column is off by about 1; hardly trained, the model is near the
    # Gaussian, and far better than that.
    assert 0.6 < row["column_mean"] < 1.4
    assert row["mean"] < 0.8 * row["column_mean"]
    assert row["draw"] > row["mean"]
    assert 0 <= row["within"] <= 1


def test_splits_are_averaged_with_their_standard_errors() -> None:
    ways = {"cells": 10, "words": 2, "gaussian": 0.6, "draw": 0.7, "right_words": 1.0, "within": 0.8}
    rows = {
        "seed0": {**ways, "mean": 0.4, "column_mean": 1.0},
        "seed1": {**ways, "mean": 0.5, "column_mean": 1.3},
    }
    one = pool(rows)["all"]
    assert one["mean"] == pytest.approx(0.45)
    assert one["gain_column_mean"] == pytest.approx(0.7)
    assert one["error_column_mean"] == pytest.approx(0.1)  # of 0.6 and 0.8
    assert one["surely"] == pytest.approx(7.0)
    assert "| the column's mean | 1.15 | 0.70 ± 0.10 |" in summary(rows)
