"""Files of pictures in the official layout, written by the tests."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from scipy.io import savemat
from torch import Tensor


def write_idx(path: Path, array: Tensor, *, packed: bool = False) -> None:
    """An IDX file of bytes, in the layout of MNIST's page: magic, sizes big-endian, numbers."""
    head = struct.pack(f">BBBB{array.dim()}I", 0, 0, 8, array.dim(), *array.shape)
    content = head + array.numpy().tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if packed else content)


def some_bytes(*shape: int, seed: int = 0) -> Tensor:
    """Bytes that differ, so that a transposed axis would show."""
    return torch.randint(256, shape, generator=torch.Generator().manual_seed(seed), dtype=torch.uint8)


def write_cifar_binary(folder: Path, pixels: Tensor, labels: list[int], name: str) -> None:
    """A batch of CIFAR-10's binary version: for each picture a byte of label, then its colours."""
    folder.mkdir(parents=True, exist_ok=True)
    records = (
        bytes([label]) + picture.numpy().tobytes() for label, picture in zip(labels, pixels, strict=True)
    )
    (folder / f"{name}.bin").write_bytes(b"".join(records))


def write_cifar_pickle(folder: Path, pixels: Tensor, labels: list[int], name: str) -> None:
    """A batch of CIFAR-10's Python version, instruction by instruction as Python 2 wrote it (protocol 2)."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, columns = len(pixels), pixels[0].numel()
    content = pixels.numpy().tobytes()
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
        + b"(K\x01J"
        + struct.pack("<i", rows)
        + b"J"
        + struct.pack("<i", columns)
        + b"\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        + b"\x89T"
        + struct.pack("<i", len(content))
        + content
        + b"tb"
    )
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    told = b"U\x0bbatch_labelU\x15training batch 1 of 5"
    (folder / name).write_bytes(
        b"\x80\x02}(" + told + b"U\x06labels" + numbers + b"U\x04data" + array + b"u."
    )


def write_cifar(folder: Path, *, pickled: bool = False, each: int = 2) -> tuple[Tensor, Tensor]:
    """Five batches and a test batch of so many pictures, the label of number i being i mod 10."""
    write = write_cifar_pickle if pickled else write_cifar_binary
    training, test = some_bytes(5 * each, 3, 32, 32), some_bytes(each, 3, 32, 32, seed=1)
    for batch in range(5):
        numbers = range(batch * each, (batch + 1) * each)
        labels = [number % 10 for number in numbers]
        write(folder, training[batch * each : (batch + 1) * each], labels, f"data_batch_{batch + 1}")
    write(folder, test, [number % 10 for number in range(each)], "test_batch")
    return training, test


def write_svhn(folder: Path) -> tuple[Tensor, Tensor]:
    """Twelve and three house numbers, labels 1 to 10, of which 10 is a nought."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = some_bytes(12, 3, 32, 32), some_bytes(3, 3, 32, 32, seed=1)
    for name, part in zip(("train", "test"), parts, strict=True):
        labels = np.array([[1 + number % 10] for number in range(len(part))], dtype=np.uint8)
        savemat(folder / f"{name}_32x32.mat", {"X": part.permute(2, 3, 1, 0).numpy(), "y": labels})
    return parts


FLOWER_COLOURS = {1: (200, 30, 30), 2: (30, 200, 30), 3: (30, 30, 200), 4: (200, 200, 30), 5: (30, 200, 200)}
"""The middle of each photograph; its ends are black."""


def write_flowers(folder: Path, *, labels: bool = True) -> None:
    """Five photographs, 3 and 1 for training, 5 for validation, 2 and 4 held out; number i shows class i."""
    (folder / "jpg").mkdir(parents=True, exist_ok=True)
    for number, colour in FLOWER_COLOURS.items():
        photograph = np.zeros((80, 160, 3), dtype=np.uint8)
        photograph[:, 40:120] = colour
        Image.fromarray(photograph).save(folder / "jpg" / f"image_{number:05d}.jpg", quality=95)
    numbers = {"trnid": [[3, 1]], "valid": [[5]], "tstid": [[2, 4]]}
    savemat(folder / "setid.mat", {key: np.array(value, dtype=np.uint16) for key, value in numbers.items()})
    if labels:
        savemat(folder / "imagelabels.mat", {"labels": np.array([[1, 2, 3, 4, 5]], dtype=np.uint8)})


def write_every_set(folder: Path) -> None:
    """Every named set, with few pictures in it."""
    for below in ("mnist", "fashion-mnist"):
        for part in ("train", "t10k"):
            write_idx(folder / below / f"{part}-images-idx3-ubyte", some_bytes(5, 28, 28))
            if below == "fashion-mnist":  # of MNIST there are pictures alone
                labels = folder / below / f"{part}-labels-idx1-ubyte"
                write_idx(labels, torch.arange(5, dtype=torch.uint8))
    write_cifar(folder / "cifar-10-batches-bin")
    write_svhn(folder / "svhn")
    write_flowers(folder / "flowers")
