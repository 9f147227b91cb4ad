"""Features: what goes into networks, the classifier and its files, labels, pictures brought to a shape."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from burnin.core import InputError
from burnin.data.labels import load_labelled
from burnin.data.matching import like, reshaped
from burnin.data.pictures import Pictures
from burnin.evaluation.classifier import Classifier
from burnin.evaluation.classifier_training import train_classifier
from burnin.evaluation.features import Inception, ModuleFeatures, Pixels, extract, load_script
from tests.data.files import some_bytes, write_idx


class Layers(nn.Module):
    """As Inception's layers alone: it gives back what it was given, so that a test can look at it."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack(
            [x.flatten(1).amin(1), x.flatten(1).amax(1), x[:, 0, 150, 150], x[:, 2, 150, 150]], 1
        )


class WithClasses(nn.Module):
    """As the other kind of Inception file: takes bytes, has features and class probabilities."""

    def forward(self, img: Tensor, return_features: bool = False, no_output_bias: bool = False) -> Tensor:
        mean = img.float().mean(dim=[2, 3])
        if return_features:
            return mean
        return torch.softmax(mean if no_output_bias else mean + 1e6, 1)


def script(module: nn.Module, path: Path) -> Path:
    torch.jit.save(torch.jit.script(module), str(path))
    return path


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_inception_gets_what_it_was_trained_on(tmp_path: Path) -> None:
    """Grey in three colours, resized to 299, byte/128 - 1."""
    network = Inception.load(script(Layers(), tmp_path / "inception.pt"))
    assert network.name == "Inception (inception.pt)"
    grey = torch.tensor([[[[0, 0], [0, 0]]], [[[255, 255], [255, 255]]]], dtype=torch.uint8)
    found = network(grey)
    assert found.probabilities is None
    expected = torch.tensor([[-1.0] * 4, [255 / 128 - 1] * 4])
    torch.testing.assert_close(found.features, expected)
    with_classes = Inception.load(script(WithClasses(), tmp_path / "inception-2.pt"))
    found = with_classes(some_bytes(3, 3, 4, 4))
    torch.testing.assert_close(found.features, some_bytes(3, 3, 4, 4).float().mean((2, 3)))
    assert found.probabilities is not None
    torch.testing.assert_close(found.probabilities, found.features.softmax(1))


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_any_module_gives_features(tmp_path: Path) -> None:
    pixels = some_bytes(10, 1, 6, 6)
    module = ModuleFeatures(nn.Flatten(), "flat", shape=(1, 3, 3), classes=True)
    found = extract(module, pixels, batch=3)
    expected = torch.nn.functional.avg_pool2d(pixels.float(), 2).round().flatten(1) / 255
    torch.testing.assert_close(found.features, expected)
    assert found.probabilities is not None
    torch.testing.assert_close(found.probabilities.sum(1), torch.ones(10))
    torch.testing.assert_close(extract(Pixels(), pixels, batch=4).features, pixels.flatten(1) / 255)
    with pytest.raises(InputError, match=r"gives \(4,\) for 4 pictures"):
        ModuleFeatures(lambda x: x.flatten(1).sum(1), "sums")(pixels[:4])
    with pytest.raises(InputError, match="linear does not take pictures"):
        ModuleFeatures(nn.Sequential(nn.Flatten(), nn.Linear(7, 2)), "linear")(pixels)
    with pytest.raises(InputError, match="not finite"):
        extract(ModuleFeatures(lambda x: x.flatten(1).log(), "logarithm"), torch.zeros_like(pixels))
    with pytest.raises(InputError, match="no such file"):
        load_script(tmp_path / "none.pt")
    (tmp_path / "bad.pt").write_bytes(b"no network")
    with pytest.raises(InputError, match="not a TorchScript file"):
        load_script(tmp_path / "bad.pt")


