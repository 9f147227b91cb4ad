"""Grids of settings: "scheme=data,noise;lam=10,25;seed=0:5" is every combination of these values."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel

from burnin.checked import nearest
from burnin.core import InputError
from burnin.settings import Config

SEED = "run.seed"
MOST = 10_000
"""Rows of a grid."""
LONGEST = 120
"""Characters of a row's name: it is that of a file."""
RANGE = re.compile(r"(-?\d+):(-?\d+)(?::(\d+))?")
NOT_CHAINS = "objective"
"""The section whose numbers are used without chains only; `scheme` is used with chains only."""


@dataclass(frozen=True)
class Axis:
    """A key and the values that it takes.

    Attributes:
        key: as in a recipe, such as scheme.name.
        short: as it was given.
        values: as after --set key=.
    """

    key: str
    short: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """A row of a grid: its name, that of the group whose seeds are averaged, its changes of the recipe."""

    name: str
    group: str
    changes: tuple[str, ...]


def parse_grid(text: str, config: Config) -> list[Axis]:
    """The axes of a grid, for a recipe whose settings are `config`.

    A key may be its last part, where only one has it, and a section's name stands for its own `name`. Values
    are separated by commas; 0:5 are the whole numbers 0 to 4, and 0:10:2 every second.

    Raises:
        InputError: for an unknown or ambiguous key, a key without values, a key or a value given twice.

    Example:
        >>> from burnin.config import load_config
        >>> for axis in parse_grid("scheme=data,noise; lam=10,25; seed=0:3", load_config("rings")):
        ...     print(axis.key, *axis.values)
        scheme.name data noise
        scheme.lam 10 25
        run.seed 0 1 2
    """
    axes: list[Axis] = []
    for part in filter(None, (part.strip() for part in split_outside(text, ";"))):
        given, equals, values = (side.strip() for side in part.partition("="))
        if not equals or not given or not values:
            raise InputError(f"--grid: {part!r} is not of the form key=value,value, such as seed=0:5")
        axis = Axis(full_key(given, config), given, tuple(_values(values, given)))
        if any(axis.key == other.key for other in axes):
            raise InputError(f"--grid: {axis.key} is there twice; give all its values behind one =")
        axes.append(axis)
    if not axes:
        raise InputError('--grid is empty; give keys and values, such as "scheme=data,noise;seed=0:5"')
    return axes


def full_key(given: str, config: Config) -> str:
    """The key that a name stands for."""
    keys = _keys(Config)
    if given in keys or ("." in given and given.split(".")[0] in _free_sections()):
        return given
    if f"{given}.name" in keys:
        return f"{given}.name"
    found = [key for key in keys if key.split(".")[-1] == given]
    if len(found) > 1:  # of sections that this recipe does not use, none is meant
        unused = "scheme" if config.without_chains else NOT_CHAINS
        found = [key for key in found if key.split(".")[0] != unused]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"--grid: {given!r} may be {' or '.join(found)}; say which")
    known = [*keys, *{key.split(".")[-1] for key in keys}]
    raise InputError(f"--grid: unknown key {given!r}{nearest(given, known)}")


def cells(axes: Sequence[Axis]) -> list[Cell]:
    """Every combination of the axes' values, the first axis slowest.

    Raises:
        InputError: when there are too many.
    """
    count = 1
    for axis in axes:
        count *= len(axis.values)
    if count > MOST:
        raise InputError(f"--grid has {count} rows; at most {MOST} are made: leave out some values")
    made: dict[str, Cell] = {}
    for number, values in enumerate(itertools.product(*(axis.values for axis in axes))):
        chosen = list(zip(axes, values, strict=True))
        name = _name(chosen, number)
        if name.lower() in made:  # values that differ only in what a file's name cannot hold
            name = f"{name},{number}"
        group = ", ".join(f"{axis.short}={value}" for axis, value in chosen if axis.key != SEED)
        changes = tuple(f"{axis.key}={value}" for axis, value in chosen)
        made[name.lower()] = Cell(name, group or "all", changes)
    return list(made.values())


def split_outside(text: str, mark: str) -> list[str]:
    """Parts of a text between marks that stand in no brackets and no quotes.

    Example:
        >>> split_outside("1,[2,3],{a=4,b=5}", ",")
        ['1', '[2,3]', '{a=4,b=5}']
    """
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        else:
            depth += (letter in "[{(") - (letter in "]})")
        if letter == mark and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _values(text: str, key: str) -> list[str]:
    values: list[str] = []
    for part in (part.strip() for part in split_outside(text, ",")):
        found = RANGE.fullmatch(part)
        if not part:
            raise InputError(f"--grid: {key} has an empty value between its commas")
        if found is None:
            values.append(part)
            continue
        first, end, step = int(found[1]), int(found[2]), int(found[3] or 1)
        if step < 1 or end <= first:
            raise InputError(f"--grid: {key}={part} holds nothing; 0:5 are the numbers 0 to 4")
        if end - first > MOST * step:
            raise InputError(f"--grid: {key}={part} are too many values; at most {MOST}")
        values += [str(value) for value in range(first, end, step)]
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        raise InputError(f"--grid: {key} has the value {twice[0]} twice; leave one out")
    return values


def _name(chosen: Sequence[tuple[Axis, str]], number: int) -> str:
    words = [f"{axis.short.split('.')[-1]}={value}" for axis, value in chosen]
    if len({axis.short.split(".")[-1] for axis, _ in chosen}) < len(chosen):
        words = [f"{axis.short}={value}" for axis, value in chosen]
    name = re.sub(r"[^\w.,=+-]", "_", ",".join(words), flags=re.ASCII)
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 8]},{number}"


def _keys(kind: type[BaseModel], above: str = "") -> list[str]:
    """All keys of a configuration, with dots, but for what a recipe says of itself."""
    keys: list[str] = []
    for name, field in kind.model_fields.items():
        section = _section(field.annotation)
        if section is not None:
            keys += _keys(section, f"{above}{name}.")
        elif above:
            keys.append(f"{above}{name}")
    return keys


def _section(annotation: Any) -> type[BaseModel] | None:
    """The section that a key holds, None for a value."""
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None


def _free_sections() -> list[str]:
    """Sections whose keys are those of another, as sampler_from_noise."""
    return [name for name, field in Config.model_fields.items() if field.annotation == dict[str, Any]]


def by_group(found: Sequence[Cell], rows: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The rows of each group, in the grid's order."""
    groups: dict[str, list[Any]] = {}
    for cell in found:
        groups.setdefault(cell.group, []).append(rows[cell.name])
    return groups
