"""What the objects of this room are made of: a folder, an estimator, a fitted table, a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from sklearn.utils.validation import check_is_fitted

from burnin.assemble import load_model
from burnin.config import read_run_config
from burnin.core import InputError
from burnin.data import Encoding
from burnin.estimator import EnergyDensity
from burnin.evaluation.model import Model
from burnin.fitted import FittedTable, holds_table
from burnin.interop.pretrained import CONFIG_FILE, from_pretrained, read_pretrained
from burnin.ranks import ALONE, Ranks
from burnin.samplers import Engine
from burnin.settings import Config

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
        if is_exported(folder):
            return from_pretrained(folder)
        return FittedTable.load(folder) if holds_table(folder) else load_model(folder)
    raise InputError(
        f"{type(source).__name__} is no folder, EnergyDensity, fitted table or model; "
        "for an energy of your own use as_model"
    )


def is_exported(folder: Path) -> bool:
    """Whether it looks like a folder that `save_pretrained` wrote; a run's folder has no such file."""
    return (folder / CONFIG_FILE).is_file()


def load_table(folder: Path) -> FittedTable:
    """The density of a table in a run's folder or an exported one.

    Raises:
        InputError: when it holds none.
    """
    if not is_exported(folder):
        return FittedTable.load(folder)
    found = from_pretrained(folder)
    if not isinstance(found, FittedTable):
        raise InputError(f"{folder} holds a model of no table; export one that burnin fit made")
    return found


@dataclass(frozen=True)
class Opened:
    """A folder's model, its configuration, and what the columns are where it is of a table."""

    model: Model
    config: Config
    encoding: Encoding | None


def open_folder(folder: Path, engine: Callable[[Config], Engine], ranks: Ranks = ALONE) -> Opened:
    """What a run's folder or an exported one holds.

    Arguments:
        folder: the folder.
        engine: how a configuration's chains are computed.
        ranks: the processes that share the model's chains from noise.
    """
    opened = _open_alone(folder, engine)
    return replace(opened, model=replace(opened.model, ranks=ranks))


def _open_alone(folder: Path, engine: Callable[[Config], Engine]) -> Opened:
    if not is_exported(folder):
        config = read_run_config(folder)
        model = load_model(folder, engine(config))
        return Opened(model, config, None if model.rows is None else model.rows.encoding)
    config = read_pretrained(folder).config
    found = from_pretrained(folder, engine(config))
    if isinstance(found, FittedTable):
        return Opened(found.model, config, found.encoding)
    return Opened(found, config, None)
