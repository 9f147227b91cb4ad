"""Pictures as a data set: bytes in memory, numbers in a range when drawn, flat rows for an energy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from burnin.core import InputError
from burnin.data.checks import require_at_least
from burnin.data.kept import read_kept

EDGE = 2.0**-20
"""How near to 0 or 1 a dequantised pixel may be; u below 2^-12 is rounded up to it."""
FEWEST = 10
"""Pictures that a density needs at least."""


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
        flip: half of what is drawn, chosen anew at every draw, is mirrored left to right.
        labels: the class of each picture, (n,), whole numbers from 0; None where nobody knows.
        classes: the names of the classes.

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
    flip: bool = False
    labels: Tensor | None = None
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = tuple(self.pixels.shape)
        if len(shape) != 4 or 0 in shape:
            raise InputError(f"pictures must be (n, channels, height, width), none of them 0; got {shape}")
        if self.pixels.dtype != torch.uint8:
            raise InputError(f"pictures must be bytes; got {self.pixels.dtype}")
        if self.labels is not None and self.labels.shape != self.pixels.shape[:1]:
            raise InputError(f"{shape[0]} pictures need as many labels; got {tuple(self.labels.shape)}")
        if not self.low < self.high:
            raise InputError(f"the range of pictures is {self.low:g} to {self.high:g}; it must rise")

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
        return self._draw(n, generator)[0]

    def sample_labelled(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """The same draws, with the class of each, (n,).

        Raises:
            InputError: when the pictures have no labels.
        """
        if self.labels is None:
            raise InputError(
                "these pictures have no labels: take a named set with its label files "
                "(load_pictures(name, labelled=True)), or a folder with a subfolder for each class"
            )
        drawn, row = self._draw(n, generator)
        return drawn, self.labels[row.to(self.labels.device)].to(generator.device)

    def _draw(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """n pictures, and which they are."""
        require_at_least("Pictures", 0, n=n)
        row = torch.randint(len(self), (n,), generator=generator, device=generator.device)
        pixels = self.pixels[row.to(self.pixels.device)].to(generator.device)
        if self.flip:
            mirrored = torch.rand(n, generator=generator, device=generator.device) < 0.5
            pixels = torch.where(mirrored[:, None, None, None], pixels.flip(3), pixels)
        return self.rows(pixels, generator), row

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

    def bytes(self, x: Tensor) -> Tensor:
        """Flat rows as bytes again, (n, channels, height, width): the inverse of `rows`.

        What lies beyond the range becomes the darkest or the brightest. In logits and single precision a
        pixel in some 50,000 comes out one off: that whose u was within rounding of 0 or 1.

        Example:
            >>> import torch
            >>> pictures = Pictures(torch.tensor([[[[0, 7, 255]]]], dtype=torch.uint8))
            >>> pictures.bytes(pictures.rows(pictures.pixels)).flatten().tolist()
            [0, 7, 255]
        """
        share = self.brightness(x)
        byte = (share * (self.levels + 1)).floor() if self.logit else (share * self.levels).round()
        return byte.clamp(0, self.levels).to(torch.uint8)

    def in_range(self, low: float, high: float) -> Pictures:
        """The pictures, and those held out, with dark at `low` and bright at `high`.

        Example:
            >>> import torch
            >>> bright = Pictures(torch.full((1, 1, 1, 1), 255, dtype=torch.uint8)).in_range(0.0, 2.0)
            >>> bright.sample(1, torch.Generator()).item()
            2.0
        """
        held_out = None if self.held_out is None else self.held_out.in_range(low, high)
        return replace(self, low=low, high=high, held_out=held_out)

    def flipped(self) -> Pictures:
        """The pictures with `flip`; those held out stay as they are."""
        return replace(self, flip=True)

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

    def apart(self, share: float, seed: int) -> Pictures:
        """The pictures with a share of them, at least one, drawn by the seed, held out.

        Example:
            >>> import torch
            >>> pictures = Pictures(torch.zeros(20, 1, 2, 2, dtype=torch.uint8)).apart(0.2, seed=0)
            >>> len(pictures), len(pictures.held_out)
            (16, 4)
        """
        if len(self) < FEWEST:
            raise InputError(f"there are {len(self)} pictures; a density needs at least {FEWEST}")
        order = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))
        held = max(1, round(share * len(self)))
        kept, out = (
            replace(
                self,
                pixels=self.pixels[row],
                labels=None if self.labels is None else self.labels[row],
                held_out=None,
            )
            for row in (order[held:].sort().values, order[:held].sort().values)
        )
        return replace(kept, held_out=replace(out, flip=False))

    def save(self, path: Path) -> None:
        """Writes the bytes, those held out too, to a .npz file; labels are not kept."""
        held = self.pixels[:0] if self.held_out is None else self.held_out.pixels
        np.savez_compressed(path, pixels=self.pixels.numpy(), held_out=held.numpy())

    @classmethod
    def load(cls, path: Path) -> Pictures:
        """Reads what `save` wrote.

        Raises:
            InputError: when the file is missing or damaged.
        """
        parts = read_kept(path, "pixels", "held_out")
        if any(part.dtype != np.uint8 or part.ndim != 4 for part in parts):
            raise InputError(f"{path} holds no pictures of bytes: it is damaged")
        if parts[0].shape[1:] != parts[1].shape[1:]:
            raise InputError(f"{path}: the pictures held out have another size: it is damaged")
        try:
            return cls.of_folder(*map(torch.from_numpy, parts))
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def resized(self, side: int) -> Pictures:
        """The pictures, and those held out, at another size: each new pixel is the mean of its area.

        Example:
            >>> import torch
            >>> Pictures(torch.zeros(5, 1, 28, 28, dtype=torch.uint8)).resized(14).shape
            (1, 14, 14)
        """
        if not 1 <= side <= max(self.shape[1:]):
            raise InputError(f"pictures of {self.shape[1]}×{self.shape[2]} cannot be made {side}×{side}")
        if self.shape[1:] == (side, side):
            return self
        parts = [
            torch.nn.functional.adaptive_avg_pool2d(part.float(), side).round().to(torch.uint8)
            for part in torch.split(self.pixels, 4096)
        ]
        held_out = None if self.held_out is None else self.held_out.resized(side)
        return replace(self, pixels=torch.cat(parts), held_out=held_out)
