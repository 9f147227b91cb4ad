"""What pictures are compared by: networks from pictures to features, each with a name for its numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from burnin.core import InputError, Report
from burnin.data.matching import BRIGHTEST, reshaped

INCEPTION_SIDE = 299
INCEPTION_PLACE = Path("inception") / "inception-2015-12-05.pt"
"""Where the weights are looked for, below the folder of the data sets."""
BATCH = 64
NO_CLASSES = (
    "this network has no classes, so there is no Inception Score; use one with class probabilities, such as "
    "a classifier of `burnin features train`"
)


class Extracted(NamedTuple):
    """What a network says of pictures.

    Attributes:
        features: (n, d).
        probabilities: of each class, (n, classes), rows summing to 1; None for a network without classes.
    """

    features: Tensor
    probabilities: Tensor | None


class Features(Protocol):
    """Pictures in, features out."""

    @property
    def name(self) -> str:
        """Printed beside every number, so that nobody mistakes one network's distances for another's."""
        ...

    def __call__(self, pixels: Tensor) -> Extracted:
        """Features of pictures of bytes, 255 the brightest, (n, channels, height, width)."""
        ...


@dataclass(frozen=True)
class Pixels:
    """The pixels themselves, from 0 to 1: no network, so that nothing is to be trained or found.

    Example:
        >>> import torch
        >>> Pixels()(torch.full((2, 1, 4, 4), 255, dtype=torch.uint8)).features.shape
        torch.Size([2, 16])
    """

    name: str = "pixels"

    def __call__(self, pixels: Tensor) -> Extracted:
        """The flat pictures."""
        return Extracted(pixels.flatten(1).float() / BRIGHTEST, None)


@dataclass(frozen=True)
class ModuleFeatures:
    """Any torch module or TorchScript file: pictures from 0 to 1 in, (n, d) out.

    Arguments:
        module: the network; it is used as it is, in evaluation mode.
        name: printed beside every number.
        shape: (channels, height, width) that it takes; None leaves pictures as they are.
        classes: whether its outputs are logits of classes, which the Inception Score needs.
    """

    module: Callable[[Tensor], Any]
    name: str
    shape: tuple[int, int, int] | None = None
    classes: bool = False

    def __call__(self, pixels: Tensor) -> Extracted:
        """The module's outputs."""
        if self.shape is not None:
            pixels = reshaped(pixels, self.shape)
        out = _called(self.module, pixels.float() / BRIGHTEST, self.name)
        return Extracted(out, out.softmax(1) if self.classes else None)


@dataclass(frozen=True)
class Inception:
    """The Inception network of the Fréchet Inception Distance, from a TorchScript file: 2048 pool features.

    Two kinds of files go by the same name. One holds the layers alone and takes RGB of 299×299, resized
    bilinearly, as byte/128 - 1; it has no classes. The other takes bytes, resizes by itself, and has
    class probabilities, which are told by its argument `return_features`.

    Arguments:
        module: what `torch.jit.load` gives.
        name: printed beside every number.
    """

    module: torch.jit.ScriptModule
    name: str = "Inception"

    @classmethod
    def load(cls, path: Path) -> Inception:
        """The network in a TorchScript file.

        Raises:
            InputError: when the file is missing or no TorchScript.
        """
        return cls(load_script(path), f"Inception ({path.name})")

    def __call__(self, pixels: Tensor) -> Extracted:
        """Pool features; class probabilities where the file has them."""
        pixels = reshaped(pixels, (3, *pixels.shape[2:]))
        if "return_features" in _arguments(self.module):
            with torch.no_grad():
                features = self.module(pixels, return_features=True)
                probabilities = self.module(pixels, no_output_bias=True)
            return Extracted(features.float(), probabilities.float())
        x = torch.nn.functional.interpolate(
            pixels.float(), size=(INCEPTION_SIDE, INCEPTION_SIDE), mode="bilinear", align_corners=False
        )
        return Extracted(_called(self.module, x / 128 - 1, self.name), None)


def extract(
    features: Features,
    pixels: Tensor,
    *,
    batch: int = BATCH,
    what: str = "features",
    report: Report | None = None,
) -> Extracted:
    """Features of any number of pictures, a batch at a time.

    Raises:
        InputError: when there are no pictures, or a feature is not finite.
    """
    if len(pixels) == 0:
        raise InputError(f"{what}: there are no pictures")
    parts = []
    done = 0
    for part in torch.split(pixels, batch):
        parts.append(features(part))
        done += len(part)
        if report is not None:
            report(what, done, len(pixels))
    found = torch.cat([part.features for part in parts])
    if not bool(found.isfinite().all()):
        raise InputError(f"{features.name} gives features that are not finite; use another network")
    given = [part.probabilities for part in parts if part.probabilities is not None]
    return Extracted(found, torch.cat(given) if given else None)


def load_script(path: Path) -> torch.jit.ScriptModule:
    """A TorchScript file, on the processor, in evaluation mode.

    TorchScript is a program: open files only from those whom you trust.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; wanted a network in TorchScript (.pt), or a folder")
    try:
        module: torch.jit.ScriptModule = torch.jit.load(str(path), map_location="cpu")  # type: ignore[no-untyped-call]
    except (RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0][:200]
        raise InputError(
            f"{path}: not a TorchScript file ({reason}); write one with torch.jit.save"
        ) from None
    return module.eval()


def _arguments(module: torch.jit.ScriptModule) -> set[str]:
    return {argument.name for argument in module.forward.schema.arguments}  # type: ignore[attr-defined]


def _called(module: Callable[[Tensor], Any], x: Tensor, name: str) -> Tensor:
    """A network's output for a batch, as (n, d)."""
    if isinstance(module, nn.Module):
        module.eval()
    try:
        with torch.no_grad():
            out = module(x)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1][:200]
        raise InputError(f"{name} does not take pictures of {tuple(x.shape[1:])}: {reason}") from error
    if not isinstance(out, Tensor) or out.dim() < 2 or len(out) != len(x):
        got = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        raise InputError(f"{name} gives {got} for {len(x)} pictures; wanted a tensor of ({len(x)}, d)")
    return out.flatten(1).float()
