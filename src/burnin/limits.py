"""Files that a stranger may have written: read within bounds that are checked before memory is taken.

What a file may become in memory is at most half of the machine's, or what BURNIN_MEMORY says in GB. Text
grows when it is parsed, by less than `GROWTH` times; a file that is larger than its share is refused unread.
"""

from __future__ import annotations

import contextlib
import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from burnin.core import BurninError, InputError

MEMORY_VARIABLE = "BURNIN_MEMORY"
GROWTH = 16
"""Bytes of memory that a byte of text may become as cells, lists and dictionaries."""
SETTINGS, LINE = 1 << 16, 2000
"""Bytes of a recipe or a config.toml, and characters of a line of it: settings are a few kB, and Python's
parser of TOML takes time and memory that grow with the square of a key's dots."""
MOST_SAID = 300
"""Characters of another error, or of a stranger's words, in an error."""
UNKNOWN_MEMORY = 16 * 10**9
"""Bytes that a machine is taken to have that does not say."""
CGROUP = Path("/sys/fs/cgroup/memory.max")


def memory_limit() -> int:
    """Bytes that one file, or one model, may take: what BURNIN_MEMORY says in GB, or half of the memory."""
    given = os.environ.get(MEMORY_VARIABLE)
    if given:
        try:
            return _bytes_of(float(given))
        except ValueError:
            raise InputError(f"{MEMORY_VARIABLE} is {given!r}; it must be a number of GB above 0") from None
    if not hasattr(os, "sysconf"):  # as on Windows
        return UNKNOWN_MEMORY // 2
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):  # no container, or one without a limit ("max")
        memory = min(memory, int(CGROUP.read_text(encoding="ascii")))
    return memory // 2


def require_room(needed: int, what: str) -> None:
    """Raises InputError when something would take more memory than it may.

    Example:
        >>> require_room(1000, "a thousand bytes")
        >>> require_room(10**18, "the table")
        Traceback (most recent call last):
        burnin.core.InputError: the table would take 1000000000 GB of memory; ...
    """
    limit = memory_limit()
    if needed > limit:
        raise InputError(
            f"{what} would take {_gigabytes(needed)} of memory; {_gigabytes(limit)} are allowed "
            f"({MEMORY_VARIABLE}=GB allows more)"
        )


def read_within(path: Path, most: int | None = None, *, growth: int = 1) -> bytes:
    """The bytes of a file.

    Arguments:
        path: the file; a device or a pipe, which may never end, is refused.
        most: bytes that it may have; by default what is allowed, over `growth`.
        growth: how many times larger it becomes in memory.

    Raises:
        InputError: when it is too large, naming it.
        OSError: when it is missing or cannot be read.
    """
    size = path.stat().st_size
    if not path.is_file():
        raise InputError(f"{path} is not a file")
    if most is not None and size > most:
        raise InputError(f"{path} has {size} bytes; wanted at most {most}")
    require_room(growth * size, f"{path}")
    with path.open("rb") as file:
        # No more than it had: a file that grows meanwhile must not either.
        return file.read(size)


def read_json(path: Path) -> Any:
    """What a JSON file holds.

    Raises:
        InputError: when it is too large, no JSON, nested too deep, or holds half of a character.
        OSError: when it is missing or cannot be read.
    """
    content = read_within(path, growth=GROWTH)
    try:
        return parse_json(content)
    except ValueError as error:
        raise InputError(f"{path} is damaged: it is no JSON that can be read ({error})") from error


def parse_json(content: bytes | str) -> Any:
    """JSON, with one error for all that can be wrong with it.

    Example:
        >>> parse_json("[" * 100_000)
        Traceback (most recent call last):
        ValueError: it is nested too deep
    """
    try:
        parsed = json.loads(content)
        marks = ("\\ud", "\\uD") if isinstance(content, str) else (b"\\ud", b"\\uD")
        if any(mark in content for mark in marks):  # type: ignore[operator]
            # Half of a pair of surrogates can be read, but never written.
            json.dumps(parsed, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except UnicodeEncodeError:
        raise ValueError("it holds half of a character (a lone surrogate)") from None
    return parsed


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file holds.

    Raises:
        InputError: when it is missing, too large, no UTF-8, no TOML or nested too deep.
    """
    try:
        text = read_within(path, SETTINGS).decode("utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text, so no TOML") from error
    return parse_toml(text, str(path))


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """TOML, `where` it was read being told when it is none."""
    longest = max(map(len, text.splitlines()), default=0)
    if longest > LINE:
        raise InputError(f"{where} has a line of {longest} characters; wanted at most {LINE}: break it")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{where} is not valid TOML: it is nested too deep") from None
    except ValueError as error:  # TOMLDecodeError is one; so is that of a number with thousands of digits
        raise InputError(f"{where} is not valid TOML: {error}") from error


@contextlib.contextmanager
def naming(where: object) -> Iterator[None]:
    """Errors within name the file or folder that was being read, where they do not yet."""
    try:
        yield
    except BurninError as error:
        if str(where) in str(error):
            raise
        raise type(error)(f"{where}: {brief(error)}") from error


def brief(error: object) -> str:
    """What an error says, cut short and in one line: a stranger's file may have made it endless.

    Example:
        >>> brief(ValueError("could not convert\\n" + "x" * 1000))[:30]
        'could not convert xxxxxxxxxxxx'
    """
    said = " ".join(str(error).split())
    return said if len(said) <= MOST_SAID else f"{said[:MOST_SAID]}…"


def _bytes_of(gigabytes: float) -> int:
    if not 0 < gigabytes < 1e9:
        raise ValueError
    return int(gigabytes * 1e9)


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.3g} GB" if size < 1e12 else f"{size // 10**9} GB"
