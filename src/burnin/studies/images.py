"""The hybrid paper's natural images (section 4.2): five schemes, Fréchet distances, outliers, long runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from filelock import FileLock
from torch import Tensor

from burnin.config import read_run_config
from burnin.core import InputError, Report
from burnin.data import Pictures, clean, make_density
from burnin.data.labels import load_labelled
from burnin.data.matching import BRIGHTEST, full_bytes, like, rescaled
from burnin.evaluation.assess import Assessment
from burnin.evaluation.classifier import CONFIG_FILE, Classifier
from burnin.evaluation.classifier_training import train_classifier
from burnin.evaluation.energy_bands import energies_of
from burnin.evaluation.features import Features, extract
from burnin.evaluation.frechet import frechet_distance
from burnin.evaluation.model import Model
from burnin.evaluation.outliers import separation
from burnin.feature_choice import features_folder
from burnin.given_data import sampled_bytes
from burnin.settings import Config
from burnin.studies.image_chains import look
from burnin.studies.image_figures import draw
from burnin.studies.rows import Study, train_and_judge
from burnin.studies.table import Rows, mean_and_error
from burnin.studies.workers import Maker

OUTSIDE: Mapping[str, str] = {
    "fashion-mnist": "mnist",
    "cifar10": "fashion-mnist",
    "flowers": "cifar10",
    "digits8": "upside down",
}
"""The set that outliers come from, for each that is learned. The paper's, SVHN, is not always to be had."""
CLASSIFIER_UPDATES = {"digits8": 100}
"""Of those that are learned sooner than by 2,000."""
REFERENCE = 5000
"""Held-out pictures that samples are compared with, and that outliers are told from, at most."""
SCHEMES: dict[str, list[str]] = {
    "data": ['scheme.name="data"'],
    "noise": ['scheme.name="noise"'],
    "persistent": ['scheme.name="persistent"'],
    "refresh": ['scheme.name="refresh"'],
    **{f"hybrid-{lam}": [f"scheme.lam={lam}.0"] for lam in (10, 25, 50)},
}
REPEATED = ("data", "noise", "hybrid-25")
ADJUSTED = ("hybrid-25",)
"""Schemes whose models are sampled with Metropolis adjustment too."""
QUICK = ("data", "noise", "refresh", "hybrid-25")
SHOWN = (
    "frechet",
    "frechet_few",
    "frechet_long",
    "frechet_data_run",
    "frechet_bank",
    "memorised",
    "auroc",
    "aupr",
    "fpr95",
    "acceptance_off",
)
"""Of the table in words."""
METRICS = (
    "frechet",
    "frechet_few",
    "frechet_long",
    "frechet_data_run",
    "frechet_bank",
    "frechet_real",
    "memorised",
    "bank_copies",
    "acceptance_off",
    "adjusted_step",
    "auroc",
    "auroc_error",
    "aupr",
    "fpr95",
    "acceptance",
    "sample_distance",
    "verdict",
    "oscillation",
    "ended",
    "seconds_training",
    "seconds",
)


@dataclass(frozen=True, eq=False)
class Ruler:
    """Fréchet distances to held-out pictures by the classifier of their set."""

    model: Model
    features: Features
    known: Tensor

    @classmethod
    def of(cls, model: Model, dataset: str) -> Ruler:
        """That of a model of the set; the classifier is trained if it is not there yet."""
        held = model.pictures
        if held is None:
            raise InputError("the image study needs pictures")
        features = own_features(dataset, held.shape[1])
        reference = _some(full_bytes(held), REFERENCE, torch.Generator().manual_seed(0))
        return cls(model, features, extract(features, reference).features)

    def distance(self, position: Tensor) -> float:
        """Of chains."""
        return self.of_bytes(sampled_bytes(self.model, position))

    def of_bytes(self, pixels: Tensor) -> float:
        """Of pictures, 255 the brightest."""
        return frechet_distance(extract(self.features, pixels).features, self.known)


def measure(model: Model, result: Assessment, run: Path, report: Report) -> dict[str, Any]:
    """All numbers of a row, given its folder."""
    dataset = data_set(run)
    ruler = Ruler.of(model, dataset)
    looked = look(model, result.samples.position, run, ruler.distance, report)
    return measure_pictures(result, dataset, ruler) | looked


def measure_pictures(result: Assessment, dataset: str, ruler: Ruler) -> dict[str, Any]:
    """Fréchet distances of short, long and data-started chains by the set's own classifier; outliers.

    `frechet_few` is that of as many short chains as there are long ones: the distance falls with the number
    of pictures. `frechet_real` is that of as many training pictures in place of the samples.
    """
    model, held = ruler.model, ruler.model.pictures
    assert held is not None
    stream = torch.Generator().manual_seed(0)
    few = len(result.long_sampled.position)
    training = clean(make_density(dataset))
    assert isinstance(training, Pictures)
    real = rescaled(like(training, held), held.levels, BRIGHTEST)
    real = _some(real, len(result.samples.position), stream)
    found = separation(
        energies_of(model, held.rows(_some(held.pixels, REFERENCE, stream), stream)).double().numpy(),
        energies_of(model, held.rows(outliers(dataset, held, stream), stream)).double().numpy(),
    )
    return {
        "features": ruler.features.name,
        "outliers": OUTSIDE[dataset],
        "frechet": ruler.distance(result.samples.position),
        "frechet_few": ruler.distance(result.samples.position[:few]),
        "frechet_long": ruler.distance(result.long_sampled.position),
        "frechet_data_run": ruler.distance(result.data_sampled.position),
        "frechet_real": ruler.of_bytes(real),
        "auroc": found.auroc.value,
        "auroc_error": found.auroc.error,
        "aupr": found.aupr_outside.value,
        "fpr95": found.fpr95.value,
        "acceptance": result.evidence.acceptance,
        "sample_distance": result.sample_distance,
        "verdict": str(result.verdict.standing),
    }


