"""Files that are there whole or not at all, and what a program that was killed on the way has left."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from burnin.core import StorageError

FULL = {errno.ENOSPC, errno.EDQUOT}
CLOSED = {errno.EROFS, errno.EACCES, errno.EPERM}


def write_atomically(path: Path, payload: bytes) -> None:
    """A file that is there whole or not at all: written under another name, flushed and renamed.

    Raises:
        StorageError: when it cannot be written; then the file is as it was, and nothing else is left.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    with telling(path):
        try:
            with temporary.open("wb") as file:
                file.write(payload)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            with suppress(OSError):  # the first error is the one to tell
                temporary.unlink(missing_ok=True)
            raise
        _flush_folder(path.parent)


def write_text_atomically(path: Path, text: str) -> None:
    """The same of text, in UTF-8."""
    write_atomically(path, text.encode())


@contextmanager
def telling(path: Path) -> Iterator[None]:
    """An OSError within becomes a StorageError that names the file and says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            advice = "make room and start it again; what was saved before is whole"
        elif error.errno in CLOSED:
            advice = "allow writing there, or choose another place"
        else:
            advice = "what was saved before is whole"
        raise StorageError(f"{path} cannot be written ({error.strerror or error}); {advice}") from error


def unfinished(folder: Path) -> list[Path]:
    """Files that a program was killed in the middle of writing."""
    return sorted(path for path in folder.glob(".*.tmp") if path.is_file())


def _flush_folder(folder: Path) -> None:
    """Makes a new name last even if the power fails, where a folder can be flushed."""
    if not hasattr(os, "O_DIRECTORY"):  # as on Windows
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems cannot
            raise
    finally:
        os.close(descriptor)
