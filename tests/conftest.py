"""Compiled code and data go to folders of the tests: no test depends on what a machine has cached."""

from __future__ import annotations

import os

# One thread for each process, as pytest runs one a core: more would wait for each other. Before torch loads.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.data.files import some_bytes, write_idx


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.getbasetemp().parent / "cache"  # the workers of one session share it
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield


@pytest.fixture
def small_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data sets of pictures that are read from files, with few pictures in them."""
    monkeypatch.setenv("BURNIN_DATA", str(tmp_path / "data"))
    for folder in ("mnist", "fashion-mnist"):
        for part in ("train", "t10k"):
            write_idx(tmp_path / "data" / folder / f"{part}-images-idx3-ubyte", some_bytes(5, 28, 28))
