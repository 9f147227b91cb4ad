"""EnergyDensity beside other densities and outlier detectors, on scikit-learn's tables and on toys."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from burnin.core import Report
from burnin.settings import Count, Part, Share
from burnin.studies.density_methods import DENSITIES, ENERGY, METHODS, Budget, fit_method
from burnin.studies.density_sets import CLASSES, DIMS, cut, load_rows
from burnin.studies.measured import MeasuredRecipe, MeasuredStudy
from burnin.studies.table import Rows

SPLITS = 5
FEWEST_DIMS = 4
"""Of the densities that count in `above_both`."""


class CasePart(Part):
    """Which data, cut by which seed; with a class of outliers, or all classes and their density."""

    data: str = "iris"
    split: int = 0
    outlier: int | None = None
    test_share: Share = 0.3
    toy_rows: Count = 1500


class BudgetPart(Part):
    """See `Budget`."""

    candidates: Count = 12
    updates: Count = 2000
    flow_updates: Count = 300


class DensityRecipe(MeasuredRecipe):
    """A case and what every method may spend on it."""

    case: CasePart = CasePart()
    budget: BudgetPart = BudgetPart()


def measure(recipe: DensityRecipe, report: Report) -> dict[str, Any]:
    """Every method on the same rows: the mean log-density of those held out, or the AUROC of the outliers.

    EnergyDensity's log-density is the lower end of its interval; `energy_width` is the interval's.
    """
    case, budget = recipe.case, Budget(**recipe.budget.model_dump())
    parts = cut(load_rows(case.data, case.toy_rows), case.split, case.test_share, case.outlier)
    found: dict[str, Any] = {
        "data": case.data,
        "dim": parts.train.shape[1],
        "train_rows": len(parts.train),
        "test_rows": len(parts.test),
    }
    methods = METHODS if case.outlier is not None else DENSITIES
    for index, method in enumerate(methods):
        report(METHODS[method], index, len(methods))
        fitted = fit_method(method, parts.train, parts.test, budget, recipe.run.seed)
        found |= {f"{method}_chosen": fitted.chosen, f"{method}_seconds": fitted.seconds}
        if case.outlier is not None:
            found[f"{method}_auroc"] = float(roc_auc_score(~parts.outlier, fitted.scores))
            continue
        mean = float(fitted.scores.mean()) if fitted.low is None else fitted.low
        found[f"{method}_loglik"] = mean + parts.log_unit
        if fitted.low is not None and fitted.high is not None:
            found[f"{method}_width"] = fitted.high - fitted.low
    if parts.truth is not None:
        found["truth"] = parts.truth
    return found


def pool(rows: Rows) -> dict[str, dict[str, Any]]:
    """Means over splits with standard errors, and what is claimed.

    - `loglik-DATA`: each density's mean, its error, `_behind` (the mean and error, split by split, of what it
      lacks of EnergyDensity's).
    - `auroc-DATA`: each method's mean over classes and splits, and its error over them.
    - `ranks`: the mean rank of each method over outlier classes, 1 being best; `gap`: EnergyDensity's less
      that of the best other; `gap_error`: its standard error over the classes; `gap_in_errors`.
    - `densities`: how many of those in at least four dimensions there are, and in how many EnergyDensity's
      mean is above those of both KDE and mixture.

    As long as rows of their kind are missing, the last two are called `ranks-so-far` and `densities-so-far`,
    of which nothing is expected.
    """
    pooled: dict[str, dict[str, Any]] = {}
    for data in DIMS:
        of_density = [row for name, row in rows.items() if name.startswith(f"loglik-{data}-s")]
        if of_density:
            pooled[f"loglik-{data}"] = _pooled_density(of_density)
        of_outliers = [row for name, row in rows.items() if name.startswith(f"auroc-{data}-c")]
        if of_outliers:
            pooled[f"auroc-{data}"] = {"rows": len(of_outliers)}
            for method in METHODS:
                mean, error = _mean_error([row[f"{method}_auroc"] for row in of_outliers])
                pooled[f"auroc-{data}"] |= {method: mean, f"{method}_error": error}
    if any(name.startswith("auroc-") for name in rows):
        pooled[_called("ranks", "auroc-", rows)] = _pooled_ranks(rows)
    counted = [
        pooled[f"loglik-{d}"] for d, dim in DIMS.items() if dim >= FEWEST_DIMS and f"loglik-{d}" in pooled
    ]
    if counted:
        above = sum(all(one[ENERGY] > one[other] for other in ("kde", "mixture")) for one in counted)
        pooled[_called("densities", "loglik-", rows)] = {"number": len(counted), "above_both": above}
    return pooled


def _called(name: str, kind: str, rows: Rows) -> str:
    """The name of what is claimed of all rows of a kind."""
    return name if all(row in rows for row in _rows() if row.startswith(kind)) else f"{name}-so-far"


def _pooled_density(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    pooled: dict[str, Any] = {"rows": len(rows)}
    for method in DENSITIES:
        pooled[method], pooled[f"{method}_error"] = _mean_error([row[f"{method}_loglik"] for row in rows])
        if method != ENERGY:
            behind = [row[f"{ENERGY}_loglik"] - row[f"{method}_loglik"] for row in rows]
            pooled[f"{method}_behind"], pooled[f"{method}_behind_error"] = _mean_error(behind)
    pooled["width"] = fmean(row[f"{ENERGY}_width"] for row in rows)
    truths = [row["truth"] for row in rows if row.get("truth") is not None]
    return pooled | ({"truth": fmean(truths)} if truths else {})


def _pooled_ranks(rows: Rows) -> dict[str, Any]:
    of_class: dict[str, list[Any]] = {}
    for name, row in rows.items():
        if name.startswith("auroc-"):
            ranks = rankdata([-row[f"{method}_auroc"] for method in METHODS])
            of_class.setdefault(name.rpartition("-s")[0], []).append(ranks)
    ranks = np.array([np.mean(several, axis=0) for several in of_class.values()])
    by_method = dict(zip(METHODS, ranks.T, strict=True))
    pooled: dict[str, Any] = {"classes": len(ranks), "rows": sum(map(len, of_class.values()))}
    for method, own in by_method.items():
        pooled[method], pooled[f"{method}_error"] = _mean_error(own.tolist())
    best = min((method for method in METHODS if method != ENERGY), key=lambda method: pooled[method])
    gap, error = _mean_error((by_method[ENERGY] - by_method[best]).tolist())
    in_errors = gap / error if error else None
    return pooled | {"best_other": best, "gap": gap, "gap_error": error, "gap_in_errors": in_errors}


def _mean_error(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean and its standard error; one value has none."""
    return fmean(values), stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None


