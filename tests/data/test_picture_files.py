"""The readers of pictures' files, on small ones in the official layouts; what is damaged is refused."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.io import savemat

from burnin.core import InputError
from burnin.data.cifar import read_cifar_binary, read_cifar_pickles
from burnin.data.flowers import read_flowers
from burnin.data.folders import read_folder, write_pictures
from burnin.data.idx import read_idx_part
from burnin.data.matlab import read_mat, read_svhn
from tests.data.files import FLOWER_COLOURS, some_bytes, write_cifar, write_flowers, write_idx, write_svhn


class Written:
    """Writes a file when it is unpickled by a reader that takes everything."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[Path], object], tuple[Path]]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("pickled", [False, True])
def test_cifar(tmp_path: Path, pickled: bool) -> None:
    training, test = write_cifar(tmp_path, pickled=pickled)
    parts = (read_cifar_pickles if pickled else read_cifar_binary)(tmp_path)
    for part, written in zip(parts, (training, test), strict=True):
        assert np.array_equal(part.pixels, written.numpy())
        assert part.labels is not None
        assert part.labels.tolist() == [number % 10 for number in range(len(written))]


def test_both_versions_of_cifar_are_the_same(tmp_path: Path) -> None:
    write_cifar(tmp_path / "bin")
    write_cifar(tmp_path / "py", pickled=True)
    for one, other in zip(
        read_cifar_binary(tmp_path / "bin"), read_cifar_pickles(tmp_path / "py"), strict=True
    ):
        assert np.array_equal(one.pixels, other.pixels)


def test_a_batch_that_python_2_wrote_is_what_pickle_itself_reads(tmp_path: Path) -> None:
    training, _ = write_cifar(tmp_path, pickled=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # numpy's old name, which burnin does not import
        own = pickle.loads((tmp_path / "data_batch_1").read_bytes(), encoding="latin1")
    assert np.array_equal(own["data"], training[:2].flatten(1).numpy())
    assert own["labels"] == [0, 1]


def test_a_pickle_runs_no_code(tmp_path: Path) -> None:
    write_cifar(tmp_path, pickled=True)
    content = pickle.dumps({"data": Written(tmp_path / "ran"), "labels": [0]}, protocol=2)
    (tmp_path / "data_batch_3").write_bytes(content)
    with pytest.raises(InputError, match=r"data_batch_3: asks for .*it was not run"):
        read_cifar_pickles(tmp_path)
    assert not (tmp_path / "ran").exists()
    pickle.loads(content)
    assert (tmp_path / "ran").exists(), "it would have"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "damaged or cut short"),
        (b"\x80\x02}(U\x04data", "damaged or cut short"),
        (b"\x80\x02]\x2e", "wanted a batch of CIFAR-10"),
        (pickle.dumps({"data": [1], "labels": [0]}, protocol=2), "no array of bytes"),
        (pickle.dumps({"data": np.zeros((1, 3072)), "labels": [0]}, protocol=2), "of 'f8'|asks for"),
    ],
)
def test_a_damaged_pickle_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    write_cifar(tmp_path, pickled=True)
    (tmp_path / "test_batch").write_bytes(content)
    with pytest.raises(InputError, match=f"test_batch: .*({message})"):
        read_cifar_pickles(tmp_path)


def test_a_pickle_with_too_few_labels_is_refused(tmp_path: Path) -> None:
    write_cifar(tmp_path, pickled=True)
    path = tmp_path / "test_batch"
    path.write_bytes(path.read_bytes().replace(b"](K\x00K\x01e", b"](K\x00e"))
    with pytest.raises(InputError, match=r"2 pictures, and labels of shape \(1,\)"):
        read_cifar_pickles(tmp_path)


def test_a_pickled_array_of_other_numbers_is_refused(tmp_path: Path) -> None:
    write_cifar(tmp_path, pickled=True)
    path = tmp_path / "test_batch"
    path.write_bytes(path.read_bytes().replace(b"U\x02u1", b"U\x02O8"))
    with pytest.raises(InputError, match="test_batch: holds an array of 'O8'; wanted one of bytes"):
        read_cifar_pickles(tmp_path)


def test_a_cut_or_missing_batch_is_refused(tmp_path: Path) -> None:
    write_cifar(tmp_path)
    path = tmp_path / "data_batch_2.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"data_batch_2.bin: damaged or cut short: 6145 bytes; .* of 3073"):
        read_cifar_binary(tmp_path)
    path.write_bytes(b"\x0a" + bytes(3072))
    with pytest.raises(InputError, match="labels from 10 to 10; wanted 0 to 9"):
        read_cifar_binary(tmp_path)
    path.unlink()
    with pytest.raises(InputError, match=r"data_batch_2.bin: cannot be read: No such file"):
        read_cifar_binary(tmp_path)


def test_svhn(tmp_path: Path) -> None:
    written = write_svhn(tmp_path)
    for part, own in zip(read_svhn(tmp_path), written, strict=True):
        assert np.array_equal(part.pixels, own.numpy())
        assert part.labels is not None
        assert part.labels.tolist() == [(1 + number % 10) % 10 for number in range(len(own))]


