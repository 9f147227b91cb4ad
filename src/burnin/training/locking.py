"""One writer for a folder, by a lock of the operating system: it ends with its process, however that ends."""

from __future__ import annotations

from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from burnin.core import InputError
from burnin.storage import telling

LOCK_FILE = ".lock"
PATIENCE = 3.0
"""Seconds that a folder is waited for: processes whose parent was killed need a moment to end."""


def hold(folder: Path) -> BaseFileLock:
    """Takes a folder, which must be there, until the lock is released or forgotten, or the process ends.

    The same thread of a process may take it again.

    Raises:
        InputError: when another process has it.
        StorageError: when nothing can be written there.
    """
    lock = FileLock(folder / LOCK_FILE, is_singleton=True)
    with telling(folder):
        try:
            lock.acquire(timeout=PATIENCE)
        except Timeout as error:
            raise InputError(
                f"{folder} is in use by another process of burnin; wait until that ends, "
                "or choose another --out"
            ) from error
    return lock
