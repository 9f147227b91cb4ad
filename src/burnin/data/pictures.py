"""Pictures as a data set: bytes in memory, numbers in a range when drawn, flat rows for an energy."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from burnin.core import InputError
from burnin.data.checks import require_at_least
from burnin.data.idx import read_idx
from burnin.data.kept import read_kept

FOLDER_VARIABLE = "BURNIN_DATA"
EDGE = 2.0**-20
"""How near to 0 or 1 a dequantised pixel may be; u below 2^-12 is rounded up to it."""
FEWEST = 10
"""Pictures that a density needs at least."""


@dataclass(frozen=True)
class Source:
    """Where a data set's files come from, and what they are called: pictures for training, held out."""

    folder: str
    training: str
    held_out: str
    origin: str


SOURCES: Mapping[str, Source] = {
    "mnist": Source(
        "mnist",
        "train-images-idx3-ubyte",
        "t10k-images-idx3-ubyte",
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
    ),
    "fashion-mnist": Source(
        "fashion-mnist",
        "train-images-idx3-ubyte",
        "t10k-images-idx3-ubyte",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    ),
}


@dataclass(frozen=True, eq=False)
class Pictures:
    """A data set of pictures. As a density it is the empirical law, each picture a flat row.

    Arguments:
        pixels: (n, channels, height, width), bytes.
        levels: the byte that stands for the brightest.
        low, high: the numbers that a byte of 0 and one of `levels` become.
        logit: instead, a byte b becomes logit((b + u) / (levels + 1)), u uniform in (0, 1) and drawn anew at
            every use (stein, B.6.2): a density on all of R^dim.
        held_out: pictures of the same kind that training does not see; what a model is judged on.

    Example:
        >>> import torch
        >>> pictures = Pictures(torch.tensor([[[[0, 255]]]], dtype=torch.uint8))
        >>> pictures.dim, pictures.sample(1, torch.Generator()).tolist()
        (2, [[-1.0, 1.0]])
    """

    pixels: Tensor
    levels: int = 255
    low: float = -1.0
    high: float = 1.0
    logit: bool = False
    held_out: Pictures | None = None

    def __post_init__(self) -> None:
        shape = tuple(self.pixels.shape)
        if len(shape) != 4 or 0 in shape:
            raise InputError(f"pictures must be (n, channels, height, width), none of them 0; got {shape}")
        if self.pixels.dtype != torch.uint8:
            raise InputError(f"pictures must be bytes; got {self.pixels.dtype}")

    @property
    def shape(self) -> tuple[int, int, int]:
        """(channels, height, width) of a picture."""
        _, channels, height, width = self.pixels.shape
        return channels, height, width

    @property
    def columns(self) -> tuple[str, ...]:
        """A name for each number of a flat row."""
        channels, height, width = self.shape
        return tuple(
            f"pixel{row + 1}_{column + 1}" + (f"_{channel + 1}" if channels > 1 else "")
            for channel in range(channels)
            for row in range(height)
            for column in range(width)
        )

    @property
    def dim(self) -> int:
        """Numbers in a picture."""
        return self.pixels[0].numel()

    def __len__(self) -> int:
        """How many pictures."""
        return len(self.pixels)

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n pictures drawn with replacement, (n, dim), in the range."""
        require_at_least("Pictures", 0, n=n)
        row = torch.randint(len(self), (n,), generator=generator, device=generator.device)
        return self.rows(self.pixels[row.to(self.pixels.device)].to(generator.device), generator)

    def rows(self, pixels: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Pictures of bytes, (n, channels, height, width), as flat rows: in the range, or in logits.

        The generator dequantises them; in the range nothing is drawn.
        """
        byte = pixels.flatten(1).to(torch.get_default_dtype())
        if not self.logit:
            return self.low + (self.high - self.low) / self.levels * byte
        u = torch.rand(byte.shape, generator=generator, dtype=byte.dtype, device=byte.device)
        # Never on the edge, where the logit is infinite; next to 1 a float has no room for less than EDGE.
        return torch.logit(((byte + u) / (self.levels + 1)).clamp(EDGE, 1 - EDGE))

    def brightness(self, x: Tensor) -> Tensor:
        """Flat rows as pictures again, (n, channels, height, width), 0 dark and 1 bright: to look at."""
        share = x.sigmoid() if self.logit else (x - self.low) / (self.high - self.low)
        return share.clamp(0, 1).reshape(len(x), *self.shape)

    def in_logits(self) -> Pictures:
        """The pictures, and those held out, dequantised and in logits.

        Example:
            >>> import torch
            >>> dark = Pictures(torch.zeros(1, 1, 1, 2, dtype=torch.uint8)).in_logits()
            >>> x = dark.sample(1, torch.Generator().manual_seed(0))
            >>> bool((x < -5).all()), bool((dark.brightness(x) < 1 / 256).all())
            (True, True)
        """
        held_out = None if self.held_out is None else self.held_out.in_logits()
        return replace(self, logit=True, held_out=held_out)

    @classmethod
    def of_folder(cls, pixels: Tensor, held_out: Tensor) -> Pictures:
        """Pictures of one's own, in [0, 1]."""
        apart = cls(held_out, low=0.0, high=1.0) if len(held_out) else None
        return cls(pixels, low=0.0, high=1.0, held_out=apart)

    @classmethod
    def split(cls, pixels: Tensor, *, share: float, seed: int) -> Pictures:
        """A share of the pictures, at least one, drawn by the seed, is held out."""
        if len(pixels) < FEWEST:
            raise InputError(f"there are {len(pixels)} pictures; a density needs at least {FEWEST}")
        order = torch.randperm(len(pixels), generator=torch.Generator().manual_seed(seed))
        held = max(1, round(share * len(pixels)))
        kept, apart = order[held:].sort().values, order[:held].sort().values
        return cls.of_folder(pixels[kept], pixels[apart])

    def save(self, path: Path) -> None:
        """Writes the bytes, those held out too, to a .npz file."""
        held = self.pixels[:0] if self.held_out is None else self.held_out.pixels
        np.savez_compressed(path, pixels=self.pixels.numpy(), held_out=held.numpy())

    @classmethod
    def load(cls, path: Path) -> Pictures:
        """Reads what `save` wrote.

        Raises:
            InputError: when the file is missing or damaged.
        """
        return cls.of_folder(*map(torch.from_numpy, read_kept(path, "pixels", "held_out")))

    def resized(self, side: int) -> Pictures:
        """The pictures, and those held out, at another size: each new pixel is the mean of its area.

        Example:
            >>> import torch
            >>> Pictures(torch.zeros(5, 1, 28, 28, dtype=torch.uint8)).resized(14).shape
            (1, 14, 14)
        """
        if not 1 <= side <= max(self.shape[1:]):
            raise InputError(f"pictures of {self.shape[1]}×{self.shape[2]} cannot be made {side}×{side}")
        parts = [
            torch.nn.functional.adaptive_avg_pool2d(part.float(), side).round().to(torch.uint8)
            for part in torch.split(self.pixels, 4096)
        ]
        held_out = None if self.held_out is None else self.held_out.resized(side)
        return replace(self, pixels=torch.cat(parts), held_out=held_out)


