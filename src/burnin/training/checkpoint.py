"""Checkpoints: a safetensors file and a JSON state, written atomically, read without running code.

The tensors are written first under a temporary name, flushed and renamed to a name that holds part of
their checksum; the JSON, which names them, follows in the same way and is what makes the checkpoint
exist. A crash at any moment leaves either the old checkpoint or the new one, whole.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from burnin.core import CheckpointError, InputError, StorageError
from burnin.limits import brief, read_json, read_within
from burnin.ranks import ALONE, Ranks
from burnin.storage import telling, write_atomically

FORMAT = "burnin-checkpoint-1"
STATE_NAME = re.compile(r"checkpoint-[0-9]{9,18}\.json")
TENSOR_NAME = re.compile(r"checkpoint-[0-9]{9,18}-[0-9a-f]{8}\.safetensors")
LIKE_WEIGHTS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "square_avg")
"""What optimisers keep for each number of a weight."""
RATES = {"lr", "initial_lr"}


@dataclass(frozen=True)
class Snapshot:
    """Everything a run needs to go on: tensors by name, and a JSON-able rest."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]

    def clone(self) -> Snapshot:
        """A copy that later training does not change."""
        tensors = {name: value.detach().clone() for name, value in self.tensors.items()}
        return Snapshot(tensors, json.loads(json.dumps(self.state)))

    def beside(self, name: str, other: Snapshot) -> Snapshot:
        """This one with all of another under a name of its own; `held` takes it out again."""
        tensors = {f"{name}.{key}": value for key, value in other.tensors.items()}
        return Snapshot({**self.tensors, **tensors}, {**self.state, name: other.state})

    def held(self, name: str) -> Snapshot | None:
        """What `beside` put in, None if there is nothing."""
        return Snapshot(self.part(name), self.state[name]) if name in self.state else None

    def part(self, prefix: str) -> dict[str, Tensor]:
        """The tensors whose name starts with `prefix` and a dot, without it."""
        start = prefix + "."
        return {k.removeprefix(start): v for k, v in self.tensors.items() if k.startswith(start)}


def save_checkpoint(folder: Path, step: int, snapshot: Snapshot, *, keep: int = 2) -> Path:
    """Writes the checkpoint of `step` into `folder` and removes all but the newest `keep`."""
    with telling(folder):
        folder.mkdir(parents=True, exist_ok=True)
    tensors = {k: v.detach().cpu().contiguous() for k, v in snapshot.tensors.items()}
    payload = safetensors.torch.save(tensors, metadata={"format": FORMAT})
    digest = hashlib.sha256(payload).hexdigest()
    tensor_name = f"checkpoint-{step:09d}-{digest[:8]}.safetensors"
    write_atomically(folder / tensor_name, payload)
    state = {
        "format": FORMAT,
        "step": step,
        "tensors": tensor_name,
        "sha256": digest,
        "state_sha256": _state_digest(snapshot.state),
        "state": snapshot.state,
    }
    path = _json_path(folder, step)
    try:
        write_atomically(path, json.dumps(state, indent=1, allow_nan=False).encode())
    except StorageError:
        if not path.exists():  # tensors that no checkpoint names would only fill the disk further
            (folder / tensor_name).unlink(missing_ok=True)
        raise
    with telling(folder):
        for file in folder.glob("checkpoint-*.safetensors"):
            # Tensors that were written for the same step before.
            if file.stem.startswith(f"{path.stem}-") and file.name != tensor_name:
                file.unlink()
        for file in outdated(folder, keep=keep):
            file.unlink()
    return path


def outdated(folder: Path, *, keep: int = 2) -> list[Path]:
    """Checkpoints but for the newest `keep`, and tensors of those that are gone or were never finished."""
    old = [_json_path(folder, step) for step in checkpoint_steps(folder)[:-keep]]
    wanted = {path.stem for path in folder.glob("checkpoint-*.json")} - {path.stem for path in old}
    files = sorted(folder.glob("checkpoint-*.safetensors"))
    # A checkpoint's JSON goes first: it must not name tensors that are not there.
    return [*old, *(file for file in files if file.stem.rsplit("-", 1)[0] not in wanted)]


def checkpoint_steps(folder: Path) -> list[int]:
    """The steps of the checkpoints in `folder`, rising."""
    steps = []
    for path in folder.glob("checkpoint-*.json"):
        if STATE_NAME.fullmatch(path.name):
            steps.append(int(path.stem.removeprefix("checkpoint-")))
    return sorted(steps)


def forget_after(folder: Path, step: int) -> None:
    """Removes the checkpoints of later steps."""
    for later in checkpoint_steps(folder):
        if later > step:
            _json_path(folder, later).unlink()


