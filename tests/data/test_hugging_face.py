"""Data sets of the hub, through a module of the same shape as the package `datasets`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from burnin.core import InputError
from burnin.data import Pictures, make_density
from burnin.data.hugging_face import load_hugging_face
from tests.data.files import some_bytes


@dataclass
class Picture:
    """As `datasets.Image`: a column of pictures."""


@dataclass
class ClassLabel:
    """As `datasets.ClassLabel`: a column of classes."""

    names: list[str]


@dataclass
class Value:
    """As `datasets.Value`: a column of anything."""

    dtype: str


class Rows:
    """As `datasets.Dataset`: rows by number, and the kinds of columns."""

    def __init__(self, features: dict[str, Any], rows: list[dict[str, Any]]) -> None:
        self.features, self.rows = features, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> dict[str, Any]:
        return self.rows[place]


FEATURES = {"id": Value("int64"), "img": Picture(), "animal": ClassLabel(["cat", "dog"])}


def rows(pixels: torch.Tensor, features: dict[str, Any] | None = None) -> Rows:
    images = [Image.fromarray(p.permute(1, 2, 0).squeeze(2).numpy()) for p in pixels]
    made = [{"id": i, "img": image, "animal": i % 2} for i, image in enumerate(images)]
    return Rows(FEATURES if features is None else features, made)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str | None], dict[str, Rows]]:
    """The data sets of a hub, by name and subset."""
    found: dict[tuple[str, str | None], dict[str, Rows]] = {}
    module = ModuleType("datasets")

    def load_dataset(path: str, name: str | None = None) -> dict[str, Rows]:
        if (path, name) not in found:
            raise FileNotFoundError(f"Dataset '{path}' doesn't exist on the Hub\nor cannot be accessed")
        return found[path, name]

    module.load_dataset = load_dataset  # type: ignore[attr-defined]
    module.Image = Picture  # type: ignore[attr-defined]
    module.ClassLabel = ClassLabel  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)
    return found


def test_splits_columns_and_labels_are_found(hub: dict[Any, Any]) -> None:
    training, test = some_bytes(6, 3, 9, 8), some_bytes(4, 3, 9, 8, seed=1)
    hub["some/pets", None] = {"validation": rows(training[:1]), "test": rows(test), "train": rows(training)}
    pictures = make_density("hf:some/pets")
    assert isinstance(pictures, Pictures)
    assert pictures.held_out is not None
    for part, own in ((pictures, training), (pictures.held_out, test)):
        assert torch.equal(part.pixels, own)
        assert part.labels is not None
        assert part.labels.tolist() == [i % 2 for i in range(len(own))]
        assert part.classes == ("cat", "dog")
        assert (part.low, part.high) == (-1.0, 1.0)


def test_a_tenth_is_held_out_of_an_only_split(hub: dict[Any, Any]) -> None:
    pixels = torch.arange(20, dtype=torch.uint8).reshape(20, 1, 1, 1).expand(20, 1, 4, 4).contiguous()
    hub["grey", "small"] = {"everything": rows(pixels)}
    told: list[tuple[str, int, int]] = []
    pictures = load_hugging_face("grey:small", report=lambda *said: told.append(said))
    assert pictures.held_out is not None
    assert (len(pictures), len(pictures.held_out), pictures.shape) == (18, 2, (1, 4, 4))
    for part in (pictures, pictures.held_out):
        assert part.labels is not None
        assert torch.equal(part.labels, part.pixels[:, 0, 0, 0].long() % 2)
        assert (part.low, part.high, part.classes) == (-1.0, 1.0, ("cat", "dog"))
    assert told[-1] == ("reading everything", 20, 20)


def test_pictures_of_many_sizes_and_kinds_are_made_alike(hub: dict[Any, Any]) -> None:
    kinds = [
        Image.new("L", (30, 20), 100),
        Image.new("RGB", (9, 12), (10, 20, 30)),
        Image.new("RGBA", (16, 16), (0, 0, 0, 0)),
    ]
    made = Rows({"image": Picture()}, [{"image": image} for image in kinds])
    hub["odd", None] = {"train": made, "test": made}
    pictures = load_hugging_face("odd", side=8)
    assert pictures.shape == (3, 8, 8)
    assert pictures.labels is None
    means = pictures.pixels.float().mean((2, 3)).tolist()
    assert np.allclose(means, [[100] * 3, [10, 20, 30], [255] * 3])
    with pytest.raises(InputError, match=r"hf:odd: sizes of pictures differ; .*data\.side"):
        load_hugging_face("odd")
    with pytest.raises(InputError, match="hf:odd: a split has no column of classes"):
        load_hugging_face("odd", side=8, labelled=True)


def test_grey_beside_colour_is_colour(hub: dict[Any, Any]) -> None:
    hub["mixed", None] = {"train": rows(some_bytes(3, 1, 6, 6)), "test": rows(some_bytes(2, 3, 6, 6))}
    pictures = load_hugging_face("mixed")
    assert pictures.shape == (3, 6, 6)
    assert torch.equal(pictures.pixels[:, 0], pictures.pixels[:, 2])


def test_what_cannot_be_loaded_is_said_in_a_line(hub: dict[Any, Any]) -> None:
    with pytest.raises(
        InputError, match=r"^hf:no/where cannot be loaded \(Dataset 'no/where' .* Hub or cannot"
    ):
        load_hugging_face("no/where")
    hub["text", None] = {"train": Rows({"words": Value("string")}, [{"words": "a"}])}
    with pytest.raises(InputError, match=r"hf:text: no column of pictures \(Image\) among words \(Value\)"):
        load_hugging_face("text")
    hub["none", None] = {}
    with pytest.raises(InputError, match="hf:none has no splits"):
        load_hugging_face("none")
    hub["empty", None] = {"train": rows(some_bytes(0, 3, 4, 4))}
    with pytest.raises(InputError, match="hf:empty: a split is empty"):
        load_hugging_face("empty")
    hub["huge", None] = {"train": rows(torch.zeros(1, 3, 4, 600, dtype=torch.uint8))}
    with pytest.raises(InputError, match=r"hf:huge: pictures of 600×4; set data.side"):
        load_hugging_face("huge")
    hub["two", None] = {"train": rows(some_bytes(2, 3, 4, 4)), "test": rows(some_bytes(2, 3, 5, 4))}
    with pytest.raises(InputError, match="train and test differ in size"):
        load_hugging_face("two")
    with pytest.raises(InputError, match="such as hf:owner/name"):
        load_hugging_face("")


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r"pip install 'burnin\[hf\]'"):
        make_density("hf:some/pets")
