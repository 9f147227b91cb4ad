"""How a table's density is trained: `burnin fit`'s way beside the hybrid scheme that won on the rings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from statistics import fmean, stdev
from typing import Any, Literal

import numpy as np
import torch

from burnin.assemble import build_trainer, model_of
from burnin.choosing import Wishes, choose
from burnin.config import load_config
from burnin.core import DivergedError, Report
from burnin.data import EncodedRows, Encoding, Frame
from burnin.data.encoding import Codes
from burnin.evaluation import MixtureBase, log_normaliser
from burnin.evaluation.model import Model
from burnin.evaluation.row_density import row_log_density
from burnin.evaluation.walk import NotReachedError
from burnin.rng import Streams
from burnin.settings import Config, Count, Part, Share
from burnin.studies.density_sets import DIMS, cut, load_rows
from burnin.studies.measured import MeasuredRecipe, MeasuredStudy
from burnin.studies.table import Rows
from burnin.training import Trainer
from burnin.watching import Watch

Way = Literal["fit", "hybrid-base", "hybrid"]
WAYS: dict[Way, str] = {
    "fit": "contrast with draws of the base (`burnin fit`)",
    "hybrid-base": "hybrid chains, same base and network",
    "hybrid": "hybrid chains, one Gaussian",
}
FEWEST_DIMS = 4
"""Of the data sets."""
SPLITS = (10, 11, 12)
"""Cuts of the rows that no setting was chosen on, and that are not those of bench-density."""


class SchemePart(Part):
    """Which rows, which way, how long; hybrids are looked at, by held-out likelihood, at every stop.

    Where they start from the base there is less to learn, and an update takes longer.
    """

    data: str = "iris"
    split: int = 10
    way: Way = "fit"
    test_share: Share = 0.3
    held_share: Share = 0.15
    toy_rows: Count = 1500
    recipe: str = "demo"
    stops: tuple[Count, ...] = (250, 500, 1000, 2000)
    stops_on_base: tuple[Count, ...] = (50, 125, 250, 500)
    patience: Count = 16
    particles: Count = 256
    most_laws: Count = 300


class SchemeRecipe(MeasuredRecipe):
    """One way on one cut of a data set."""

    table: SchemePart = SchemePart()


def measure(recipe: SchemeRecipe, report: Report) -> dict[str, Any]:
    """The mean log-density of test rows, at the lower end of its interval, in the table's standard units."""
    part, seed = recipe.table, recipe.run.seed
    parts = cut(load_rows(part.data, part.toy_rows), part.split, part.test_share)
    encoding = Encoding.fit(Frame.of_numbers(parts.train), dequantise=False)
    codes = encoding.codes(Frame.of_numbers(parts.train))
    rows = EncodedRows.split(encoding, codes, share=part.held_share, seed=seed)
    config, _, base, rows = choose(rows, Wishes(max_updates=part.stops[-1]), seed)
    learner = _Learner(part, rows, seed, report)
    if part.way == "fit":
        model, low, high, best = learner.by_contrast(config, base)
    else:
        model, low, high, best = learner.by_chains(_hybrid(config, part), base)
    test = rows.encoding.codes(Frame.of_numbers(parts.test))
    return {
        "data": part.data,
        "way": part.way,
        "best_update": best,
        "loglik": _mean_density(model, high, rows.encoding, test) + parts.log_unit,
        "width": high - low,
    }


def _mean_density(model: Model, log_z: float, encoding: Encoding, codes: Codes) -> float:
    return float(np.mean(row_log_density(model.energy, model.temperature, log_z, encoding, codes)))


def _stops(part: SchemePart) -> tuple[int, ...]:
    return part.stops_on_base if part.way == "hybrid-base" else part.stops


def _hybrid(table: Config, part: SchemePart) -> Config:
    """The recipe's scheme, chains and optimiser; and its network, where the base is one Gaussian."""
    hybrid = load_config(part.recipe)
    run = table.run.model_copy(update={"updates": _stops(part)[-1]})
    kept = {"data": table.data, "run": run}
    return hybrid.model_copy(update=kept | ({"model": table.model} if part.way == "hybrid-base" else {}))


