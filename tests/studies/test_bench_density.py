"""bench-density: rows that have a density, one unit, equal budgets, ranks; its small variant as expected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from burnin.core import InputError
from burnin.studies import STUDIES
from burnin.studies.bench_density import BENCH_DENSITY, measure, pool, summary
from burnin.studies.density_methods import DENSITIES, METHODS, Budget, fit_method
from burnin.studies.density_sets import DIMS, cut, dequantised, load_rows
from burnin.studies.table import check_expectations

SMALL = Budget(candidates=2, updates=10, flow_updates=5)


def test_every_column_has_many_values_and_none_is_constant() -> None:
    for name in ("digits", "diabetes"):
        x = load_rows(name, 0).x
        assert x.shape[1] == DIMS[name]
        assert x.std(0).min() >= 0.9 / np.sqrt(12), "a constant column is spread over one step"
    sex = load_rows("diabetes", 0).x[:, 1]
    assert set(np.round(sex)) == {1.0, 2.0}
    whole = dequantised(np.arange(10.0)[:, None], np.random.default_rng(0))
    np.testing.assert_array_equal(np.round(whole[:, 0]), np.arange(10))


def test_the_unit_does_not_depend_on_the_cut() -> None:
    """The log-density of one law, N(table's mean, table's sd²), comes out the same whatever the split."""
    rows = load_rows("wine", 0)
    mean, sd = rows.x.mean(0), rows.x.std(0)
    for split in range(2):
        parts = cut(rows, split, 0.3)
        train_sd = sd * np.exp(-(np.log(sd) - _log_train_sd(rows.x, parts.train, split)))
        z = rows.x[_test_rows(rows.x, split)]
        standardised = stats.norm.logpdf(z, mean, sd).sum(1).mean() + np.log(train_sd).sum()
        in_unit = standardised + parts.log_unit
        assert in_unit == pytest.approx(stats.norm.logpdf((z - mean) / sd).sum(1).mean())


def _test_rows(x: Any, split: int) -> Any:
    order = np.random.default_rng([1, split]).permutation(np.arange(len(x)))
    return order[: round(0.3 * len(x))]


def _log_train_sd(x: Any, train: Any, split: int) -> Any:
    order = np.random.default_rng([1, split]).permutation(np.arange(len(x)))
    kept = x[order[round(0.3 * len(x)) :]]
    np.testing.assert_allclose((kept - kept.mean(0)) / kept.std(0), train)
    return np.log(kept.std(0))


def test_outliers_are_never_learned_from() -> None:
    rows = load_rows("iris", 0)
    parts = cut(rows, 0, 0.3, outlier=1)
    assert len(parts.train) == 70
    assert (int(parts.outlier.sum()), len(parts.test)) == (50, 80)
    with pytest.raises(InputError, match="no class 7"):
        cut(rows, 0, 0.3, outlier=7)
    with pytest.raises(InputError, match="no data set"):
        load_rows("irises", 0)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "energy"])
def test_every_method_scores_usual_rows_higher(method: str) -> None:
    stream = np.random.default_rng(0)
    train = stream.normal(size=(80, 2))
    test = np.concatenate([stream.normal(size=(20, 2)), stream.normal(6, 1, size=(20, 2))])
    fitted = fit_method(method, train, test, SMALL, seed=0)
    assert fitted.scores[:20].mean() > fitted.scores[20:].mean()
    assert fitted.chosen
    if method in DENSITIES and method != "flow":
        assert fitted.scores[:20].mean() == pytest.approx(-2.84, abs=1.0)


def row(kind: str, **best: float) -> dict[str, Any]:
    methods = DENSITIES if kind == "loglik" else METHODS
    numbers = {f"{m}_{kind}": best.get(m, 0.5) for m in methods}
    return {**numbers, **{f"{m}_seconds": 1.0 for m in methods}, "energy_width": 0.1}


def test_pooling_ranks_and_counts() -> None:
    rows = {
        "loglik-iris-s0": row("loglik", energy=2.0, kde=1.0),
        "loglik-iris-s1": row("loglik", energy=3.0, kde=4.0),
        "loglik-wine-s0": row("loglik", mixture=9.0),
        "loglik-checkerboard-s0": row("loglik", energy=9.0),
        "auroc-iris-c0-s0": row("auroc", energy=0.9, lof=0.8),
        "auroc-iris-c1-s0": row("auroc", energy=0.7, lof=0.8),
        "auroc-wine-c0-s0": row("auroc", energy=0.8, lof=0.7),
    }
    pooled = pool(rows)
    assert pooled["loglik-iris"]["energy"] == 2.5
    assert pooled["loglik-iris"]["kde_behind"] == 0.0
    # iris: 2.5 is not above KDE's 2.5; wine: below the mixture; the checkerboard has too few dimensions.
    assert pooled["densities-so-far"] == {"number": 2, "above_both": 0}
    ranks = pooled["ranks-so-far"]
    assert (ranks["classes"], ranks["best_other"]) == (3, "lof")
    assert ranks["energy"] == pytest.approx(4 / 3)
    assert ranks["gap"] == pytest.approx(4 / 3 - 5 / 3)
    assert ranks["gap_in_errors"] == pytest.approx(-0.5)
    assert "| wine (13) | 0.50 | 0.50 | **9.00** |" in summary(rows)


def test_what_is_claimed_waits_for_all_rows() -> None:
    outliers = {name: row("auroc", energy=0.9) for name in BENCH_DENSITY.rows if name.startswith("auroc-")}
    densities = {name: row("loglik", energy=0.9) for name in BENCH_DENSITY.rows if name.startswith("loglik-")}
    pooled = pool(outliers | densities)
    assert pooled["densities"] == {"number": 8, "above_both": 8}
    assert pooled["ranks"]["energy"] == 1.0
    assert pooled["ranks"]["gap_in_errors"] is None, "all classes alike: no scatter to measure it in"
    last = next(reversed(outliers))
    assert "ranks" not in pool({name: one for name, one in outliers.items() if name != last})


def test_all_cases_are_rows() -> None:
    names = list(BENCH_DENSITY.rows)
    assert STUDIES["bench-density"] is BENCH_DENSITY
    assert sum(name.startswith("loglik-") for name in names) == 5 * 10
    assert sum(name.startswith("auroc-") for name in names) == 5 * 18


def test_the_small_variant_is_as_expected() -> None:
    recipe = BENCH_DENSITY.quick_recipe
    assert recipe is not None
    rows = {}
    for name in BENCH_DENSITY.quick_rows:
        settings = BENCH_DENSITY.load(recipe, BENCH_DENSITY.rows[name])
        rows[name] = measure(settings, lambda *_: None)
    checks = check_expectations(settings.expected, pool(rows))
    assert len(checks) == 2
    missed = [check.text for check in checks if not check.holds]
    assert not missed, missed
    assert all(f" {words} |" in summary(rows) for words in METHODS.values())
