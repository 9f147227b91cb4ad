"""Named sets: where their files are found, what is downloaded, and what is said when neither can be."""

from __future__ import annotations

import gzip
import hashlib
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from burnin.core import InputError
from burnin.data import Pictures, load_pictures, require_files
from burnin.data.named_pictures import find_files
from burnin.data.picture_sets import SETS
from tests.data.files import some_bytes, write_cifar, write_every_set, write_flowers, write_idx, write_svhn
from tests.data.serving import Served, serve


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BURNIN_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def idx(array: torch.Tensor, tmp_path: Path) -> bytes:
    write_idx(tmp_path / "written", array)
    return gzip.compress((tmp_path / "written").read_bytes())


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Serves small files of every set but flowers under their official names, and lets burnin download."""
    files = {
        "train-images-idx3-ubyte.gz": idx(some_bytes(12, 28, 28), tmp_path),
        "train-labels-idx1-ubyte.gz": idx(torch.arange(12, dtype=torch.uint8) % 10, tmp_path),
        "t10k-images-idx3-ubyte.gz": idx(some_bytes(3, 28, 28, seed=1), tmp_path),
        "t10k-labels-idx1-ubyte.gz": idx(torch.arange(3, dtype=torch.uint8), tmp_path),
    }
    write_svhn(tmp_path / "served")
    for name in ("train_32x32.mat", "test_32x32.mat"):
        files[name] = (tmp_path / "served" / name).read_bytes()
    for kind, pickled in (("binary", False), ("python", True)):
        below = "cifar-10-batches-py" if pickled else "cifar-10-batches-bin"
        write_cifar(tmp_path / "served" / below, pickled=pickled)
        with tarfile.open(tmp_path / "served.tar.gz", "w:gz") as tar:
            tar.add(tmp_path / "served" / below, below)
        files[f"cifar-10-{kind}.tar.gz"] = (tmp_path / "served.tar.gz").read_bytes()
    write_flowers(tmp_path / "served" / "flowers")
    with tarfile.open(tmp_path / "served.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "served" / "flowers" / "jpg", "jpg")
    files["102flowers.tgz"] = (tmp_path / "served.tar.gz").read_bytes()
    for name in ("setid.mat", "imagelabels.mat"):
        files[name] = (tmp_path / "served" / "flowers" / name).read_bytes()
    monkeypatch.delenv("BURNIN_OFFLINE")
    with serve(files) as served:
        for name, known in SETS.items():
            layouts = tuple(
                replace(
                    layout,
                    downloads=tuple(
                        replace(file, origin=served.address, md5=hashlib.md5(files[file.name]).hexdigest())
                        for file in layout.downloads
                    ),
                )
                for layout in known.layouts
            )
            monkeypatch.setitem(SETS, name, replace(known, layouts=layouts))
        yield served


SHAPES = {
    "mnist": (1, 28, 28),
    "fashion-mnist": (1, 28, 28),
    "cifar10": (3, 32, 32),
    "svhn": (3, 32, 32),
    "flowers": (3, 32, 32),
}


@pytest.mark.parametrize("name", SETS)
def test_what_is_missing_is_downloaded_once(name: str, server: Served, folder: Path) -> None:
    told: list[str] = []
    pictures = load_pictures(name, labelled=True, report=lambda what, done, total: told.append(what))
    assert pictures.shape == SHAPES[name]
    assert pictures.held_out is not None
    for part in (pictures, pictures.held_out):
        assert part.labels is not None
        assert len(part.labels) == len(part)
        assert part.classes == SETS[name].classes
        assert (part.low, part.high) == (-1.0, 1.0)
    expected = {file.name for file in SETS[name].layouts[0].downloads}
    assert set(server.asked) == expected
    assert {what.removesuffix(", kB") for what in told if what.endswith("kB")} == expected
    asked = list(server.asked)
    again = load_pictures(name)
    assert torch.equal(again.pixels, pictures.pixels)
    assert server.asked == asked
    left = [path.name for path in folder.rglob("*") if path.name.endswith((".part", ".tgz", ".tar.gz"))]
    assert left == [], "archives are removed once unpacked"


def test_only_what_is_missing_is_downloaded(server: Served, folder: Path) -> None:
    write_every_set(folder)
    assert load_pictures("mnist").labels is None
    assert server.asked == []
    with pytest.raises(InputError, match=r"5 pictures, and labels of shape \(12,\)"):
        load_pictures("mnist", labelled=True)
    assert server.asked == ["train-labels-idx1-ubyte.gz", "t10k-labels-idx1-ubyte.gz"]


@pytest.mark.parametrize(
    ("kind", "below", "name"),
    [
        ("binary", "", "cifar10"),
        ("python", "", "cifar10"),
        ("binary", "cifar-10-batches-bin", "cifar10"),
        ("flowers", "flowers", "flowers"),
    ],
)
def test_an_archive_that_was_put_there_is_unpacked_and_kept(
    server: Served, folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str, below: str, name: str
) -> None:
    monkeypatch.setenv("BURNIN_OFFLINE", "1")
    archive = folder / below / ("102flowers.tgz" if kind == "flowers" else f"cifar-10-{kind}.tar.gz")
    archive.parent.mkdir(parents=True)
    archive.write_bytes(server.files[archive.name])
    if kind == "flowers":
        (archive.parent / "setid.mat").write_bytes(server.files["setid.mat"])
        (archive.parent / "imagelabels.mat").write_bytes(server.files["imagelabels.mat"])
    assert load_pictures(name).shape == (3, 32, 32)
    assert archive.is_file()
    assert server.asked == []


def test_a_damaged_archive_that_was_put_there_is_named(server: Served, folder: Path) -> None:
    folder.mkdir()
    (folder / "cifar-10-binary.tar.gz").write_bytes(b"half of it")
    with pytest.raises(
        InputError, match=r"cifar-10-binary.tar.gz is damaged \(md5 .*remove it; put cifar-10"
    ):
        load_pictures("cifar10")
    assert server.asked == []


@pytest.mark.parametrize("name", SETS)
def test_offline_every_file_is_named_with_its_place_and_address(name: str, folder: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_pictures(name, labelled=True)
    message = str(caught.value)
    assert message.startswith(f"{name}: ")
    assert "BURNIN_OFFLINE is set" in message
    assert "\n" not in message
    for file in SETS[name].layouts[0].downloads:
        place = folder if file.beside else folder / SETS[name].layouts[0].folders[0]
        assert f"{file.name} into {place} (from {file.address})" in message
    assert "set BURNIN_DATA to the folder that holds" in message
    assert not folder.exists(), "nothing is made"


def test_a_download_that_fails_says_which_file_to_put_where(server: Served, folder: Path) -> None:
    del server.files["test_32x32.mat"]
    with pytest.raises(InputError, match=r"svhn: http.*test_32x32.mat cannot be downloaded \(HTTP 404"):
        load_pictures("svhn")
    assert (folder / "svhn" / "train_32x32.mat").is_file(), "what came is kept"
    server.files["train-images-idx3-ubyte.gz"] += b"0"
    with pytest.raises(InputError, match=r"mnist: .* is another file than expected .*; put train-images"):
        load_pictures("mnist")


@pytest.mark.parametrize(
    ("name", "below"),
    [
        ("mnist", "MNIST/raw"),
        ("fashion-mnist", "FashionMNIST/raw"),
        ("cifar10", "cifar10/cifar-10-batches-bin"),
        ("svhn", "."),
        ("flowers", "flowers-102"),
        ("flowers", "102flowers"),
    ],
)
def test_other_usual_places_are_found(name: str, below: str, folder: Path, tmp_path: Path) -> None:
    write_every_set(tmp_path / "written")
    (folder / below).parent.mkdir(parents=True, exist_ok=True)
    written = tmp_path / "written" / SETS[name].layouts[0].folders[0]
    written.rename(folder / below)
    found = find_files(name)
    assert found is not None
    assert found[1] == folder / below
    assert load_pictures(name).shape == SHAPES[name]


@pytest.mark.usefixtures("small_pictures")
def test_the_side_is_made() -> None:
    for name in SETS:
        assert load_pictures(name, side=14).shape[1:] == (14, 14)
    assert load_pictures("flowers", side=48).shape == (3, 48, 48)


def test_an_unknown_set_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"unknown set of pictures 'cifar-10'; did you mean 'cifar10'\? Known: mnist"
    ):
        require_files("cifar-10")


def test_pictures_are_pictures(folder: Path) -> None:
    write_every_set(folder)
    assert all(isinstance(load_pictures(name), Pictures) for name in SETS)
