"""The features that a user names: his own classifier, pixels, Inception, or any network in a file."""

from __future__ import annotations

from pathlib import Path

from burnin.core import InputError
from burnin.data import Pictures, clean, make_density
from burnin.data.named_pictures import data_folder
from burnin.evaluation.classifier import CONFIG_FILE, Classifier
from burnin.evaluation.features import (
    INCEPTION_PLACE,
    Features,
    Inception,
    ModuleFeatures,
    Pixels,
    load_script,
)
from burnin.settings import Config

OWN_FOLDER = Path("features")


def open_features(given: str, config: Config) -> Features:
    """The features that a user names.

    Arguments:
        given: "own" for the classifier of the run's data set in features/; "pixels"; "inception" for the file
            below BURNIN_DATA; a folder that `burnin features train` wrote; a TorchScript file, which is taken
            for Inception when its name says so, and else for a network that takes pictures from 0 to 1.
        config: the run's.

    Raises:
        InputError: when there is none, saying how to make or where to put it.
    """
    if given == "pixels":
        return Pixels()
    if given == "own":
        return _own(config)
    path = data_folder() / INCEPTION_PLACE if given == "inception" else Path(given)
    if path.is_dir() or path.name == CONFIG_FILE:
        return Classifier.load(path if path.is_dir() else path.parent)
    if "inception" in path.name.lower():
        return Inception.load(path)
    return ModuleFeatures(load_script(path), path.name)


def features_folder(dataset: str, side: int) -> Path:
    """Where a classifier of a data set is, unless somebody says otherwise."""
    return OWN_FOLDER / f"{dataset}-{side}"


def _own(config: Config) -> Features:
    name = config.data.name
    if name is None:
        raise InputError(
            "the run's pictures have no labels for a classifier of its own; give --features pixels, "
            "inception, a TorchScript file or a folder of burnin features train"
        )
    pictures = clean(make_density(name))
    assert isinstance(pictures, Pictures)
    side = config.data.side or pictures.shape[1]
    folder = features_folder(name, side)
    if not (folder / CONFIG_FILE).is_file():
        raise InputError(
            f"there is no classifier in {folder}; make it with: burnin features train --dataset {name} "
            f"--side {side}, or give --features pixels, inception or a file"
        )
    return Classifier.load(folder)
