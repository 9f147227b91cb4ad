"""The commands `data list` and `data get`, and what recipes say of pictures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from burnin.assemble_data import build_data
from burnin.config import dump_config, load_config
from burnin.core import InputError
from burnin.data import NoisyDensity, Pictures, held_out
from burnin.data.folders import write_pictures
from tests.data.files import some_bytes, write_cifar, write_flowers
from tests.data.serving import Served
from tests.data.test_named_pictures import server
from tests.test_cli import Burnin, assert_refused, burnin

__all__ = ["burnin", "server"]

RECIPE = """
base = "digits"
title = "pictures"
[data]
name = "cifar10"
noise = 0.0
"""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BURNIN_DATA", str(tmp_path / "data"))
    write_cifar(tmp_path / "data" / "cifar-10-batches-bin")
    write_flowers(tmp_path / "data" / "flowers", labels=False)
    return tmp_path / "data"


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    path = tmp_path / "pictures.toml"
    path.write_text(RECIPE, encoding="utf-8")
    return str(path)


def built(recipe: str, *changes: str) -> Pictures:
    found = build_data(load_config(recipe, list(changes)))
    assert isinstance(found, Pictures)
    return found


def test_list_says_what_is_there(burnin: Burnin, data: Path) -> None:
    result = burnin("data", "list")
    assert result.code == 0
    lines = {line.split()[0]: line for line in result.out.splitlines()}
    assert lines["cifar10"].endswith(f"in {data / 'cifar-10-batches-bin'}")
    assert lines["flowers"].endswith(f"in {data / 'flowers'}, without labels")
    assert lines["mnist"].endswith("not there, 12 MB to download")
    assert str(data) in result.err
    answer = json.loads(burnin("data", "list", "--json").out)
    assert answer["folder"] == str(data)
    there = {one["name"]: (one["there"], one["labels"]) for one in answer["sets"]}
    assert there == {
        "mnist": (False, False),
        "fashion-mnist": (False, False),
        "cifar10": (True, True),
        "svhn": (False, False),
        "flowers": (True, False),
    }


def test_get_downloads_with_labels(burnin: Burnin, data: Path, server: Served) -> None:
    result = burnin("data", "get", "mnist", "cifar10", "--json")
    assert result.code == 0, result.err
    answer = json.loads(result.out)
    assert [one["labels"] for one in answer["sets"]] == [True, True]
    assert [one["place"] for one in answer["sets"]] == [
        str(data / "mnist"),
        str(data / "cifar-10-batches-bin"),
    ]
    assert len(server.asked) == 4, "cifar10 was there"
    assert burnin("data", "get", "mnist").out == f"mnist: in {data / 'mnist'}\n"


def test_get_refuses_in_a_line(burnin: Burnin, data: Path) -> None:
    assert_refused(burnin("data", "get", "mnist", "svnh"), "unknown set of pictures 'svnh'", "'svhn'")
    assert_refused(burnin("data", "get", "mnist"), "t10k-labels-idx1-ubyte.gz into", "BURNIN_OFFLINE")


@pytest.mark.parametrize("command", [("data",), ("data", "list"), ("data", "get")])
def test_help_shows_an_example(burnin: Burnin, command: tuple[str, ...]) -> None:
    assert "Example: burnin data" in burnin(*command, "--help").out


@pytest.mark.usefixtures("data")
def test_training_downloads_what_it_needs(burnin: Burnin, server: Served, recipe: str) -> None:
    changes = ("--set", "data.name=mnist", "--set", "data.side=4", "--set", "run.updates=1")
    result = burnin("train", recipe, *changes, "--set", "run.batch_size=2", "--out", "run")
    assert result.code == 0, result.err
    assert "train-images-idx3-ubyte.gz, kB" in result.err
    assert len(server.asked) == 4


@pytest.mark.usefixtures("data")
def test_range_flip_and_side_of_a_recipe(recipe: str) -> None:
    plain = built(recipe)
    assert (plain.low, plain.high, plain.flip, plain.shape) == (-1.0, 1.0, False, (3, 32, 32))
    changed = built(recipe, "data.range=[0.0, 1.0]", "data.flip=true", "data.side=8")
    assert (changed.low, changed.high, changed.flip, changed.shape) == (0.0, 1.0, True, (3, 8, 8))
    judged = held_out(changed)
    assert isinstance(judged, Pictures)
    assert (judged.low, judged.high, judged.flip, judged.shape) == (0.0, 1.0, False, (3, 8, 8))
    x = judged.sample(4, torch.Generator().manual_seed(0))
    assert 0.0 <= x.min() < x.max() <= 1.0
    assert changed.labels is not None
    flipped = built(recipe, "data.flip=true", "data.logit=true")
    assert flipped.flip
    assert flipped.logit
    assert flipped.held_out is not None
    assert flipped.held_out.logit
    noisy = build_data(load_config(recipe, ["data.noise=0.1", "data.flip=true"]))
    assert isinstance(noisy, NoisyDensity)


@pytest.mark.usefixtures("data")
def test_flowers_are_read_at_the_side_of_the_recipe(recipe: str) -> None:
    assert built(recipe, "data.name=flowers", "data.side=40").shape == (3, 40, 40)


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["data.range=[1.0, 0.0]"], "1 to 0; it must rise"),
        (["data.range=[0.0, 1.0]", "data.logit=true"], "leave out data.range"),
        (["data.range=[0.0]"], "data.range"),
        (["data.name=moons", "data.flip=true"], "data.flip is for pictures"),
        (["data.name=moons", "data.range=[0.0, 1.0]"], "data.range is for pictures"),
        (["data.folder=somewhere"], "either a name"),
    ],
)
def test_settings_that_make_no_sense_are_refused(recipe: str, changes: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        built(recipe, *changes)


def test_a_folder_of_pictures_by_recipe(recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pixels = some_bytes(30, 3, 12, 12)
    names = [f"{'ab'[number % 2]}/{number:02d}" for number in range(30)]
    write_pictures(tmp_path / "own", pixels / 255, names=names)
    text = Path(recipe).read_text(encoding="utf-8").replace('name = "cifar10"', 'folder = "own"')
    Path(recipe).write_text(text.replace('base = "digits"\n', "") + SETTINGS, encoding="utf-8")
    pictures = built(recipe)
    assert (len(pictures), pictures.shape, pictures.classes) == (27, (3, 12, 12), ("a", "b"))
    assert pictures.held_out is not None
    assert len(pictures.held_out) == 3
    assert pictures.held_out.labels is not None
    order = torch.argsort(torch.arange(30) % 2, stable=True)  # by name, subfolder by subfolder
    known = {
        bytes(picture.flatten().tolist()): int(number) % 2
        for number, picture in zip(order, pixels[order], strict=True)
    }
    for picture, label in zip(pictures.held_out.pixels, pictures.held_out.labels, strict=True):
        assert known[bytes(picture.flatten().tolist())] == int(label)
    other = built(recipe, "run.seed=5")
    assert torch.equal(other.pixels, pictures.pixels), "whatever the seed"


def test_the_settings_are_kept_in_a_run(recipe: str, tmp_path: Path) -> None:
    config = load_config(recipe, ["data.range=[0.0, 1.0]", "data.flip=true"])
    (tmp_path / "kept.toml").write_text(dump_config(config), encoding="utf-8")
    assert load_config(str(tmp_path / "kept.toml"), []).data == config.data


SETTINGS = """
[model]
temperature = 1.0
[scheme]
name = "data"
[sampler]
num_steps = 2
step_size = 0.1
"""