def test_a_damaged_mat_file_is_refused(tmp_path: Path) -> None:
    write_svhn(tmp_path)
    path = tmp_path / "test_32x32.mat"
    whole = path.read_bytes()
    for content in (b"", b"no matrix", whole[:5000]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"test_32x32.mat: not a readable .mat file"):
            read_svhn(tmp_path)
    savemat(path, {"X": np.zeros((32, 32, 3, 2), dtype=np.uint8)})
    with pytest.raises(InputError, match="holds no array of whole numbers y"):
        read_svhn(tmp_path)
    savemat(path, {"X": np.zeros((32, 32, 2), dtype=np.uint8), "y": np.ones((2, 1), dtype=np.uint8)})
    with pytest.raises(InputError, match=r"uint8 of shape \(32, 32, 2\); wanted bytes, \(32, 32, 3, n\)"):
        read_svhn(tmp_path)
    path.unlink()
    with pytest.raises(InputError, match="no such file"):
        read_mat(path, "X")


@pytest.mark.parametrize("side", [None, 8, 40])
def test_flowers_are_middle_squares_in_the_order_of_the_lists(tmp_path: Path, side: int | None) -> None:
    write_flowers(tmp_path)
    told: list[tuple[int, int]] = []
    training, held_out = read_flowers(tmp_path, side, lambda what, done, total: told.append((done, total)))
    for part, numbers in ((training, [3, 1, 5]), (held_out, [2, 4])):
        assert part.pixels.shape == (len(numbers), 3, side or 32, side or 32)
        assert part.labels is not None
        assert part.labels.tolist() == [number - 1 for number in numbers]
        middle = part.pixels[:, :, 2:-2, 2:-2].mean((2, 3))
        wanted = np.array([FLOWER_COLOURS[number] for number in numbers])
        assert np.abs(middle - wanted).max() < 12, "the colours, but for what .jpg loses; black ends cut off"
    assert told[-1] == (5, 5)


def test_flowers_without_labels_and_damaged_ones(tmp_path: Path) -> None:
    write_flowers(tmp_path, labels=False)
    assert read_flowers(tmp_path)[0].labels is None
    with pytest.raises(InputError, match="the side is 2; flowers can have from 4"):
        read_flowers(tmp_path, 2)
    savemat(tmp_path / "imagelabels.mat", {"labels": np.array([[1, 2]], dtype=np.uint8)})
    with pytest.raises(InputError, match=r"imagelabels.mat: damaged: 2 labels, and photographs up to 5"):
        read_flowers(tmp_path)
    (tmp_path / "imagelabels.mat").unlink()
    photograph = tmp_path / "jpg" / "image_00004.jpg"
    photograph.write_bytes(photograph.read_bytes()[:300])
    with pytest.raises(InputError, match=r"image_00004.jpg: not a readable picture"):
        read_flowers(tmp_path)
    photograph.unlink()
    with pytest.raises(InputError, match=r"image_00004.jpg: no such file"):
        read_flowers(tmp_path)
    numbers = {"trnid": [[0]], "valid": [[1]], "tstid": [[2]]}
    savemat(tmp_path / "setid.mat", numbers)
    with pytest.raises(InputError, match=r"setid.mat: damaged"):
        read_flowers(tmp_path)


def test_idx_with_and_without_labels(tmp_path: Path) -> None:
    pixels, labels = some_bytes(4, 6, 5), torch.tensor([3, 0, 9, 3], dtype=torch.uint8)
    write_idx(tmp_path / "pictures", pixels)
    assert read_idx_part(tmp_path, "pictures", "labels", 10).labels is None
    write_idx(tmp_path / "labels.gz", labels, packed=True)
    part = read_idx_part(tmp_path, "pictures", "labels", 10)
    assert np.array_equal(part.pixels[:, 0], pixels.numpy())
    assert part.labels is not None
    assert part.labels.tolist() == labels.tolist()
    with pytest.raises(InputError, match="labels from 0 to 9; wanted 0 to 8"):
        read_idx_part(tmp_path, "pictures", "labels", 9)
    write_idx(tmp_path / "labels", labels[:3])
    with pytest.raises(InputError, match=r"4 pictures, and labels of shape \(3,\)"):
        read_idx_part(tmp_path, "pictures", "labels", 10)
    with pytest.raises(InputError, match="1 dimensions; wanted 3"):
        read_idx_part(tmp_path, "labels", "pictures", 10)


def test_the_subfolders_of_a_folder_are_its_classes(tmp_path: Path) -> None:
    pixels = some_bytes(3, 3, 6, 6)
    names = ("dogs/a", "cats/b", "dogs/c")
    write_pictures(tmp_path, pixels / 255, names=names)
    found = read_folder(tmp_path)
    assert found.files == ("cats/b.png", "dogs/a.png", "dogs/c.png")
    assert found.classes == ("cats", "dogs")
    assert found.labels is not None
    assert found.labels.tolist() == [0, 1, 1]
    assert torch.equal(found.pixels, pixels[[1, 0, 2]])
    write_pictures(tmp_path, pixels[:1] / 255, names=("loose",))
    assert read_folder(tmp_path).labels is None
