"""Pictures: files in the official layout that the tests write themselves, and what is made of them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

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
    with pytest.raises(
        InputError, match=r"put train-images-idx3-ubyte.gz into .*/mnist \(from https.*BURNIN_DATA"
    ):
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
    path.write_bytes(gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 200, *range(200)]))[:40])
    with pytest.raises(InputError, match="cannot be read"):
        read_idx(path)


@pytest.mark.parametrize("side", [0, 9])
def test_a_size_that_cannot_be_made_is_refused(side: int) -> None:
    with pytest.raises(InputError, match="cannot be made"):
        digits8().resized(side)


def colourful(n: int = 6, **settings: Any) -> Pictures:
    return Pictures(some_bytes(n, 3, 5, 4), **settings)


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (0.0, 1.0), (-3.0, 0.5)])
def test_bytes_come_back_from_the_range(low: float, high: float) -> None:
    every = torch.arange(256, dtype=torch.uint8).reshape(2, 2, 8, 8)
    pictures = Pictures(every).in_range(low, high)
    x = pictures.rows(every)
    assert (float(x.min()), float(x.max())) == pytest.approx((low, high))
    assert torch.equal(pictures.bytes(x), every)
    assert pictures.bytes(x + 100 * (high - low)).eq(255).all()
    assert pictures.bytes(x - 100 * (high - low)).eq(0).all()


def test_bytes_of_few_levels_come_back() -> None:
    digits = digits8()
    assert torch.equal(digits.bytes(digits.rows(digits.pixels)), digits.pixels)


def test_bytes_come_back_from_logits() -> None:
    pixels = some_bytes(40, 3, 32, 32)
    pictures = Pictures(pixels).in_logits()
    generator = torch.Generator().manual_seed(0)
    back = pictures.bytes(pictures.rows(pixels, generator)).int()
    assert (back - pixels).abs().max() <= 1
    assert (back != pixels).float().mean() < 2e-4, "as rare as the docstring says"
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(pictures.bytes(pictures.rows(pixels, generator)), pixels)
    finally:
        torch.set_default_dtype(before)


def test_the_range_is_also_that_of_what_is_held_out() -> None:
    pictures = colourful(held_out=colourful(2)).in_range(0.0, 1.0)
    assert pictures.held_out is not None
    assert (pictures.held_out.low, pictures.held_out.high) == (0.0, 1.0)


def test_a_range_that_does_not_rise_is_refused() -> None:
    with pytest.raises(InputError, match="1 to 1; it must rise"):
        colourful().in_range(1.0, 1.0)


def test_half_of_the_draws_are_mirrored_anew() -> None:
    one = Pictures(torch.arange(3 * 2 * 4, dtype=torch.uint8).reshape(1, 3, 2, 4))
    flipping = one.flipped()
    generator = torch.Generator().manual_seed(0)
    first, second = (flipping.bytes(flipping.sample(2000, generator)) for _ in range(2))
    plain = first.eq(one.pixels).flatten(1).all(1)
    mirrored = first.eq(one.pixels.flip(3)).flatten(1).all(1)
    assert (plain ^ mirrored).all(), "each is the picture or its mirror image, colours and rows in place"
    assert abs(float(mirrored.float().mean()) - 0.5) < 4 * (0.25 / 2000) ** 0.5
    assert not torch.equal(first, second)


def test_without_flips_the_draws_are_what_they_were() -> None:
    pictures = colourful()
    generator = torch.Generator().manual_seed(3)
    row = torch.randint(len(pictures), (9,), generator=torch.Generator().manual_seed(3))
    assert torch.equal(pictures.bytes(pictures.sample(9, generator)), pictures.pixels[row])


@pytest.mark.parametrize("apart", [True, False])
def test_what_is_judged_on_is_not_mirrored(apart: bool) -> None:
    pictures = colourful(held_out=colourful(2) if apart else None).flipped()
    judged = held_out(NoisyDensity(pictures, 0.1))
    assert isinstance(judged, NoisyDensity)
    assert isinstance(judged.inner, Pictures)
    assert not judged.inner.flip
    assert len(judged.inner) == (2 if apart else 6)


def test_labels_go_with_their_pictures() -> None:
    pixels = torch.arange(20, dtype=torch.uint8).reshape(20, 1, 1, 1).expand(20, 3, 4, 4).contiguous()
    pictures = Pictures(pixels, labels=torch.arange(20), classes=("a",) * 20).apart(0.25, seed=1)
    assert pictures.held_out is not None
    for part in (pictures, pictures.held_out, pictures.resized(2).in_logits()):
        assert part.labels is not None
        assert torch.equal(part.labels, part.pixels[:, 0, 0, 0].long())
        assert len(part.classes) == 20
    x, labels = pictures.flipped().sample_labelled(50, torch.Generator().manual_seed(0))
    assert torch.equal(pictures.bytes(x)[:, 2, 1, 1].long(), labels)
    assert torch.equal(x, pictures.flipped().sample(50, torch.Generator().manual_seed(0)))


def test_labels_that_do_not_fit_or_are_not_there_are_refused() -> None:
    with pytest.raises(InputError, match="6 pictures need as many labels"):
        colourful(labels=torch.zeros(5))
    with pytest.raises(InputError, match="have no labels"):
        colourful().sample_labelled(1, torch.Generator())


def test_colours_through_every_step(tmp_path: Path) -> None:
    pictures = Pictures(some_bytes(20, 3, 8, 8), low=0.0, high=1.0).apart(0.2, seed=0)
    pictures.save(tmp_path / "pictures.npz")
    again = Pictures.load(tmp_path / "pictures.npz")
    assert torch.equal(again.pixels, pictures.pixels)
    small = again.resized(4)
    means = again.pixels.double().reshape(16, 3, 4, 2, 4, 2).mean((3, 5))
    assert (small.pixels.double() - means).abs().max() <= 0.5
    assert small.columns[16] == "pixel1_1_2"
    noisy = NoisyDensity(small.flipped(), 0.01).sample(5, torch.Generator().manual_seed(0))
    assert small.brightness(noisy).shape == (5, 3, 4, 4)