def test_a_classifier_learns_and_comes_back_the_same(tmp_path: Path) -> None:
    data = load_labelled("digits8")
    made = train_classifier(data, updates=25, seed=3)
    assert made.accuracy > 0.5  # chance is 0.1
    assert made.name == f"burnin-digits8-8 (own classifier, accuracy {made.accuracy:.2f})"
    again = train_classifier(data, updates=25, seed=3)
    assert all(torch.equal(a, b) for a, b in zip(made.net.parameters(), again.net.parameters(), strict=True))
    made.save(tmp_path / "own")
    loaded = Classifier.load(tmp_path / "own")
    assert loaded.name == made.name
    first, second = made(data.test_pixels), loaded(data.test_pixels)
    assert torch.equal(first.features, second.features)
    assert first.probabilities is not None
    right = (first.probabilities.argmax(1) == data.test_labels).float().mean().item()
    assert right == pytest.approx(made.accuracy)
    with pytest.raises(InputError, match="already holds something"):
        made.save(tmp_path / "own")
    weights = tmp_path / "own" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match="damaged"):
        Classifier.load(tmp_path / "own")
    (tmp_path / "own" / "config.json").write_text(json.dumps({"format": "another"}))
    with pytest.raises(InputError, match="'another'; wanted 'burnin-features-1'"):
        Classifier.load(tmp_path / "own")
    with pytest.raises(InputError, match=r"holds no config\.json"):
        Classifier.load(tmp_path / "none")


@pytest.mark.usefixtures("small_pictures")
def test_labels_are_read_beside_the_pictures(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "mnist"
    with pytest.raises(InputError, match=r"put train-labels-idx1-ubyte\.gz into"):
        load_labelled("mnist")
    write_idx(
        folder / "train-labels-idx1-ubyte.gz", torch.tensor([3, 0, 1, 2, 4], dtype=torch.uint8), packed=True
    )
    write_idx(folder / "t10k-labels-idx1-ubyte", torch.tensor([1, 1, 0, 2, 2], dtype=torch.uint8))
    data = load_labelled("mnist", 14)
    assert (data.name, data.classes) == ("mnist-14", 5)
    assert data.labels.tolist() == [3, 0, 1, 2, 4]
    assert data.test_labels.tolist() == [1, 1, 0, 2, 2]
    assert data.pixels.shape == (5, 1, 14, 14)
    write_idx(folder / "t10k-labels-idx1-ubyte", torch.tensor([1], dtype=torch.uint8))
    with pytest.raises(InputError, match="5 pictures, and labels of shape"):
        load_labelled("mnist")
    with pytest.raises(InputError, match="no labels of 'rings10'"):
        load_labelled("rings10")


def test_pictures_are_brought_to_another_shape() -> None:
    pixels = some_bytes(4, 1, 8, 8)
    smaller = reshaped(pixels, (3, 4, 4))
    assert torch.equal(smaller[:, 0], smaller[:, 2])
    assert torch.equal(smaller[:, :1], Pictures(pixels).resized(4).pixels)
    flat = torch.full((2, 1, 3, 3), 77, dtype=torch.uint8)
    assert bool((reshaped(flat, (1, 7, 5)) == 77).all())
    colour = torch.tensor([255, 0, 0], dtype=torch.uint8).view(1, 3, 1, 1).expand(1, 3, 2, 2)
    assert reshaped(colour, (1, 2, 2)).flatten().tolist() == [76] * 4  # as Pillow makes red grey
    few = Pictures(torch.tensor([[[[0, 4, 16]]]], dtype=torch.uint8), levels=16)
    assert like(few, Pictures(torch.zeros(1, 1, 1, 3, dtype=torch.uint8))).flatten().tolist() == [0, 64, 255]
    with pytest.raises(InputError, match="2 channels cannot be given 3"):
        reshaped(some_bytes(1, 2, 4, 4), (3, 4, 4))
    assert np.array_equal(reshaped(pixels, (1, 8, 8)), pixels)
