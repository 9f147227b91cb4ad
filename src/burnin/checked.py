"""Settings from tables: an unknown key is an error that names the nearest known one."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from burnin.core import InputError

Section = TypeVar("Section", bound=BaseModel)


def validated(kind: type[Section], table: Mapping[str, Any], where: str) -> Section:
    """The table as settings of this kind.

    Raises:
        InputError: naming every key that is unknown, missing or wrong.
    """
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        raise InputError(f"{where}: {'; '.join(_explain(kind, error))}") from error


def _explain(kind: type[BaseModel], error: ValidationError) -> Iterator[str]:
    for problem in error.errors():
        path = [str(part) for part in problem["loc"]]
        key = ".".join(path)
        if problem["type"] == "extra_forbidden":
            yield f"unknown key {key!r}{nearest(path[-1], _known_keys(kind, path[:-1]))}"
        elif problem["type"] == "missing":
            yield f"{key} is missing"
        elif not path:  # of the whole, not of one key: the message says which
            yield problem["msg"].removeprefix("Value error, ")
        else:
            yield f"{key} = {problem['input']!r}: {problem['msg']}"


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
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
