"""A small classifier of pictures: features and class probabilities where no standard network is at hand."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor, nn

from burnin.core import CheckpointError, InputError
from burnin.data.matching import BRIGHTEST, reshaped
from burnin.energies.layers import seeded_conv, seeded_linear
from burnin.evaluation.features import Extracted
from burnin.limits import brief, read_json, read_within
from burnin.storage import write_atomically
from burnin.training.checkpoint import load_weights, parse_tensors

FORMAT = "burnin-features-1"
CONFIG_FILE, WEIGHTS_FILE = "config.json", "model.safetensors"
WIDTH, FEATURES = 24, 64
LARGEST, MOST = 512, 100_000
"""Pixels along a side, and classes."""
SMALLEST = 7
"""Sides longer than this are halved once more."""


class ClassifierNet(nn.Module):
    """Convolutions, `features` numbers, a linear map to the classes. It normalises over no batch.

    A 3×3 convolution to `width` channels, then 4×4 convolutions of stride 2
    until no side is longer than 7; then a linear layer whose outputs are the features.

    Arguments:
        shape: (channels, height, width) of a picture.
        classes: how many.
        generator: draws the first weights.
        width: channels after the first convolution.
        features: numbers in the last hidden layer.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        generator: torch.Generator,
        *,
        width: int = WIDTH,
        features: int = FEATURES,
    ) -> None:
        super().__init__()
        channels, height, breadth = shape
        layers: list[nn.Module] = [seeded_conv(channels, width, 3, generator, padding=1), nn.GELU()]
        while max(height, breadth) > SMALLEST and min(height, breadth) >= 2:
            layers += [seeded_conv(width, 2 * width, 4, generator, stride=2, padding=1), nn.GELU()]
            height, breadth, width = height // 2, breadth // 2, 2 * width
        layers += [nn.Flatten(), seeded_linear(width * height * breadth, features, generator), nn.GELU()]
        self.body = nn.Sequential(*layers)
        self.head = seeded_linear(features, classes, generator)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Features and logits of pictures from -1 to 1."""
        features: Tensor = self.body(x)
        return features, self.head(features)


@dataclass(frozen=True, eq=False)
class Classifier:
    """A trained classifier as features.

    Attributes:
        net: the network.
        dataset: what it was trained on, with its side.
        shape: (channels, height, width) that pictures are brought to.
        classes: how many.
        accuracy: on pictures that training did not see.
        updates: of its training.
        seed: of its training.
    """

    net: ClassifierNet
    dataset: str
    shape: tuple[int, int, int]
    classes: int
    accuracy: float
    updates: int
    seed: int

    @property
    def name(self) -> str:
        """Says whose network it is and how good."""
        return f"burnin-{self.dataset} (own classifier, accuracy {self.accuracy:.2f})"

    def __call__(self, pixels: Tensor) -> Extracted:
        """Features of the last hidden layer, and class probabilities."""
        with torch.no_grad():
            features, logits = self.net(to_input(reshaped(pixels, self.shape)))
        return Extracted(features, logits.softmax(1))

    def save(self, folder: Path) -> None:
        """Writes model.safetensors, then config.json, which makes it exist; never half."""
        require_free(folder)
        folder.mkdir(parents=True, exist_ok=True)
        payload = safetensors.torch.save({k: v.contiguous() for k, v in self.net.state_dict().items()})
        content = {
            "format": FORMAT,
            "name": self.name,
            "dataset": self.dataset,
            "shape": list(self.shape),
            "classes": self.classes,
            "accuracy": self.accuracy,
            "updates": self.updates,
            "seed": self.seed,
            "sha256": hashlib.sha256(payload).hexdigest(),
        }
        write_atomically(folder / WEIGHTS_FILE, payload)
        write_atomically(folder / CONFIG_FILE, json.dumps(content, indent=1, allow_nan=False).encode())

    @classmethod
    def load(cls, folder: Path) -> Classifier:
        """What `save` wrote; reading runs no code.

        Raises:
            InputError: when a file is missing, damaged or another program's.
        """
        for file in (CONFIG_FILE, WEIGHTS_FILE):
            if not (folder / file).is_file():
                raise InputError(
                    f"{folder} holds no {file}; make a classifier there with "
                    f"burnin features train --out {folder}"
                )
        try:
            content = read_json(folder / CONFIG_FILE)
            if content["format"] != FORMAT:
                raise InputError(
                    f"{folder / CONFIG_FILE} has the format {brief(content['format'])!r}; wanted {FORMAT!r}"
                )
            payload = read_within(folder / WEIGHTS_FILE)
            if hashlib.sha256(payload).hexdigest() != content["sha256"]:
                raise InputError(f"{folder / WEIGHTS_FILE} is damaged (not its checksum); train it anew")
            channels, height, width = map(int, content["shape"])
            shape, classes = (channels, height, width), int(content["classes"])
            if not (1 <= channels <= 4 and 1 <= min(shape) <= max(shape) <= LARGEST and 1 <= classes <= MOST):
                raise ValueError(f"the shape is {shape}, and there are {classes} classes")
            net = ClassifierNet(shape, classes, torch.Generator())
            load_weights(net, parse_tensors(payload))
            accuracy, dataset = float(content["accuracy"]), str(content["dataset"])
            updates, seed = int(content["updates"]), int(content["seed"])
        except (KeyError, TypeError, ValueError, OverflowError, CheckpointError) as error:
            if isinstance(error, InputError) and str(folder) in str(error):
                raise
            raise InputError(
                f"{folder / CONFIG_FILE} is damaged ({brief(repr(error))}); train it anew"
            ) from error
        return cls(net.eval().requires_grad_(False), dataset, shape, classes, accuracy, updates, seed)


def to_input(pixels: Tensor) -> Tensor:
    """Bytes as numbers from -1 to 1."""
    return pixels.float() * (2 / BRIGHTEST) - 1


def require_free(folder: Path) -> None:
    """Raises InputError where something would be written over."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} already holds something; choose a folder that is new or empty (--out)")
