"""The hybrid paper's natural images (section 4.2): five schemes, Fréchet distances, outliers, long runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from torch import Tensor

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
from burnin.studies.experiment import Maker
from burnin.studies.image_figures import draw
from burnin.studies.rows import Study, train_and_judge
from burnin.studies.table import Rows, mean_and_error

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
AT_TEST = {"small": 100, "paper": 1000}
"""Steps that sample a hybrid, twice as many as train it, and twice as large (section 3)."""
SCHEMES: dict[str, list[str]] = {
    "data": ['scheme.name="data"'],
    "noise": ['scheme.name="noise"'],
    "persistent": ['scheme.name="persistent"'],
    "refresh": ['scheme.name="refresh"'],
    **{f"hybrid-{lam}": [f"scheme.lam={lam}.0"] for lam in (10, 25, 50)},
}
REPEATED = ("data", "noise", "hybrid-25")
METRICS = (
    "frechet",
    "frechet_few",
    "frechet_long",
    "frechet_data_run",
    "frechet_real",
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


def measure(model: Model, result: Assessment, dataset: str = "fashion-mnist") -> dict[str, Any]:
    """Fréchet distances of short, long and data-started chains by the set's own classifier; outliers.

    `frechet_few` is that of as many short chains as there are long ones: the distance falls with the number
    of pictures. `frechet_real` is that of as many training pictures in place of the samples.
    """
    held = model.pictures
    if held is None:
        raise InputError("the image study needs pictures")
    features = own_features(dataset, held.shape[1])
    stream = torch.Generator().manual_seed(0)
    reference = _some(full_bytes(held), REFERENCE, stream)
    known = extract(features, reference).features

    def distance(position: Tensor) -> float:
        return frechet_distance(extract(features, sampled_bytes(model, position)).features, known)

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
        "features": features.name,
        "outliers": OUTSIDE[dataset],
        "frechet": distance(result.samples.position),
        "frechet_few": distance(result.samples.position[:few]),
        "frechet_long": distance(result.long_sampled.position),
        "frechet_data_run": distance(result.data_sampled.position),
        "frechet_real": frechet_distance(extract(features, real).features, known),
        "auroc": found.auroc.value,
        "auroc_error": found.auroc.error,
        "aupr": found.aupr_outside.value,
        "fpr95": found.fpr95.value,
        "acceptance": result.evidence.acceptance,
        "sample_distance": result.sample_distance,
        "verdict": str(result.verdict.standing),
    }


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


def summary(rows: Rows) -> str:
    """Tables 1 and 2: means over seeds and their standard errors."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for name, metrics in rows.items():
        groups.setdefault(name.partition("-s")[0] if "-s" in name else name, []).append(metrics)
    shown = ("frechet", "frechet_few", "frechet_long", "frechet_data_run", "auroc", "aupr", "fpr95")
    lines = ["| scheme | seeds | " + " | ".join(shown) + " | verdict |", "|---" * (len(shown) + 3) + "|"]
    for name, made in groups.items():
        cells = [mean_and_error(made, metric) for metric in shown]
        verdicts = ", ".join(sorted({str(one["verdict"]) for one in made}))
        lines.append(f"| {name} | {len(made)} | " + " | ".join(cells) + f" | {verdicts} |")
    first = next(iter(rows.values()))
    lines += [
        "",
        f"Fréchet distances by {first['features']}; {first['frechet_real']:.3g} for real pictures. "
        f"Outliers: {first['outliers']}.",
    ]
    return "\n".join(lines) + "\n"


class ImageStudy(Study):
    """Rows that are measured by what their own data set has: a classifier, and another set of outliers."""

    def maker(self) -> Maker[Config]:
        """Trains and judges."""
        return partial(_make, self.measure)


def _make(
    measure: Callable[..., dict[str, Any]],
    out: Path,
    name: str,
    config: Config,
    report: Report,
    threads: int,
) -> dict[str, Any]:
    if config.data.name is None:
        raise InputError("the image study needs a data set with labels: set data.name")
    return train_and_judge(partial(measure, dataset=config.data.name), out, name, config, report, threads)


def _rows(size: str, schemes: Sequence[str], repeated: Sequence[str]) -> dict[str, list[str]]:
    at_test = f"sampler_at_test={{num_steps={AT_TEST[size]}, step_size=2.0}}"
    firsts = {name: SCHEMES[name] + [at_test] * name.startswith("hybrid") for name in schemes}
    return {
        **firsts,
        **{f"{name}-s{seed}": [*firsts[name], f"run.seed={seed}"] for seed in (1, 2) for name in repeated},
    }


def _study(dataset: str, size: str, schemes: Sequence[str], repeated: Sequence[str]) -> ImageStudy:
    return ImageStudy(
        name=f"images-{dataset}-{size}",
        about=f"the hybrid paper's natural-image study, {dataset}, size {size}",
        recipe=f"images-{dataset}-{size}",
        quick_recipe="images-quick",
        rows=_rows(size, schemes, repeated),
        quick_rows=REPEATED,
        metrics=METRICS,
        measure=measure,
        draw=draw,
        tabulate=summary,
    )


IMAGES = (
    _study("fashion-mnist", "small", tuple(SCHEMES), REPEATED),
    _study("cifar10", "small", REPEATED, ()),
    _study("cifar10", "paper", tuple(SCHEMES), ()),
    _study("flowers", "paper", tuple(SCHEMES), ()),
)
