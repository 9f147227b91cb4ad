"""Compiled code and data go to folders of the tests, which have no network: none depends on the machine."""

from __future__ import annotations

import os
import signal

# One thread for each process, as pytest runs one a core: more would wait for each other. Before torch loads.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A shell that starts the tests in the background has them ignore Ctrl-C, which some of them press.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.data.files import write_every_set


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.getbasetemp().parent / "cache"  # the workers of one session share it
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        patch.setenv("BURNIN_OFFLINE", "1")
        yield


@pytest.fixture
def small_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data sets of pictures that are read from files, with few pictures in them."""
    monkeypatch.setenv("BURNIN_DATA", str(tmp_path / "data"))
    write_every_set(tmp_path / "data")
