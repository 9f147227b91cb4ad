"""The densities and outlier detectors that are compared, each tuned among the same number of settings."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity, LocalOutlierFactor
from sklearn.svm import OneClassSVM

from burnin.core import InputError
from burnin.estimator import EnergyDensity
from burnin.studies.density_flow import Flow

Array = NDArray[np.float64]
VALIDATION_SHARE = 0.25
ENERGY = "energy"
DENSITIES: dict[str, str] = {
    ENERGY: "EnergyDensity",
    "kde": "KDE",
    "mixture": "Gaussian mixture",
    "flow": "flow (MAF)",
}
DETECTORS: dict[str, str] = {"forest": "isolation forest", "lof": "LOF", "svm": "one-class SVM"}
METHODS = {**DENSITIES, **DETECTORS}


class Scorer(Protocol):
    """What scikit-learn's densities and outlier detectors share."""

    def fit(self, X: Array) -> Any:  # noqa: N803
        """Learns from rows."""

    def score_samples(self, X: Array) -> Array:  # noqa: N803
        """The higher, the more usual, (n,)."""
        ...


@dataclass(frozen=True)
class Budget:
    """What a method may spend.

    Attributes:
        candidates: settings that are tried.
        updates: of EnergyDensity's network, at most.
        flow_updates: of the flow's, at most.
    """

    candidates: int
    updates: int
    flow_updates: int


@dataclass(frozen=True)
class Fitted:
    """A tuned method: scores of rows, what was chosen, processor seconds; the interval where there is one."""

    scores: Array
    chosen: str
    seconds: float
    low: float | None = None
    high: float | None = None


def settings_of(method: str) -> list[dict[str, Any]]:
    """The settings that a method is tuned among, scikit-learn's own first where they are sensible.

    Example:
        >>> {len(settings_of(method)) for method in METHODS if method != ENERGY}
        {12}
    """
    grids: Mapping[str, Callable[[], Sequence[dict[str, Any]]]] = {
        "kde": lambda: [{"bandwidth": float(h)} for h in np.geomspace(0.05, 1.5, 12)],
        "mixture": lambda: [
            {"n_components": k, "covariance_type": shape, "reg_covar": 1e-3}
            for shape, sizes in (("full", (1, 2, 3, 5, 8)), ("tied", (3, 8)), ("diag", (2, 4, 8, 16, 30)))
            for k in sizes
        ],
        "flow": lambda: [
            {"transforms": transforms, "width": width, "learning_rate": rate}
            for transforms in (1, 2, 3)
            for width in (32, 64)
            for rate in (1e-3, 5e-3)
        ],
        "forest": lambda: [
            {"max_features": share, "max_samples": rows}
            for share in (1.0, 0.5, 0.25)
            for rows in ("auto", 64, 128, 1.0)
        ],
        "lof": lambda: [
            {"n_neighbors": k, "novelty": True} for k in (20, 1, 2, 3, 5, 7, 10, 15, 30, 40, 60, 80)
        ],
        "svm": lambda: [
            {"gamma": gamma, "nu": nu}
            for nu in (0.5, 0.1)
            for gamma in ("scale", 0.003, 0.01, 0.03, 0.1, 0.3)
        ],
    }
    return list(grids[method]())


def make(method: str, setting: Mapping[str, Any], budget: Budget, seed: int) -> Scorer:
    """An unfitted method with a setting."""
    if method == "kde":
        return KernelDensity(**setting)  # type: ignore[no-any-return]
    if method == "mixture":
        return GaussianMixture(random_state=seed, **setting)  # type: ignore[no-any-return]
    if method == "flow":
        return Flow(updates=budget.flow_updates, seed=seed, **setting)
    if method == "forest":
        return IsolationForest(random_state=seed, **setting)  # type: ignore[no-any-return]
    if method == "lof":
        return LocalOutlierFactor(**setting)  # type: ignore[no-any-return]
    if method == "svm":
        return OneClassSVM(**setting)  # type: ignore[no-any-return]
    raise InputError(f"there is no method {method!r}; known: {', '.join(METHODS)}")


def fit_method(method: str, train: Array, test: Array, budget: Budget, seed: int) -> Fitted:
    """Tunes a method on a part of the training rows, fits it to all of them and scores the test rows.

    Densities are tuned by the likelihood of the held-out quarter of the training rows. Outlier detectors
    have none: they are tuned by how well they tell that quarter from rows whose columns were shuffled
    independently of each other. EnergyDensity chooses by itself, with its own part held out.
    """
    start = time.process_time()
    if method == ENERGY:
        return _energy(train, test, budget, seed, start)
    stream = np.random.default_rng([2, seed])
    order = stream.permutation(len(train))
    held = round(VALIDATION_SHARE * len(train))
    inner, validation = train[order[held:]], train[order[:held]]
    made_up = stream.permuted(inner, axis=0)[:held]
    chosen, highest = None, -np.inf
    for setting in _possible(method, len(inner), budget):
        scorer = _quietly(make(method, setting, budget, seed), inner, validation)
        usual = scorer.score_samples(validation)
        if method in DENSITIES:
            value = float(usual.mean())
        else:
            told = np.concatenate([usual, scorer.score_samples(made_up)])
            value = float(roc_auc_score(np.arange(len(told)) < held, told))
        if chosen is None or value > highest:
            highest = value
            chosen = setting if not isinstance(scorer, Flow) else {**setting, "stop_at": scorer.best_update}
    assert chosen is not None
    last = _quietly(make(method, chosen, budget, seed), train, None)
    scores = np.asarray(last.score_samples(test), dtype=np.float64)
    words = ", ".join(f"{name} {_short(value)}" for name, value in chosen.items() if name != "novelty")
    return Fitted(scores, words, time.process_time() - start)


def _energy(train: Array, test: Array, budget: Budget, seed: int, start: float) -> Fitted:
    density = EnergyDensity(max_updates=budget.updates, dequantise=False, random_state=seed).fit(train)
    scores = density.score_samples(test)
    mean = density.mean_density(test)
    words = f"{density.choice_.base}; best at update {density.n_updates_}"
    return Fitted(scores, words, time.process_time() - start, mean.low, mean.high)


def _possible(method: str, rows: int, budget: Budget) -> Iterator[dict[str, Any]]:
    """The settings within the budget, evenly from all; none that needs more rows than there are."""
    every = settings_of(method)
    picked = np.unique(np.linspace(0, len(every) - 1, min(len(every), budget.candidates)).round().astype(int))
    for index in picked:
        needed = max(every[index].get("n_components", 0), every[index].get("n_neighbors", 0))
        rows_asked = every[index].get("max_samples", 0)
        if needed < rows and not (isinstance(rows_asked, int) and rows_asked > rows):
            yield every[index]


def _quietly(scorer: Scorer, rows: Array, validation: Array | None) -> Scorer:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # EM that has not quite converged; fewer different rows than neighbours
        if isinstance(scorer, Flow):
            scorer.fit(rows, validation)
        else:
            scorer.fit(rows)
    return scorer


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
