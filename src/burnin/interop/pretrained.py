"""Models in a folder as Hugging Face has them: model.safetensors and config.json; reading runs no code."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from pydantic import ValidationError
from torch import Tensor

from burnin.assemble import finish_model, load_model
from burnin.assemble_data import build_energy, require_memory_for
from burnin.config import read_run_config
from burnin.core import InputError
from burnin.data import AbsentData, Encoding, Pictures, clean
from burnin.evaluation.bridge import MixtureBase
from burnin.evaluation.model import Model
from burnin.fitted import FittedTable, holds_table
from burnin.limits import brief, naming, read_json, read_within
from burnin.samplers import Engine
from burnin.settings import Config
from burnin.storage import write_atomically
from burnin.training.checkpoint import load_weights, parse_tensors

CONFIG_FILE, WEIGHTS_FILE = "config.json", "model.safetensors"
FORMAT = "burnin-pretrained-1"
ENERGY, SCALE, BASE = "energy", "scale", "base"
MIXTURE = ("log_weights", "means", "factors")
"""Of a base, in the order in which it takes them."""
NOTHING: Mapping[str, Any] = {}


def save_pretrained(
    source: str | Path | FittedTable, folder: str | Path, *, estimator: Mapping[str, Any] = NOTHING
) -> Path:
    """Writes the newest model of a run's folder, or a fitted table, as model.safetensors and config.json.

    What was learned, how chains are run and, of a table, what its columns are, its normaliser and its
    quantiles; no rows of the data, no state of the training, no path of this machine.

    Arguments:
        source: a run's folder, or a fitted table (`EnergyDensity.save_pretrained` is the face of that).
        folder: where to; new or empty.
        estimator: settings of an estimator that are kept with its table.

    Raises:
        InputError: when the folder holds something, or the source is no run.
    """
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target} already holds something; choose a folder that is new or empty")
    table: FittedTable | None = source if isinstance(source, FittedTable) else None
    if isinstance(source, str | Path) and holds_table(Path(source)):
        table = FittedTable.load(Path(source))
    if table is not None:
        model, config = table.model, table.config
    elif isinstance(source, str | Path):
        model, config = load_model(Path(source)), read_run_config(Path(source))
    else:
        raise InputError(f"{type(source).__name__} is neither a run's folder nor a fitted table")
    tensors = {f"{ENERGY}.{name}": value for name, value in model.energy.state_dict().items()}
    if model.scale is not None:
        tensors[SCALE] = model.scale
    if model.base is not None:
        tensors |= {f"{BASE}.{name}": getattr(model.base, name) for name in MIXTURE}
    payload = safetensors.torch.save(
        {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    )
    content = {
        "format": FORMAT,
        "sha256": hashlib.sha256(payload).hexdigest(),
        "columns": list(model.columns),
        "shape": _shape(model),
        "updates": model.num_updates,
        "config": _portable(config).model_dump(exclude_none=True, mode="json"),
    }
    if table is not None:
        content["table"] = table.content() | {"encoding": json.loads(table.encoding.model_dump_json())}
        content["estimator"] = dict(estimator)
    target.mkdir(parents=True, exist_ok=True)
    write_atomically(target / WEIGHTS_FILE, payload)
    write_atomically(target / CONFIG_FILE, json.dumps(content, indent=1, allow_nan=False).encode())
    return target


def from_pretrained(folder: str | Path, engine: Engine | None = None) -> Model | FittedTable:
    """The model, or the fitted table, that `save_pretrained` wrote: the same bits.

    A model comes without data: it draws samples and gives energies; to be judged it needs rows
    (`dataclasses.replace(model, data=…)`).

    Raises:
        InputError: when a file is missing, damaged, of another format, or does not fit the other.
    """
    with naming(folder):
        return _model_of(read_pretrained(folder), engine)


def _model_of(saved: Saved, engine: Engine | None) -> Model | FittedTable:
    data, base = AbsentData(saved.columns, saved.shape), _base(saved.tensors)
    require_memory_for(saved.config, data)
    mean, std = torch.zeros(data.dim), torch.ones(data.dim)
    energy = build_energy(saved.config, data, mean, std, torch.Generator(), base)
    start = f"{ENERGY}."
    weights = {k.removeprefix(start): v for k, v in saved.tensors.items() if k.startswith(start)}
    load_weights(energy, weights)
    scale = saved.tensors.get(SCALE)
    model = finish_model(saved.config, energy, data, scale, saved.updates, engine or Engine(), base)
    if saved.table is None:
        return model
    where = str(saved.folder / CONFIG_FILE)
    try:
        content = dict(saved.table)
        encoding = Encoding.model_validate(content.pop("encoding"))
        encoding.require_whole(where)
        return FittedTable.of(content, model, encoding, saved.config, where)
    except (ValidationError, KeyError, TypeError) as error:
        raise InputError(
            f"{where} is damaged: its table cannot be read ({_first(error)}); export anew"
        ) from error


@dataclass(frozen=True)
class Saved:
    """What a folder holds, checked."""

    folder: Path
    tensors: dict[str, Tensor]
    config: Config
    columns: tuple[str, ...]
    shape: tuple[int, int, int] | None
    updates: int
    table: dict[str, Any] | None
    estimator: dict[str, Any] = field(default_factory=dict)


def read_pretrained(folder: str | Path) -> Saved:
    """The two files of a folder; see `from_pretrained`."""
    path = Path(folder)
    for name in (CONFIG_FILE, WEIGHTS_FILE):
        if not (path / name).is_file():
            raise InputError(
                f"{path} holds no {name}; wanted a folder that burnin export or save_pretrained wrote, "
                f"with {CONFIG_FILE} and {WEIGHTS_FILE}"
            )
    where = path / CONFIG_FILE
    content = read_json(where)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else None
        raise InputError(
            f"{where} has the format {brief(found)}; wanted {FORMAT!r}, which burnin export writes"
        )
    payload = read_within(path / WEIGHTS_FILE)
    if hashlib.sha256(payload).hexdigest() != content.get("sha256"):
        raise InputError(
            f"{path / WEIGHTS_FILE} is damaged or of another model (not the checksum in {CONFIG_FILE}); "
            "copy both files anew"
        )
    try:
        tensors = parse_tensors(payload)
    except InputError as error:
        raise InputError(f"{path / WEIGHTS_FILE} {error}") from error
    try:
        shape = content["shape"]
        saved = Saved(
            path,
            tensors,
            Config.model_validate(content["config"]),
            tuple(map(str, content["columns"])),
            None if shape is None else (int(shape[0]), int(shape[1]), int(shape[2])),
            int(content["updates"]),
            content.get("table"),
            dict(content.get("estimator", {})),
        )
        if not isinstance(saved.table, dict | None):
            raise ValueError("its table is none")
        if saved.shape is not None and (min(saved.shape) < 1 or math.prod(saved.shape) != len(saved.columns)):
            raise ValueError(f"pictures of shape {saved.shape} have other columns")
        if not saved.columns or (SCALE in tensors and tensors[SCALE].shape != (len(saved.columns),)):
            raise ValueError("its columns do not fit the scale, or there are none")
        return saved
    except (ValidationError, KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise InputError(f"{where} is damaged ({_first(error)}); export the model anew") from error


def _base(tensors: Mapping[str, Tensor]) -> MixtureBase | None:
    """The mixture that the energy corrects, where there is one."""
    parts = [tensors[name] for part in MIXTURE if (name := f"{BASE}.{part}") in tensors]
    return MixtureBase.checked(parts, WEIGHTS_FILE) if len(parts) == len(MIXTURE) else None


def _first(error: Exception) -> str:
    return brief(error.errors()[0]["msg"] if isinstance(error, ValidationError) else repr(error))


def _portable(config: Config) -> Config:
    """The configuration without the place of its data on this machine."""
    places = {"file": config.data.file, "folder": config.data.folder}
    names = {key: Path(place).name for key, place in places.items() if place is not None}
    return config.model_copy(update={"data": config.data.model_copy(update=names)})


def _shape(model: Model) -> list[int] | None:
    pictures = clean(model.data)
    return list(pictures.shape) if isinstance(pictures, Pictures | AbsentData) and pictures.shape else None
