"""Pickles of arrays of bytes, lists, strings and numbers, read without being run.

A pickle is a program: Python's own reader calls what it names, and can be made to fill the memory by a few
bytes. Here its instructions are read one by one, and those that such a file needs are done by hand.
"""

from __future__ import annotations

import pickletools
from dataclasses import dataclass
from typing import Any

import numpy as np

from burnin.core import InputError

ARRAY_MODULES = ("numpy.core.multiarray", "numpy._core.multiarray")
CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
VALUES = {
    *("BININT", "BININT1", "BININT2", "INT", "LONG1"),
    *("SHORT_BINSTRING", "BINSTRING", "STRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE"),
    *("BINBYTES", "SHORT_BINBYTES"),
}
TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
NOTHING = ("PROTO", "FRAME", "STOP")


@dataclass(frozen=True)
class _Name:
    """What a pickle names; it is never imported."""

    module: str
    name: str


class _ByteType:
    """numpy's kind of bytes; what a pickle sets of it changes nothing."""


class _Array:
    """An array that is to get its content."""

    value: np.ndarray[Any, Any] | None = None


def read_pickle(content: bytes) -> Any:
    """The lists, dictionaries, strings, numbers and arrays of bytes in a pickle; Python 2's strings are text.

    Raises:
        InputError: when it asks for anything else.
        ValueError, IndexError, TypeError, KeyError: when it is damaged.

    Example:
        >>> import pickle
        >>> read_pickle(pickle.dumps({"a": [1, 2]}))
        {'a': [1, 2]}
    """
    machine = _Machine()
    for instruction, argument, _ in pickletools.genops(content):
        machine.do(instruction.name, argument)
    (result,) = machine.stack
    return machine.finished(result)


class _Machine:
    """The stack of a pickle, its marks and its memory."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memory: dict[int, Any] = {}

    def do(self, name: str, argument: Any) -> None:
        """One instruction."""
        if name in VALUES:
            self.stack.append(argument)
        elif name in CONSTANTS:
            self.stack.append(CONSTANTS[name])
        elif name in TUPLES:
            self.stack.append(tuple(self._last(TUPLES[name])))
        elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
            self.memory[int(argument)] = self.stack[-1]
        elif name == "MEMOIZE":
            self.memory[len(self.memory)] = self.stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            self.stack.append(self.memory[int(argument)])
        elif name not in NOTHING:
            self._build(name, argument)

    def _build(self, name: str, argument: Any) -> None:
        if name == "MARK":
            self.marks.append(len(self.stack))
        elif name == "EMPTY_LIST":
            self.stack.append([])
        elif name == "EMPTY_DICT":
            self.stack.append({})
        elif name in ("TUPLE", "LIST", "DICT"):
            items = self._marked()
            self.stack.append(tuple(items) if name == "TUPLE" else items if name == "LIST" else _pairs(items))
        elif name in ("APPEND", "APPENDS"):
            items = self._last(1) if name == "APPEND" else self._marked()
            _of(list, self.stack[-1]).extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = self._last(2) if name == "SETITEM" else self._marked()
            _of(dict, self.stack[-1]).update(_pairs(items))
        elif name == "GLOBAL":
            self.stack.append(_Name(*argument.split(" ", 1)))
        elif name == "STACK_GLOBAL":
            self.stack.append(_Name(*map(str, self._last(2))))
        elif name == "REDUCE":
            self.stack.append(_called(*self._last(2)))
        elif name == "BUILD":
            (state,) = self._last(1)
            _set_state(self.stack[-1], state)
        else:
            raise InputError(
                f"has the instruction {name}, which a file of pictures has no use for: it was not run"
            )

    def finished(self, value: Any) -> Any:
        """A result with its arrays in place, one level deep: deeper there are none."""
        if isinstance(value, dict):
            return {key: one.value if isinstance(one, _Array) else one for key, one in value.items()}
        return value

    def _last(self, count: int) -> list[Any]:
        if count > len(self.stack) - (self.marks[-1] if self.marks else 0):
            raise ValueError("the stack is empty")
        items = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return items

    def _marked(self) -> list[Any]:
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items


def _pairs(items: list[Any]) -> dict[str, Any]:
    """Keys are text: other ones can take for ever to be compared."""
    keys = items[::2]
    if len(items) % 2 or not all(isinstance(key, str) for key in keys):
        raise ValueError("keys are no strings")
    return dict(zip(keys, items[1::2], strict=True))


def _of(kind: type[Any], value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"no {kind.__name__}")
    return value


def _called(what: Any, arguments: Any) -> _Array | _ByteType:
    """The two calls that an array is made by."""
    if isinstance(what, _Name) and what.module in ARRAY_MODULES and what.name == "_reconstruct":
        if arguments[0] != _Name("numpy", "ndarray"):
            raise InputError("asks for an array of an unknown class: it was not made")
        return _Array()
    if what == _Name("numpy", "dtype"):
        if arguments[0] not in ("u1", "uint8"):
            raise InputError(f"holds an array of {str(arguments[0])[:30]!r}; wanted one of bytes")
        return _ByteType()
    asked = f"{what.module}.{what.name}"[:80] if isinstance(what, _Name) else "a call"
    raise InputError(f"asks for {asked}, which a file of pictures has no use for: it was not run")


def _set_state(value: Any, state: Any) -> None:
    if isinstance(value, _ByteType):
        return
    if not isinstance(value, _Array):
        raise InputError("sets the state of what is no array: it was not done")
    _, shape, kind, columns_first, content = _of(tuple, state)
    if not isinstance(kind, _ByteType) or not all(isinstance(size, int) for size in _of(tuple, shape)):
        raise TypeError("no array of bytes")
    octets = content.encode("latin1") if isinstance(content, str) else _of(bytes, content)
    flat = np.frombuffer(octets, dtype=np.uint8)
    value.value = flat.reshape(shape, order="F" if columns_first else "C").copy()
