"""Settings from tables: an unknown key is an error that names the nearest known one."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from burnin.core import InputError
from burnin.limits import brief

Section = TypeVar("Section", bound=BaseModel)
Data = TypeVar("Data")
BRANCHES = ("constrained-", "list[")
"""How pydantic names what a value may be one of, in the place of a wrong one."""
NAMED, NAME = 10, 100
"""Errors that are told at once, and characters of a name or a value in them."""


def validated(kind: type[Section], table: Mapping[str, Any], where: str) -> Section:
    """The table as settings of this kind.

    Raises:
        InputError: naming every key that is unknown, missing or wrong.
    """
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        found = list(_explain(kind, error))
        more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
        raise InputError(f"{where}: {'; '.join(found[:NAMED])}{more}") from error


def validated_data(kind: type[Data], table: object, where: str) -> Data:
    """A dataclass from what a JSON file holds, its types checked.

    Raises:
        InputError: naming the first key that is unknown, missing or wrong.
    """
    try:
        return TypeAdapter(kind).validate_python(table)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(str(part) for part in problem["loc"]) or kind.__name__
        raise InputError(f"{where} is damaged: {key[:NAME]}: {brief(problem['msg'])}") from error


def _explain(kind: type[BaseModel], error: ValidationError) -> Iterator[str]:
    for problem in error.errors():
        path = [str(part) for part in problem["loc"] if not str(part).startswith(BRANCHES)]
        key = ".".join(path)[:NAME]
        if problem["type"] == "extra_forbidden":
            yield f"unknown key {key!r}{nearest(path[-1], _known_keys(kind, path[:-1]))}"
        elif problem["type"] == "missing":
            yield f"{key} is missing"
        elif not path:  # of the whole, not of one key: the message says which
            yield problem["msg"].removeprefix("Value error, ")
        else:
            yield f"{key} = {_short(problem['input'])}: {brief(problem['msg'])}"


def _short(value: object) -> str:
    """What was given, cut short: a stranger's value may fill the screen."""
    shown = repr(value)
    return shown if len(shown) <= NAME else f"{shown[:NAME]}…"


def _known_keys(kind: type[BaseModel], path: Sequence[str]) -> list[str]:
    for part in path:
        field = kind.model_fields.get(part)
        inner = field.annotation if field is not None else None
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            kind = inner
    return list(kind.model_fields)


def nearest(name: str, known: Sequence[str]) -> str:
    """A hint at the nearest known name, to put behind an error, or nothing.

    Example:
        >>> nearest("lerning_rate", ["learning_rate", "decay"])
        "; did you mean 'learning_rate'?"
    """
    close = difflib.get_close_matches(name[:NAME], known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