def load_checkpoint(folder: Path, step: int | None = None) -> Snapshot:
    """Reads the checkpoint of `step`, or the newest.

    Raises:
        CheckpointError: when there is none, it is damaged, or another program wrote it.
    """
    steps = checkpoint_steps(folder)
    if not steps:
        raise CheckpointError(f"{folder} holds no checkpoint; train a model there first")
    path = _json_path(folder, steps[-1] if step is None else step)
    try:
        header = read_json(path)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged ({error}); remove it to use the one before") from error
    if not isinstance(header, Mapping) or header.get("format") != FORMAT:
        raise CheckpointError(f"{path} was not written by this version of burnin (wanted {FORMAT!r})")
    # Only a plain name counts: a foreign JSON cannot point outside its folder.
    name = header.get("tensors")
    if not isinstance(name, str) or not TENSOR_NAME.fullmatch(name):
        raise CheckpointError(f"{path} is damaged (it names no file of tensors); remove it")
    tensor_path = folder / name
    try:
        payload = read_within(tensor_path)
    except (OSError, InputError) as error:
        raise CheckpointError(f"{tensor_path} cannot be read ({error}); use another checkpoint") from error
    if hashlib.sha256(payload).hexdigest() != header.get("sha256"):
        raise CheckpointError(
            f"{tensor_path} is damaged (not the checksum of {path.name}); remove both to use the one before"
        )
    try:
        tensors = parse_tensors(payload)
    except InputError as error:
        raise CheckpointError(f"{tensor_path} {error}") from error
    state = header.get("state")
    if not isinstance(state, dict) or _state_digest(state) != header.get("state_sha256"):
        raise CheckpointError(f"{path} is damaged (its state is not what was written); remove it")
    return Snapshot(tensors, state)


def parse_tensors(payload: bytes) -> dict[str, Tensor]:
    """The tensors of a safetensors file; its head is held against its size before anything is made.

    Raises:
        InputError: when it is damaged, in words that go behind the file's name.
    """
    try:
        return safetensors.torch.load(payload)
    except (SafetensorError, KeyError, RuntimeError, ValueError, TypeError, OverflowError) as error:
        # A KeyError is a kind of numbers that this torch lacks; the others are shapes beyond its integers.
        raise InputError(f"is no safetensors file that can be read ({brief(error)})") from error


def pack_optimizer(optimizer: torch.optim.Optimizer) -> Snapshot:
    """An optimiser's state_dict, its tensors apart from its numbers."""
    state = optimizer.state_dict()
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, dict[str, Any]] = {}
    for index, entry in state["state"].items():
        for key, value in entry.items():
            if isinstance(value, Tensor):
                tensors[f"{index}.{key}"] = value
            else:
                numbers.setdefault(str(index), {})[key] = value
    return Snapshot(tensors, {"numbers": numbers, "groups": state["param_groups"]})


def unpack_optimizer(optimizer: torch.optim.Optimizer, snapshot: Snapshot, ranks: Ranks = ALONE) -> None:
    """The inverse of `pack_optimizer`; `ranks` say what a process keeps of the moments."""
    try:
        entries: dict[int, dict[str, Any]] = {int(i): dict(v) for i, v in snapshot.state["numbers"].items()}
        for name, value in snapshot.tensors.items():
            index, key = name.split(".", 1)
            entries.setdefault(int(index), {})[key] = value.clone()
        groups = [
            {k: tuple(v) if isinstance(v, list) and k != "params" else v for k, v in group.items()}
            for group in snapshot.state["groups"]
        ]
        if [_fixed(group) for group in groups] != [_fixed(g) for g in optimizer.state_dict()["param_groups"]]:
            raise ValueError("its groups have other settings")
        _require_shapes(optimizer, entries)
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        for place, entry in entries.items():
            for key in entry.keys() & set(LIKE_WEIGHTS):
                entry[key] = ranks.part(entry[key], weights[place])
        optimizer.load_state_dict({"state": entries, "param_groups": groups})
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RuntimeError) as error:
        raise CheckpointError(
            f"the checkpoint's optimiser does not fit this run's: {brief(error)}"
        ) from error


def _fixed(group: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that a run's configuration decides once; rates change on the way, but stay numbers."""
    for key in RATES & group.keys():
        if not 0 <= group[key] < math.inf:
            raise ValueError(f"{key} is {group[key]}")
    return {key: None if key in RATES else value for key, value in group.items()}


def _require_shapes(optimizer: torch.optim.Optimizer, entries: Mapping[int, Mapping[str, Any]]) -> None:
    """Raises ValueError when what is kept for a weight, number by number, has another shape."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    for index, entry in entries.items():
        for key, value in entry.items():
            if not 0 <= index < len(weights):
                raise ValueError(f"there is no weight {index}")
            wanted = weights[index].shape if key in LIKE_WEIGHTS else ()
            if (key in LIKE_WEIGHTS or key == "step") and value.shape != wanted:
                raise ValueError(f"{key} of weight {index} is {tuple(value.shape)}")
            if key == "step" and not 0 <= float(value) < 2**53:
                raise ValueError(f"step of weight {index} is {float(value):g}")


def load_weights(module: torch.nn.Module, tensors: Mapping[str, Tensor], ranks: Ranks = ALONE) -> None:
    """Loads a module's weights by name and says what does not fit; `ranks` say what a process keeps."""
    held = module.state_dict()
    try:
        module.load_state_dict({k: ranks.part(v, held[k]) if k in held else v for k, v in tensors.items()})
    except (RuntimeError, TypeError, NotImplementedError) as error:
        raise CheckpointError(f"the checkpoint's weights do not fit this energy: {brief(error)}") from error


def _state_digest(state: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def _json_path(folder: Path, step: int) -> Path:
    return folder / f"checkpoint-{step:09d}.json"
