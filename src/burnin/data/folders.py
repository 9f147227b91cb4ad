"""Folders of picture files: read as one array of bytes, and pictures written as files or as one grid."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from burnin.core import InputError
from burnin.extras import require_extra
from burnin.limits import require_room

if TYPE_CHECKING:
    from PIL import Image

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
SMALLEST, LARGEST = 4, 32
"""Pixels along a side: beyond, the networks here have too little to do or too much."""
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP")
CHANNELS, DECODING = 3, 16
"""Bytes of a pixel at most, when it is read, and while it is decoded."""
GREY = ("1", "L", "LA", "I", "I;16", "F")
GAP = 1
"""Pixels between the pictures of a grid."""


@dataclass(frozen=True, eq=False)
class PictureFolder:
    """The pictures of a folder.

    Attributes:
        pixels: (n, channels, height, width), bytes; one channel where all are grey, else three.
        files: their names, below the folder, in the order of the pictures.
        notes: what was done to them, a sentence each.
    """

    pixels: Tensor
    files: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def classes(self) -> tuple[str, ...]:
        """The subfolders, where every picture is in one: a class each, sorted."""
        parents = {Path(file).parent.name for file in self.files}
        return () if "" in parents else tuple(sorted(parents))

    @property
    def labels(self) -> Tensor | None:
        """The class of each picture, (n,); None where some are in no subfolder."""
        if not self.classes:
            return None
        return torch.tensor([self.classes.index(Path(file).parent.name) for file in self.files])


def read_folder(
    path: Path,
    *,
    side: int | None = None,
    channels: int | None = None,
    largest: int = LARGEST,
    progress: Callable[[int, int], None] | None = None,
) -> PictureFolder:
    """Reads every picture of a folder, or of its subfolders (one for each class, say), sorted by name.

    Arguments:
        path: the folder.
        side: the middle square of each is made so large, where they are larger or differ; None takes them as
            they are, all of one size.
        channels: 1 makes them grey, 3 coloured; None looks whether all are grey.
        largest: pixels that a picture may have along a side.
        progress: told how many are read, and of how many.

    Raises:
        InputError: when there are none, when one cannot be read, when sizes differ or are too large.
    """
    if side is not None and not SMALLEST <= side <= largest:
        raise InputError(f"the side is {side}; pictures must have from {SMALLEST} to {largest} pixels a side")
    files = sorted(
        file
        for pattern in ("*", "*/*")
        for file in path.glob(pattern)
        if file.suffix.lower() in ENDINGS and not file.name.startswith(".")
    )
    if not files:
        raise InputError(f"{path}: holds no pictures ({', '.join(ENDINGS)}), nor do its subfolders")
    for file in files:
        _require_written(file)
    pictures: list[Image.Image] = []
    changed = 0
    for number, file in enumerate(files, 1):
        picture = _open(file)
        if side is not None and picture.size != (side, side):
            picture, changed = squared(picture, side), changed + 1
        if side is None:
            _require_size(picture, file, pictures[0] if pictures else None, files[0], largest)
        if number == 1:
            require_room(2 * len(files) * picture.width * picture.height * CHANNELS, f"{path}")
        pictures.append(picture)
        if progress is not None:
            progress(number, len(files))
    if channels is None:
        channels = 1 if all(picture.mode == "L" for picture in pictures) else 3
    arrays = [np.asarray(picture.convert("L" if channels == 1 else "RGB")) for picture in pictures]
    pixels = torch.from_numpy(np.stack(arrays))
    pixels = pixels.unsqueeze(1) if channels == 1 else pixels.permute(0, 3, 1, 2).contiguous()
    notes = [f"{changed} pictures: the middle square, made {side}×{side}"] if changed else []
    return PictureFolder(pixels, tuple(str(file.relative_to(path)) for file in files), tuple(notes))


def read_square(file: Path, side: int) -> NDArray[np.uint8]:
    """The middle square of a picture, made so large, (side, side, 3) bytes.

    A large photograph (.jpg) is read at a fraction of its size, at least four times the side: that takes a
    fraction of the time.
    """
    if not file.is_file():
        raise InputError(f"{file}: no such file")
    return np.asarray(squared(_open(file, least=4 * side), side).convert("RGB"))


def read_missing(path: Path, files: Sequence[str], size: tuple[int, int]) -> Tensor:
    """Which pixels of pictures are transparent, by half or more, (n, height, width).

    Arguments:
        path: their folder.
        files: their names, as `read_folder` gives them.
        size: height and width that they must have.
    """
    return torch.stack([_alpha(path / file, size) < 128 for file in files])


def read_mask(file: Path, size: tuple[int, int]) -> Tensor:
    """Which pixels of a black and white picture are white, (height, width)."""
    mask = torch.from_numpy(np.array(_open(file).convert("L"))) >= 128
    if tuple(mask.shape) != size:
        raise InputError(f"{file}: the mask must be {size[0]}×{size[1]}, as the pictures")
    return mask


def write_pictures(
    folder: Path, brightness: Tensor, first: int = 0, *, names: Sequence[str] | None = None
) -> None:
    """Writes pictures, (n, channels, height, width) from 0 to 1, as 00001.png, 00002.png, …

    With `names`, as .png under these names, which may have folders before them.
    """
    for number, picture in enumerate(brightness):
        own = f"{first + number + 1:05d}" if names is None else names[number]
        file = (folder / own).with_suffix(".png")
        file.parent.mkdir(parents=True, exist_ok=True)
        _image(picture).save(file)


def write_grid(path: Path, brightness: Tensor) -> None:
    """Writes pictures, (n, channels, height, width) from 0 to 1, as one, as square as it goes."""
    n, channels, height, width = brightness.shape
    across = math.ceil(math.sqrt(n))
    down = math.ceil(n / across)
    grid = torch.ones(channels, down * (height + GAP) - GAP, across * (width + GAP) - GAP)
    for index, picture in enumerate(brightness):
        top, left = index // across * (height + GAP), index % across * (width + GAP)
        grid[:, top : top + height, left : left + width] = picture
    scale = max(1, 512 // max(grid.shape[1:]))  # small pictures are looked at, not measured
    image = _image(grid)
    image.resize((image.width * scale, image.height * scale), resample=0).save(path)


def _open(file: Path, least: int | None = None) -> Image.Image:
    """A picture as `plain` makes it, its turn by the camera undone."""
    # Pillow is loaded where pictures are.
    require_extra("PIL")
    from PIL import ImageOps

    def read(opened: Image.Image) -> Image.Image:
        if least is not None:
            opened.draft(None, (least, least))
        opened.load()
        return plain(ImageOps.exif_transpose(opened))

    return _decoded(file, read)


def _decoded(file: Path, read: Callable[[Image.Image], Image.Image]) -> Image.Image:
    """What is read of a picture.

    Only by the decoders of `FORMATS`, whatever the name says: others of Pillow's start other programs.
    """
    require_extra("PIL")
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=FORMATS) as opened:
                require_room(DECODING * opened.width * opened.height, f"{file}")
                return read(opened)
    except InputError:
        raise
    except Exception as error:  # Pillow has no common error for a damaged file
        raise InputError(f"{file}: not a readable picture: it is damaged, cut short or too large") from error


def plain(picture: Image.Image) -> Image.Image:
    """A picture in grey (L) or colour (RGB), what is transparent on white."""
    from PIL import Image

    grey = picture.mode in GREY
    if picture.mode in ("I", "I;16", "F"):  # 16 bits: Pillow would cut them off at 255
        values = np.asarray(picture, dtype=np.float64)
        return Image.fromarray((values / max(255.0, values.max()) * 255).astype(np.uint8))
    if "transparency" in picture.info or picture.mode in ("RGBA", "LA", "PA"):
        over = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", over.size, "white"), over)
    return picture.convert("L" if grey else "RGB")


def _alpha(file: Path, size: tuple[int, int]) -> Tensor:
    """How much of each pixel is there, 0 to 255, (height, width)."""
    require_extra("PIL")
    from PIL import ImageOps

    alpha = np.array(
        _decoded(file, lambda opened: ImageOps.exif_transpose(opened).convert("RGBA").getchannel("A"))
    )
    if alpha.shape != size:
        raise InputError(
            f"{file}: to have pixels filled in, a picture must be {size[0]}×{size[1]}, as those fitted to"
        )
    return torch.from_numpy(alpha)


def squared(picture: Image.Image, side: int) -> Image.Image:
    """The middle square, each new pixel the mean of its area."""
    from PIL import Image, ImageOps

    return ImageOps.fit(picture, (side, side), method=Image.Resampling.BOX)


def _require_written(file: Path) -> None:
    """Raises InputError when a file's name cannot be written in a table or a report."""
    try:
        str(file).encode()
    except UnicodeEncodeError:
        raise InputError(f"{str(file)!a}: the name is no UTF-8 text; rename the file") from None


def _require_size(
    picture: Image.Image, file: Path, first: Image.Image | None, first_file: Path, largest: int
) -> None:
    if first is not None and picture.size != first.size:
        raise InputError(
            f"{file.parent}: sizes differ ({first_file.name} is {first.width}×{first.height}, {file.name} is "
            f"{picture.width}×{picture.height}); make them one size with --side N (data.side in a recipe)"
        )
    if max(picture.size) > largest or min(picture.size) < SMALLEST:
        raise InputError(
            f"{file}: the picture is {picture.width}×{picture.height}; from {SMALLEST}×{SMALLEST} to "
            f"{largest}×{largest} can be learned: resize with --side N (data.side in a recipe), such as "
            f"--side {LARGEST}"
        )


def _image(picture: Tensor) -> Image.Image:
    require_extra("PIL")
    from PIL import Image

    bytes_ = (picture.clamp(0, 1) * 255).round().to(torch.uint8)
    if len(bytes_) == 1:
        return Image.fromarray(bytes_[0].numpy())
    return Image.fromarray(bytes_.permute(1, 2, 0).contiguous().numpy())
