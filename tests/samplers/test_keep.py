"""Positions kept in memory and on disk."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch

from burnin.core import InputError
from burnin.samplers import Engine, Langevin, RowFile, ToDisk, run


def energy(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x.square().sum(1)


def test_a_file_holds_what_memory_would(tmp_path: Path) -> None:
    sampler = Langevin(0.1, 1.0)
    state = sampler.init(energy, torch.zeros(5, 3, dtype=torch.float64))
    results = []
    path = tmp_path / "chains.npy"
    with ToDisk(path) as keep:
        for place in (None, keep):
            generator = torch.Generator().manual_seed(0)
            results.append(
                run(sampler, energy, state, num_steps=250, generator=generator, keep_every=3, keep=place)
            )
    in_memory, on_disk = results
    assert in_memory.kept is not None
    assert on_disk.kept is None
    loaded = np.load(path, mmap_mode="r")
    assert loaded.shape == (83, 5, 3)
    assert loaded.dtype == np.float64
    np.testing.assert_array_equal(loaded, in_memory.kept.numpy())


def test_an_interrupted_run_leaves_a_file_that_loads(tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    sampler = Langevin(0.1, 1.0)

    def interrupt(done: int, *_: object) -> None:
        if done == 7:
            raise KeyboardInterrupt

    def go() -> None:
        state = sampler.init(energy, torch.zeros(4, 3))
        stream = torch.Generator().manual_seed(0)
        with ToDisk(path) as keep:
            run(
                sampler,
                energy,
                state,
                num_steps=20,
                generator=stream,
                keep_every=2,
                keep=keep,
                progress=interrupt,
                progress_every=1,
            )

    with pytest.raises(KeyboardInterrupt):
        go()
    assert np.load(path).shape == (3, 4, 3)


def test_rows_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    with RowFile(path) as rows:
        rows.append(torch.ones(2, 3))
        rows.append(torch.zeros(4, 3))
    assert np.load(path).tolist() == [[1.0] * 3] * 2 + [[0.0] * 3] * 4


def test_an_empty_file_loads(tmp_path: Path) -> None:
    with RowFile(tmp_path / "none.npy"):
        pass
    assert np.load(tmp_path / "none.npy").shape == (0,)


def test_files_are_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    path.write_bytes(b"precious")
    with pytest.raises(InputError, match="exists"):
        RowFile(path)
    assert path.read_bytes() == b"precious"
    with RowFile(path, force=True) as rows:
        rows.append(torch.zeros(1, 1))
    assert np.load(path).shape == (1, 1)
    with pytest.raises(InputError, match=r"must end in \.npy"):
        RowFile(tmp_path / "rows.txt")


def test_the_header_has_room_for_any_number_of_rows(tmp_path: Path) -> None:
    """The header is written before the number of rows is known, and again afterwards, in the same place."""
    path = tmp_path / "rows.npy"
    with RowFile(path) as rows:
        for _ in range(1234):
            rows.append(torch.arange(1000.0).reshape(1000, 1))
    loaded = np.load(path, mmap_mode="r")
    assert loaded.shape == (1_234_000, 1)
    np.testing.assert_array_equal(loaded[-1000:, 0], np.arange(1000))


def test_a_long_run_on_disk_does_not_fill_memory(tmp_path: Path) -> None:
    """2,000 kept positions of 8 kB are 16 MB; what Python and numpy hold at a time stays below 1 MB."""
    sampler = Langevin(0.1, 1.0)
    state = sampler.init(energy, torch.zeros(100, 10, dtype=torch.float64))
    tracemalloc.start()
    try:
        with ToDisk(tmp_path / "chains.npy") as keep:
            run(
                sampler,
                energy,
                state,
                num_steps=2000,
                generator=torch.Generator().manual_seed(0),
                keep_every=1,
                keep=keep,
                engine=Engine("never"),
            )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert np.load(tmp_path / "chains.npy", mmap_mode="r").shape == (2000, 100, 10)
    assert peak < 1e6
