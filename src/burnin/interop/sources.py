"""What the objects of this room are made of: a folder, an estimator, a fitted table, a model."""

from __future__ import annotations

from pathlib import Path

from sklearn.utils.validation import check_is_fitted

from burnin.assemble import load_model
from burnin.core import InputError
from burnin.estimator import EnergyDensity
from burnin.evaluation.model import Model
from burnin.fitted import FITTED_FILE, FittedTable
from burnin.interop.pretrained import CONFIG_FILE, from_pretrained

Source = str | Path | EnergyDensity | FittedTable | Model


def resolve(source: Source) -> Model | FittedTable:
    """The model or the fitted table that is meant.

    Raises:
        InputError: when it is something else, or a folder that holds neither a run nor an exported model.
    """
    if isinstance(source, Model | FittedTable):
        return source
    if isinstance(source, EnergyDensity):
        check_is_fitted(source)
        return source.fitted_
    if isinstance(source, str | Path):
        folder = Path(source)
        if (folder / CONFIG_FILE).is_file():
            return from_pretrained(folder)
        return FittedTable.load(folder) if (folder / FITTED_FILE).is_file() else load_model(folder)
    raise InputError(
        f"{type(source).__name__} is no folder, EnergyDensity, fitted table or model; "
        "for an energy of your own use as_model"
    )
