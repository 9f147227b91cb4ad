"""Ways to train a table's density: one unit for all, and how cuts are put together."""

from __future__ import annotations

import pytest

from burnin.studies.table import check_expectations
from burnin.studies.table_schemes import TABLE_SCHEMES, WAYS, SchemePart, SchemeRecipe, measure, pool, summary

# The mean log-density of iris' flowers, in standard units, under one Gaussian of them all is about -2.9.
GAUSSIAN = -2.9


@pytest.mark.parametrize("way", ["fit", "hybrid-base"])
def test_hardly_trained_it_is_the_base(way: str) -> None:
    part = SchemePart(way=way, stops=(2,), stops_on_base=(2,), particles=32)
    row = measure(SchemeRecipe(title="small", table=part), lambda *_: None)
    assert row["best_update"] <= 2
    # 45 test rows, whose log-densities scatter by about 2 nats.
    assert GAUSSIAN - 4 * 2 / 45**0.5 < row["loglik"] < GAUSSIAN + 4 * 2 / 45**0.5
    assert 0 <= row["width"] < 0.5


def test_every_way_has_the_same_cuts_and_the_small_variant_is_among_them() -> None:
    names = list(TABLE_SCHEMES.rows)
    assert len(names) == 3 * 8 * 3
    assert set(TABLE_SCHEMES.quick_rows) <= set(names)


def test_cuts_are_averaged_and_compared_one_by_one() -> None:
    rows = {
        "iris-fit-s10": {"loglik": -2.0},
        "iris-fit-s11": {"loglik": -4.0},
        "iris-hybrid-base-s10": {"loglik": -2.5},
        "iris-hybrid-base-s11": {"loglik": -4.3},
        "iris-hybrid-s10": {"loglik": -1.0},
        "iris-hybrid-s11": {"loglik": -3.0},
        "wine-fit-s10": {"loglik": -9.0},
    }
    pooled = pool(rows)
    assert pooled["iris"]["fit"] == pytest.approx(-3.0)
    assert pooled["iris"]["hybrid-base_behind"] == pytest.approx(0.4)
    assert pooled["iris"]["hybrid-base_behind_error"] == pytest.approx(0.1)  # of 0.5 and 0.3
    assert "wine" not in pooled, "only `fit` was run there"
    assert pooled["so-far"] == {"sets": 1, "ahead": 0}
    assert "| processor seconds |  |  |  |" in summary(rows)
    assert (
        "| iris (4) | -3.00 | -3.40 (behind by 0.40 ± 0.10) | **-2.00** (behind by -1.00 ± 0.00) |"
        in summary(rows)
    )


def test_the_small_variant_is_as_expected() -> None:
    recipe = TABLE_SCHEMES.quick_recipe
    assert recipe is not None
    rows = {}
    for name in TABLE_SCHEMES.quick_rows:
        settings = TABLE_SCHEMES.load(recipe, TABLE_SCHEMES.rows[name])
        rows[name] = measure(settings, lambda *_: None) | {"cpu_seconds": 1.0}
    checks = check_expectations(settings.expected, pool(rows))
    assert len(checks) == 2
    missed = [check.text for check in checks if not check.holds]
    assert not missed, missed
    assert all(f" {words} |" in summary(rows) for words in WAYS.values())