def data_set(run: Path) -> str:
    """The name of the set that a row learns."""
    name = read_run_config(run).data.name
    if name is None:
        raise InputError("the image study needs a data set with labels: set data.name")
    return name


def own_features(dataset: str, side: int) -> Features:
    """The classifier of a data set, trained and kept in features/ by the first row that needs it."""
    folder = features_folder(dataset, side)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.parent / f".{folder.name}.lock"):
        if not (folder / CONFIG_FILE).is_file():
            updates = CLASSIFIER_UPDATES.get(dataset, 2000)
            train_classifier(load_labelled(dataset, side), updates=updates).save(folder)
    return Classifier.load(folder)


def outliers(dataset: str, held: Pictures, stream: torch.Generator) -> Tensor:
    """Pictures of the other set, as a model of this one takes them: its test pictures, where it has some."""
    name = OUTSIDE[dataset]
    if name == "upside down":
        return held.pixels.flip(2)
    other = clean(make_density(name))
    assert isinstance(other, Pictures)
    return _some(like(other.held_out or other, held), REFERENCE, stream)


def _some(pixels: Tensor, n: int, stream: torch.Generator) -> Tensor:
    return pixels[torch.randperm(len(pixels), generator=stream)[:n]]


def by_scheme(rows: Rows) -> dict[str, list[Mapping[str, Any]]]:
    """The rows of each scheme, one for each seed."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for name, metrics in rows.items():
        groups.setdefault(name.partition("-s")[0], []).append(metrics)
    return groups


def summary(rows: Rows) -> str:
    """Tables 1 and 2: means over seeds and their standard errors."""
    lines = ["| scheme | seeds | " + " | ".join(SHOWN) + " | verdict |", "|---" * (len(SHOWN) + 3) + "|"]
    for name, made in by_scheme(rows).items():
        cells = [mean_and_error(made, metric) for metric in SHOWN]
        verdicts = ", ".join(sorted({str(one["verdict"]) for one in made}))
        lines.append(f"| {name} | {len(made)} | " + " | ".join(cells) + f" | {verdicts} |")
    first = next(iter(rows.values()))
    lines += [
        "",
        f"Fréchet distances by {first['features']}; {first['frechet_real']:.3g} for real pictures. "
        f"Outliers: {first['outliers']}.",
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, kw_only=True)
class ImageStudy(Study):
    """Rows that are measured by what their own data set has: a classifier, and another set of outliers.

    `measure` is also given the row's folder, `run`, and whom to tell how far it is, `report`.
    """

    measure: Callable[..., dict[str, Any]]

    def maker(self) -> Maker[Config]:
        """Trains and judges."""
        return partial(_make, self.measure)

    def judged(self, rows: Rows) -> Rows:
        """Means over seeds, as in the table; one seed that could not be measured leaves none."""
        return {name: _means(made) for name, made in by_scheme(rows).items()}


def _means(made: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    numbers = {
        name: [one[name] for one in made]
        for name in made[0]
        if all(isinstance(one.get(name), float | int | None) for one in made)
    }
    return {name: None if None in values else fmean(values) for name, values in numbers.items()}


def _make(
    measure: Callable[..., dict[str, Any]],
    out: Path,
    name: str,
    config: Config,
    report: Report,
    threads: int,
) -> dict[str, Any]:
    measured = partial(measure, run=out / name, report=report)
    return train_and_judge(measured, out, name, config, report, threads)


def _rows(schemes: Sequence[str], repeated: Sequence[str]) -> dict[str, list[str]]:
    """From noise, models whose training had no chains from there are sampled as the hybrid is."""

    def changes(name: str) -> list[str]:
        as_in_training = ["sampler_at_test={}"] if name == "noise" else []
        return SCHEMES[name] + as_in_training + ["study.adjusted_steps=0"] * (name not in ADJUSTED)

    return {
        **{name: changes(name) for name in schemes},
        **{f"{name}-s{seed}": [*changes(name), f"run.seed={seed}"] for seed in (1, 2) for name in repeated},
    }


def _study(dataset: str, size: str, schemes: Sequence[str], repeated: Sequence[str]) -> ImageStudy:
    return ImageStudy(
        name=f"images-{dataset}-{size}",
        about=f"the hybrid paper's natural-image study, {dataset}, size {size}",
        recipe=f"images-{dataset}-{size}",
        quick_recipe="images-quick",
        rows=_rows(schemes, repeated),
        quick_rows=[name for name in QUICK if name in schemes],
        metrics=METRICS,
        measure=measure,
        draw=draw,
        tabulate=summary,
    )


IMAGES = (
    _study("fashion-mnist", "small", tuple(SCHEMES), REPEATED),
    _study("cifar10", "small", REPEATED, REPEATED),
    _study("cifar10", "paper", tuple(SCHEMES), ()),
    _study("flowers", "paper", tuple(SCHEMES), ()),
)
