"""The named sets of pictures: which files they come in, where these are looked for, and where they come from.

Addresses and checksums are the publishers' own; MD5 is what they publish.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from burnin.core import Report
from burnin.data.cifar import BATCHES, TEST_BATCH, read_cifar_binary, read_cifar_pickles
from burnin.data.flowers import read_flowers
from burnin.data.idx import read_idx_part
from burnin.data.matlab import read_svhn
from burnin.data.parts import Part

Reader = Callable[[Path, int | None, Report | None], tuple[Part, Part]]
"""From a folder, with the side that pictures of no one size are to have, to training and held-out parts."""


@dataclass(frozen=True)
class Download:
    """A file that can be downloaded.

    Attributes:
        name: its name, which is also the end of its address.
        origin: its address but for the name.
        md5: its checksum.
        size: bytes.
        gives: what of a layout it brings: itself, or what is in the archive.
        beside: whether the archive holds the layout's folder itself, so that it goes beside it.
    """

    name: str
    origin: str
    md5: str
    size: int
    gives: tuple[str, ...]
    beside: bool = False

    @property
    def address(self) -> str:
        """Where it is."""
        return self.origin + self.name

    @property
    def archive(self) -> bool:
        """Whether it is to be unpacked."""
        return self.name.endswith((".tar.gz", ".tgz"))


@dataclass(frozen=True)
class Layout:
    """A way in which a set's files may lie.

    Attributes:
        folders: where they may be, below the data folder; what is downloaded goes to the first.
        pictures: what must be there, packed (.gz) or not.
        labels: what must be there beside it for labels.
        downloads: where all that comes from.
        read: reads it.
    """

    folders: tuple[str, ...]
    pictures: tuple[str, ...]
    labels: tuple[str, ...]
    downloads: tuple[Download, ...]
    read: Reader


@dataclass(frozen=True)
class PictureSet:
    """A named set.

    Attributes:
        about: what it is, in a few words.
        layouts: ways in which its files may lie; the first is the one that is downloaded.
        classes: the names of its classes, in the order of the labels.
    """

    about: str
    layouts: tuple[Layout, ...]
    classes: tuple[str, ...]

    @property
    def size(self) -> int:
        """Bytes to download."""
        return sum(download.size for download in self.layouts[0].downloads)


IDX_PICTURES = ("train-images-idx3-ubyte", "t10k-images-idx3-ubyte")
IDX_LABELS = ("train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte")


def _idx(origin: str, folders: tuple[str, ...], sums: Mapping[str, tuple[str, int]]) -> Layout:
    """The four files of MNIST and of sets like it."""

    def read(folder: Path, side: int | None, report: Report | None) -> tuple[Part, Part]:
        training, held_out = (
            read_idx_part(folder, pictures, labels, 10)
            for pictures, labels in zip(IDX_PICTURES, IDX_LABELS, strict=True)
        )
        return training, held_out

    downloads = tuple(
        Download(f"{name}.gz", origin, md5, size, (name,)) for name, (md5, size) in sums.items()
    )
    return Layout(folders, IDX_PICTURES, IDX_LABELS, downloads, read)


_MNIST = _idx(
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    ("mnist", "MNIST/raw"),
    {
        "train-images-idx3-ubyte": ("f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
        "train-labels-idx1-ubyte": ("d53e105ee54ea40749a09fcbcd1e9432", 28_881),
        "t10k-images-idx3-ubyte": ("9fb629c4189551a2d022fa330f9573f3", 1_648_877),
        "t10k-labels-idx1-ubyte": ("ec29112dd5afa0611ce80d1b7f02629c", 4_542),
    },
)
_FASHION = _idx(
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    ("fashion-mnist", "FashionMNIST/raw"),
    {
        "train-images-idx3-ubyte": ("8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26_421_880),
        "train-labels-idx1-ubyte": ("25c81989df183df01b3e8a0aad5dffbe", 29_515),
        "t10k-images-idx3-ubyte": ("bef4ecab320f06d8554ea6380940ec79", 4_422_102),
        "t10k-labels-idx1-ubyte": ("bb300cfdad3c16e7a12a480ee83cd310", 5_148),
    },
)
_CIFAR_ORIGIN = "https://www.cs.toronto.edu/~kriz/"
_CIFAR_RECORDS = tuple(f"{name}.bin" for name in (*BATCHES, TEST_BATCH))
_CIFAR_BINARY = Layout(
    ("cifar-10-batches-bin", "cifar10/cifar-10-batches-bin"),
    _CIFAR_RECORDS,
    (),
    (
        Download(
            "cifar-10-binary.tar.gz",
            _CIFAR_ORIGIN,
            "c32a1d4ab5d03f1284b67883e8d87530",
            170_052_171,
            _CIFAR_RECORDS,
            beside=True,
        ),
    ),
    lambda folder, side, report: read_cifar_binary(folder),
)
_CIFAR_PYTHON = Layout(
    ("cifar-10-batches-py", "cifar10/cifar-10-batches-py"),
    (*BATCHES, TEST_BATCH),
    (),
    (
        Download(
            "cifar-10-python.tar.gz",
            _CIFAR_ORIGIN,
            "c58f30108f718f92721af3b95e74349a",
            170_498_071,
            (*BATCHES, TEST_BATCH),
            beside=True,
        ),
    ),
    lambda folder, side, report: read_cifar_pickles(folder),
)
_SVHN_ORIGIN = "http://ufldl.stanford.edu/housenumbers/"
_SVHN_FILES = ("train_32x32.mat", "test_32x32.mat")
_SVHN = Layout(
    ("svhn", "SVHN", "."),
    _SVHN_FILES,
    (),
    (
        Download(
            _SVHN_FILES[0], _SVHN_ORIGIN, "e26dedcc434d2e4c54c9b2d4a06d8373", 182_040_794, _SVHN_FILES[:1]
        ),
        Download(
            _SVHN_FILES[1], _SVHN_ORIGIN, "eb5a983be6a315427106f1b164d9cef3", 64_275_384, _SVHN_FILES[1:]
        ),
    ),
    lambda folder, side, report: read_svhn(folder),
)
_FLOWERS_ORIGIN = "https://www.robots.ox.ac.uk/~vgg/data/flowers/102/"
_FLOWERS = Layout(
    ("flowers", "flowers-102", "102flowers"),
    ("jpg", "setid.mat"),
    ("imagelabels.mat",),
    (
        Download(
            "102flowers.tgz", _FLOWERS_ORIGIN, "52808999861908f626f3c1f4e79d11fa", 344_862_509, ("jpg",)
        ),
        Download("setid.mat", _FLOWERS_ORIGIN, "a5357ecc9cb78c4bef273ce3793fc85c", 14_989, ("setid.mat",)),
        Download(
            "imagelabels.mat", _FLOWERS_ORIGIN, "e0620be6f572b9609742df49c70aed4d", 502, ("imagelabels.mat",)
        ),
    ),
    read_flowers,
)

DIGITS = tuple(str(digit) for digit in range(10))
CLOTHES = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
THINGS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

SETS: dict[str, PictureSet] = {
    "mnist": PictureSet("60,000 + 10,000 digits, 28×28, grey", (_MNIST,), DIGITS),
    "fashion-mnist": PictureSet("60,000 + 10,000 pieces of clothing, 28×28, grey", (_FASHION,), CLOTHES),
    "cifar10": PictureSet(
        "50,000 + 10,000 animals and vehicles, 32×32, colour", (_CIFAR_BINARY, _CIFAR_PYTHON), THINGS
    ),
    "svhn": PictureSet("73,257 + 26,032 house numbers, 32×32, colour", (_SVHN,), DIGITS),
    "flowers": PictureSet(
        "2,040 + 6,149 photographs of flowers, the middle square at data.side, colour",
        (_FLOWERS,),
        tuple(f"flower {number}" for number in range(1, 103)),
    ),
}