class _Learner:
    """Trains on rows, of which some are held out to choose when to end."""

    def __init__(self, part: SchemePart, rows: EncodedRows, seed: int, report: Report) -> None:
        self._part, self._rows, self._report = part, rows, report
        self._streams = Streams(seed)

    def by_contrast(self, config: Config, base: MixtureBase) -> tuple[Model, float, float, int]:
        """As `burnin fit` does: the best by a look every 25 updates; at T = 1 as the others."""
        trainer = build_trainer(config, None, self._rows, base)
        apart = self._rows.held_out
        points = (apart or self._rows).each(Streams(config.run.seed)["held-out"])
        watch = Watch(trainer, points, apart is not None, base, config, self._part.patience, None, None)
        trainer.train(config.run.updates, enough=watch.enough, on_update=self._told(config))
        watch.look(trainer.step)
        trainer.restore(watch.best)
        model, low, high = self._normalised(trainer, config, base)
        return model, low, high, trainer.step

    def by_chains(self, config: Config, base: MixtureBase) -> tuple[Model, float, float, int]:
        """The best of the stops, each normalised anew: chains may lead far from the base."""
        own = base if config.model.base else None
        trainer = build_trainer(config, None, self._rows, own)
        found: tuple[Model, float, float, int] | None = None
        highest, best = -math.inf, trainer.snapshot().clone()
        held = (self._rows.held_out or self._rows).codes
        for stop in _stops(self._part):
            try:
                trainer.train(stop, on_update=self._told(config))
                model, low, high = self._normalised(trainer, config, own)
            except (DivergedError, NotReachedError):
                break
            value = _mean_density(model, high, self._rows.encoding, held)
            if value > highest:
                highest, best, found = value, trainer.snapshot().clone(), (model, low, high, stop)
        if found is None:
            raise DivergedError(f"{self._part.way} on {self._part.data}: no stop has a density; start lower")
        trainer.restore(best)
        return model_of(trainer, config, own), *found[1:]

    def _told(self, config: Config) -> Callable[[int, Mapping[str, float]], None]:
        return lambda step, _: self._report(self._part.way, step, config.run.updates)

    def _normalised(
        self, trainer: Trainer, config: Config, base: MixtureBase | None
    ) -> tuple[Model, float, float]:
        """The model, and the ends of log Z's interval."""
        model = model_of(trainer, config, base)
        data = self._rows.sample(5000, torch.Generator().manual_seed(0))
        found = log_normaliser(
            model.energy,
            model.temperature,
            base or MixtureBase.choose(data),
            generator=self._streams["normaliser"],
            particles=self._part.particles,
            most_laws=self._part.most_laws,
        )
        return model, *found.interval


def pool(rows: Rows) -> dict[str, dict[str, Any]]:
    """Of each data set, the mean of each way over cuts, and what hybrids lack of `fit`, cut by cut.

    `all` counts the data sets on which `fit` is above the hybrid of one Gaussian, the scheme that won on the
    rings; it is called `so-far` as long as rows are missing.
    """
    pooled: dict[str, dict[str, Any]] = {}
    ahead = []
    for data in DATA:
        of_way = {way: _by_split(rows, data, way) for way in WAYS}
        if not all(of_way.values()):
            continue
        one: dict[str, Any] = {"splits": len(of_way["fit"])}
        for way, values in of_way.items():
            one[way] = fmean(values.values())
            behind = [
                of_way["fit"][split] - value for split, value in values.items() if split in of_way["fit"]
            ]
            if way != "fit" and len(behind) > 1:
                one[f"{way}_behind"] = fmean(behind)
                one[f"{way}_behind_error"] = stdev(behind) / math.sqrt(len(behind))
        ahead.append(one["fit"] >= one["hybrid"])
        pooled[data] = one
    name = "all" if all(row in rows for row in _rows()) else "so-far"
    return pooled | {name: {"sets": len(ahead), "ahead": sum(ahead)}}


def _by_split(rows: Rows, data: str, way: Way) -> dict[str, float]:
    start = f"{data}-{way}-s"
    return {name.removeprefix(start): row["loglik"] for name, row in rows.items() if name.startswith(start)}


def summary(rows: Rows) -> str:
    """The ways beside each other, the best in bold; behind: less than `fit`, ± one standard error."""
    pooled = pool(rows)
    lines = [
        "| held-out log-likelihood | " + " | ".join(WAYS.values()) + " |",
        "|---" * (len(WAYS) + 1) + "|",
    ]
    for data in DATA:
        if data not in pooled:
            continue
        one = pooled[data]
        best, cells = max(one[way] for way in WAYS), []
        for way in WAYS:
            value = f"**{one[way]:.2f}**" if one[way] == best else f"{one[way]:.2f}"
            behind, error = one.get(f"{way}_behind"), one.get(f"{way}_behind_error")
            cells.append(value + ("" if behind is None else f" (behind by {behind:.2f} ± {error:.2f})"))
        lines.append(f"| {data} ({DIMS[data]}) | " + " | ".join(cells) + " |")
    spent = {way: [row["cpu_seconds"] for row in rows.values() if row.get("way") == way] for way in WAYS}
    told = [f"{fmean(seconds):.0f}" if seconds else "" for seconds in spent.values()]
    lines.append("| processor seconds | " + " | ".join(told) + " |")
    return "\n".join(lines) + "\n"


DATA = tuple(data for data, dim in DIMS.items() if dim >= FEWEST_DIMS)


def _rows() -> dict[str, list[str]]:
    return {
        f"{data}-{way}-s{split}": [
            f'table.data="{data}"',
            f'table.way="{way}"',
            f"table.split={split}",
            f"run.seed={split}",
        ]
        for split in SPLITS
        for data in sorted(DATA, key=lambda one: one == "digits")  # which takes longest
        for way in WAYS
    }


TABLE_SCHEMES = MeasuredStudy(
    name="table-schemes",
    about="a table's density by draws of a mixture, and by the hybrid scheme with chains",
    recipe="measured/table-schemes",
    quick_recipe="measured/table-schemes-quick",
    settings=SchemeRecipe,
    rows=_rows(),
    quick_rows=tuple(f"iris-{way}-s10" for way in WAYS),
    metrics=(*WAYS, "ahead"),
    measure=measure,
    pool=pool,
    pooled=(*DATA, "all"),
    draw=None,
    tabulate=summary,
)
