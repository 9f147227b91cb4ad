"""Pictures: files in the official layout that the tests write themselves, and what is made of them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import torch
from torch import Tensor

from burnin.core import InputError
from burnin.data import NoisyDensity, Pictures, digits8, held_out, load_pictures, make_density
from burnin.data.idx import read_idx
from tests.data.files import some_bytes, write_idx


@pytest.fixture
def mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Tensor, Tensor]:
    """A small MNIST in its folder, the training pictures packed, the others not."""
    training, test = some_bytes(7, 28, 28), some_bytes(3, 28, 28, seed=1)
    write_idx(tmp_path / "mnist" / "train-images-idx3-ubyte.gz", training, packed=True)
    write_idx(tmp_path / "mnist" / "t10k-images-idx3-ubyte", test)
    monkeypatch.setenv("BURNIN_DATA", str(tmp_path))
    return training, test


def test_read_as_written(mnist: tuple[Tensor, Tensor]) -> None:
    pictures = make_density("mnist")
    assert isinstance(pictures, Pictures)
    assert pictures.held_out is not None
    assert torch.equal(pictures.pixels[:, 0], mnist[0])
    assert torch.equal(pictures.held_out.pixels[:, 0], mnist[1])
    assert (pictures.shape, pictures.dim, len(pictures)) == ((1, 28, 28), 784, 7)
    assert len(pictures.columns) == 784
    assert pictures.columns[28] == "pixel2_1"


def test_draws_are_the_pictures_in_the_range(mnist: tuple[Tensor, Tensor]) -> None:
    pictures = load_pictures("mnist")
    drawn = pictures.sample(50, torch.Generator().manual_seed(0))
    assert drawn.min() >= -1
    assert drawn.max() <= 1
    back = (pictures.brightness(drawn) * 255).round().to(torch.uint8)
    known = {bytes(picture.flatten().tolist()) for picture in mnist[0]}
    assert {bytes(picture.flatten().tolist()) for picture in back} == known


def test_what_is_held_out_keeps_the_noise(mnist: tuple[Tensor, Tensor]) -> None:
    judged = held_out(NoisyDensity(load_pictures("mnist"), 0.1))
    assert isinstance(judged, NoisyDensity)
    assert judged.noise == 0.1
    assert isinstance(judged.inner, Pictures)
    assert torch.equal(judged.inner.pixels[:, 0], mnist[1])


def test_data_without_a_held_out_part_is_judged_on_itself() -> None:
    digits = digits8()
    assert held_out(digits) is digits


def test_a_smaller_picture_holds_the_means_of_areas(mnist: tuple[Tensor, Tensor]) -> None:
    small = load_pictures("mnist").resized(14)
    areas = mnist[0].double().reshape(7, 14, 2, 14, 2).mean((2, 4))
    assert (small.pixels[:, 0].double() - areas).abs().max() <= 0.5
    assert small.held_out is not None
    assert small.held_out.shape == (1, 14, 14)


def test_a_missing_file_is_named_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURNIN_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"holds no train-images-idx3-ubyte .*put it there.*BURNIN_DATA"):
        make_density("mnist")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an IDX file"),
        (b"PK\3\4", "not an IDX file"),
        (bytes([0, 0, 13, 1, 0, 0, 0, 1, 0, 0, 0, 0]), "type 13"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 5, 1, 2]), "announces 5 numbers, 2 follow"),
        (bytes([0, 0, 8, 3, 0, 0]), "damaged"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "pictures-idx3-ubyte"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_idx(path)


def test_a_damaged_packed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pictures.gz"
    path.write_bytes(gzip.compress(bytes(100))[:20])
    with pytest.raises(InputError, match="cannot be read"):
        read_idx(path)


@pytest.mark.parametrize("side", [0, 9])
def test_a_size_that_cannot_be_made_is_refused(side: int) -> None:
    with pytest.raises(InputError, match="cannot be made"):
        digits8().resized(side)