def load_pictures(name: str, folder: Path | None = None) -> Pictures:
    """A known data set from its usual files, numbers in [-1, 1], with its test pictures held out.

    Arguments:
        name: "mnist" or "fashion-mnist".
        folder: holds a folder for each data set; by default what BURNIN_DATA says, or data/ in the cache.

    Raises:
        InputError: when a file is missing, saying which to put where; when one is damaged.
    """
    source = SOURCES[name]
    place = (folder or data_folder()) / source.folder
    training, held_out = (
        torch.from_numpy(read_idx(find_file(name, place, file, source.origin))).unsqueeze(1)
        for file in (source.training, source.held_out)
    )
    return Pictures(training, held_out=Pictures(held_out))


def data_folder() -> Path:
    """Where data sets are looked for."""
    given = os.environ.get(FOLDER_VARIABLE)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else cache / "burnin" / "data"


def find_file(name: str, place: Path, file: str, origin: str) -> Path:
    """The file of a data set, packed or not.

    Raises:
        InputError: when it is missing, saying where to put it and where it comes from.
    """
    for path in (place / file, place / f"{file}.gz"):
        if path.is_file():
            return path
    raise InputError(
        f"{name}: {place} holds no {file} (or {file}.gz): put it there, from {origin}, "
        f"or set {FOLDER_VARIABLE} to the folder that holds {place.name}/"
    )