def summary(rows: Rows) -> str:
    """Log-likelihoods, AUROCs, ranks and seconds, a table each; the best of a line in bold."""
    pooled = pool(rows)
    lines: list[str] = []
    densities = {d: pooled[f"loglik-{d}"] for d in DIMS if f"loglik-{d}" in pooled}
    if densities:
        head = [*DENSITIES.values(), "interval", "truth", "splits"]
        lines += ["| log-likelihood | " + " | ".join(head) + " |", "|---" * (len(head) + 1) + "|"]
        for data, one in densities.items():
            truth = f"{one['truth']:.2f}" if "truth" in one else ""
            cells = [*_cells(one, DENSITIES, 2), f"{one['width']:.2f}", truth, str(one["rows"])]
            lines.append(f"| {data} ({DIMS[data]}) | " + " | ".join(cells) + " |")
        lines.append("")
    outliers = {d: pooled[f"auroc-{d}"] for d in DIMS if f"auroc-{d}" in pooled}
    if outliers:
        head = [*METHODS.values(), "fits"]
        lines += ["| AUROC | " + " | ".join(head) + " |", "|---" * (len(head) + 1) + "|"]
        for data, one in outliers.items():
            lines.append(f"| {data} | " + " | ".join([*_cells(one, METHODS, 3), str(one["rows"])]) + " |")
        ranks = pooled[_called("ranks", "auroc-", rows)]
        cells = [*_cells(ranks, METHODS, 2, lowest=True), str(ranks["rows"])]
        lines += [f"| mean rank of {ranks['classes']} classes | " + " | ".join(cells) + " |", ""]
    shown = METHODS if outliers else DENSITIES
    cells = [
        f"{fmean(row[f'{m}_seconds'] for row in rows.values() if f'{m}_seconds' in row):.1f}" for m in shown
    ]
    lines += ["| | " + " | ".join(shown.values()) + " |", "|---" * (len(shown) + 1) + "|"]
    lines += ["| processor seconds for a fit, tuning included | " + " | ".join(cells) + " |", ""]
    return "\n".join(lines)


def _cells(
    numbers: Mapping[str, Any], methods: Mapping[str, str], digits: int, *, lowest: bool = False
) -> list[str]:
    pick = min if lowest else max
    best = pick(numbers[method] for method in methods)
    errors = {m: numbers[f"{m}_error"] for m in methods}
    told = {m: "" if error is None else f" ± {error:.{digits}f}" for m, error in errors.items()}
    cells = [f"{numbers[m]:.{digits}f}{told[m]}" for m in methods]
    return [f"**{c}**" if numbers[m] == best else c for m, c in zip(methods, cells, strict=True)]


def _rows() -> dict[str, list[str]]:
    """For every split the density of every data set, then every class of outliers: digits last."""
    order = sorted(DIMS, key=lambda data: data == "digits")
    rows: dict[str, list[str]] = {}
    for split in range(SPLITS):
        for data in order:
            rows[f"loglik-{data}-s{split}"] = [f'case.data="{data}"', f"case.split={split}"]
        for data, number in CLASSES.items():
            for outlier in range(number):
                changes = [f'case.data="{data}"', f"case.split={split}", f"case.outlier={outlier}"]
                rows[f"auroc-{data}-c{outlier}-s{split}"] = changes
    return {name: [*changes, f"run.seed={changes[1].split('=')[1]}"] for name, changes in rows.items()}


BENCH_DENSITY = MeasuredStudy(
    name="bench-density",
    about="EnergyDensity, KDE, mixtures, a flow and outlier detectors on scikit-learn's tables and on toys",
    recipe="measured/bench-density",
    quick_recipe="measured/bench-density-quick",
    settings=DensityRecipe,
    rows=_rows(),
    quick_rows=("loglik-iris-s0", "auroc-iris-c0-s0"),
    metrics=(ENERGY, "gap_in_errors", "above_both"),
    measure=measure,
    pool=pool,
    pooled=(*(f"{kind}-{data}" for kind in ("loglik", "auroc") for data in DIMS), "ranks", "densities"),
    draw=None,
    tabulate=summary,
)
