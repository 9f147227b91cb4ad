"""Every reader of files, each with valid files of its own, and how these are changed."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import random
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from scipy.io import savemat

from burnin.assemble import build_trainer, load_model
from burnin.config import in_folder, load_config, read_run_config
from burnin.core import InputError
from burnin.correcting import read_choice
from burnin.data import EncodedRows, Frame, Pictures, load_frame, load_table
from burnin.data.cifar import _read_pickle, _read_records
from burnin.data.encoding import Encoding
from burnin.data.fetching import unpack
from burnin.data.folders import read_folder, read_missing, read_square
from burnin.data.idx import read_idx
from burnin.data.matlab import read_mat
from burnin.estimator import EnergyDensity
from burnin.evaluation import MixtureBase
from burnin.evaluation.classifier import Classifier, ClassifierNet
from burnin.fitted import FittedTable
from burnin.interop import from_pretrained, save_pretrained
from burnin.limits import naming, read_json
from burnin.provenance import read_origin
from burnin.runs import diagnose_metrics, train_in
from burnin.samplers import Engine
from burnin.settings import Config
from burnin.training import load_checkpoint
from burnin.training.checkpoint import parse_tensors
from tests.data.files import some_bytes, write_cifar_binary, write_cifar_pickle, write_idx
from tests.fuzz import mutate

RECIPE = """title = "tiny"
cost = "nothing"
[run]
updates = 3
batch_size = 8
tensorboard = false
[data]
name = "moons"
noise = 0.1
[model]
temperature = 1.0
width = [4, 4]
frequencies = [1.0, 2.5]
average = 0.9
[scheme]
name = "hybrid"
beta = [[0, 0.0], [10, 0.5]]
[noise]
scale = [1.0, 2.0]
[sampler]
kind = "langevin"
num_steps = 3
step_size = [[0, 0.1], [2, 0.01]]
scale = "fisher"
[sampler_from_noise]
num_steps = 2
heat = [[0, 4.0], [1, 1.0]]
[optimizer]
name = "Adam"
decay = "cosine"
[optimizer.options]
betas = [0.5, 0.9]
[[expected]]
scheme = "hybrid"
metric = "kl"
at_most = 0.5
"""
CSV = """name,size,colour,height
a,1.5,red,170
b,2,green,180.25
"c ""x"" y",-3e-2,red,
d,NA,blue,165
e,7,green,1e3
f,8,red,12
"""


@dataclass(frozen=True)
class Target:
    """A reader at work.

    Attributes:
        files: what is changed, and how.
        read: reads all of it.
        mend: makes checksums right again, as a stranger would.
    """

    files: tuple[tuple[Path, mutate.Change], ...]
    read: Callable[[], object]
    mend: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Made:
    """What several readers read, made once: a run, a fitted table, and the model of that."""

    run: Path
    fit: Path
    table: FittedTable


def make(folder: Path) -> Made:
    """Trains the tiny models whose files are changed."""
    recipe = folder / "recipe.toml"
    recipe.write_text(RECIPE, encoding="utf-8")
    train_in(folder / "run", load_config(str(recipe)), resume=False, engine=Engine("never"))
    stream = np.random.default_rng(0)
    words = stream.choice(["red", "green", "blue"], size=40).astype(object)
    columns: dict[str, Any] = {"height": stream.normal(size=40), "colour": words}
    columns |= {"rooms": stream.poisson(3, 40).astype(float), "same": np.full(40, 2.0)}
    EnergyDensity(max_updates=2, random_state=0, particles=16).fit_in(Frame(columns), folder / "fit")
    return Made(folder / "run", folder / "fit", FittedTable.load(folder / "fit", Engine("never")))


def targets(folder: Path, made: Made) -> dict[str, tuple[int, Target]]:
    """Every reader by name, with how often it is called, in cases of a thousand."""
    return {**_tables(folder), **_pictures(folder), **_runs(folder, made), **_models(folder, made)}


def _tables(folder: Path) -> dict[str, tuple[int, Target]]:
    csv, npy, npz, parquet = (folder / f"table.{ending}" for ending in ("csv", "npy", "npz", "parquet"))
    csv.write_text(CSV, encoding="utf-8")
    numbers = folder / "numbers.csv"
    numbers.write_text("height,weight\n" + "".join(f"{i},{i * i / 7}\n" for i in range(8)), encoding="utf-8")
    rows = np.arange(12.0).reshape(4, 3)
    np.save(npy, rows)
    np.savez_compressed(npz, rows=rows)
    import pyarrow
    import pyarrow.parquet

    made = pyarrow.table(
        {"a": [1.0, 2.0, None], "b": ["x", "y", None], "c": [True, False, True], "d": [1, 2, 3]}
    )
    pyarrow.parquet.write_table(made, parquet)
    frame = {
        "csv": (90, csv, mutate.words, load_frame),
        "csv of numbers": (60, numbers, mutate.words, load_table),
        "npy": (60, npy, mutate.npy_file, load_frame),
        "npz": (40, npz, mutate.zipped(mutate.npy_file), load_table),
        "parquet": (15, parquet, mutate.octets, load_frame),
    }
    return {name: (weight, _one(path, change, read)) for name, (weight, path, change, read) in frame.items()}


def _pictures(folder: Path) -> dict[str, tuple[int, Target]]:
    found: dict[str, tuple[int, Target]] = {}
    for ending, change in (
        ("png", mutate.png_file),
        *((e, mutate.octets) for e in ("jpg", "gif", "bmp", "webp")),
    ):
        place = folder / f"pictures-{ending}"
        place.mkdir()
        file = place / f"one.{ending}"
        mode = "RGBA" if ending in ("png", "webp") else "RGB"
        pixels = some_bytes(8, 8, len(mode)).numpy()
        Image.fromarray(pixels, mode=None).save(file)

        def look(place: Path = place, file: Path = file) -> None:
            seen = read_folder(place)
            read_missing(place, seen.files, tuple(seen.pixels.shape[2:]))  # type: ignore[arg-type]
            read_square(file, 4)

        found[ending] = (30 if ending == "png" else 20, Target(((file, change),), look))
    idx, packed = folder / "pictures-idx3-ubyte", folder / "packed-idx3-ubyte.gz"
    write_idx(idx, some_bytes(3, 4, 4))
    write_idx(packed, some_bytes(3, 4, 4), packed=True)
    found["idx"] = 60, _one(idx, mutate.idx_file, read_idx)
    found["idx.gz"] = 40, _one(packed, mutate.gzipped(mutate.idx_file), read_idx)
    write_cifar_binary(folder, some_bytes(2, 3, 32, 32), [1, 2], "records")
    write_cifar_pickle(folder, some_bytes(1, 3, 32, 32), [1], "pickle")
    found["cifar records"] = 30, _one(folder / "records.bin", mutate.octets, _read_records)
    found["cifar pickle"] = 60, _one(folder / "pickle", mutate.pickle_file, _read_pickle)
    for name, pack in (("mat", False), ("packed mat", True)):
        file = folder / f"{name.replace(' ', '-')}.mat"
        savemat(file, {"X": some_bytes(4, 4, 3, 2).numpy(), "y": np.array([[1], [2]])}, do_compression=pack)
        found[name] = 20, _one(file, mutate.octets, lambda path: read_mat(path, "X", "y"))
    archive = folder / "set.tar.gz"
    with tarfile.open(archive, "w:gz") as made:
        for name in ("a/one.bin", "a/two.bin"):
            member = tarfile.TarInfo(name)
            member.size = 600
            made.addfile(member, io.BytesIO(bytes(600)))
    found["tar.gz"] = 5, _one(archive, mutate.tar_file, lambda path: _unpack(path, folder / "unpacked"))
    return found


def _runs(folder: Path, made: Made) -> dict[str, tuple[int, Target]]:
    """A run's own files, and recipes."""
    run, fit = made.run, made.fit
    recipe = folder / "mine.toml"
    recipe.write_text('base = "rings"\n' + RECIPE, encoding="utf-8")
    config = in_folder(read_run_config(run), run)
    noise = build_trainer(config, Engine("never")).chain_noise()
    state = max(run.glob("checkpoint-*.json"))  # the newest, which is the one that is read
    tensors = run / json.loads(state.read_bytes())["tensors"]
    checkpoint = Target(
        ((state, mutate.json_text), (tensors, mutate.safetensors_file)),
        lambda: load_checkpoint(run),
        lambda: _sign_checkpoint(state, tensors),
    )
    copied = folder / "copied.safetensors"
    copied.write_bytes(tensors.read_bytes())
    fitted = json.loads((fit / "fitted.json").read_text(encoding="utf-8"))
    assert fitted["format"]
    table, model = made.table, made.table.model
    kept = {
        "origin.json": (30, run / "origin.json", lambda path: read_origin(run)),
        "choice.json": (40, fit / "choice.json", lambda path: read_choice(fit)),
        "fitted.json": (
            40,
            fit / "fitted.json",
            lambda path: FittedTable.of(read_json(path), model, table.encoding, table.config, str(path)),
        ),
        "encoding.json": (60, fit / "encoding.json", Encoding.load),
    }
    pictures = folder / "pictures.npz"
    Pictures(some_bytes(12, 1, 4, 4), low=0.0, high=1.0).apart(0.2, seed=0).save(pictures)
    arrays = {
        "rows.npz": (20, fit / "rows.npz", EncodedRows.load),
        "base.npz": (20, fit / "base.npz", MixtureBase.load),
        "pictures.npz": (20, pictures, Pictures.load),
    }
    return {
        "recipe": (50, _one(recipe, mutate.words, lambda path: load_config(str(path)))),
        "config.toml": (40, _one(run / "config.toml", mutate.words, lambda path: read_run_config(run))),
        "run": (3, _one(run / "config.toml", mutate.settings, lambda path: load_model(run, Engine("never")))),
        "safetensors": (150, _one(copied, mutate.safetensors_file, _tensors)),
        "checkpoint": (30, checkpoint),
        "restore": (5, replace(checkpoint, read=lambda: _restore(config, run))),
        "metrics.jsonl": (
            15,
            _one(run / "metrics.jsonl", mutate.words, lambda path: diagnose_metrics(path, noise)),
        ),
        **{name: (weight, _one(path, mutate.json_text, read)) for name, (weight, path, read) in kept.items()},
        **{
            name: (weight, _one(path, mutate.zipped(mutate.npy_file), read))
            for name, (weight, path, read) in arrays.items()
        },
    }


def _models(folder: Path, made: Made) -> dict[str, tuple[int, Target]]:
    """Folders with config.json and model.safetensors."""
    exported, classifier = folder / "exported", folder / "classifier"
    save_pretrained(made.fit, exported)
    net = ClassifierNet((1, 8, 8), 3, torch.Generator().manual_seed(0))
    Classifier(net, "digits8", (1, 8, 8), 3, 0.9, 1, 0).save(classifier)
    reads: dict[str, tuple[int, Path, Callable[[Path], object]]] = {
        "exported": (6, exported, lambda path: from_pretrained(path, Engine("never"))),
        "classifier": (8, classifier, Classifier.load),
    }

    def target(path: Path, read: Callable[[Path], object]) -> Target:
        config, weights = path / "config.json", path / "model.safetensors"
        files = ((config, mutate.json_text), (weights, mutate.safetensors_file))
        return Target(files, lambda: read(path), lambda: _sign(config, weights))

    return {name: (weight, target(path, read)) for name, (weight, path, read) in reads.items()}


def _one(path: Path, change: mutate.Change, read: Callable[[Path], object]) -> Target:
    return Target(((path, change),), lambda: read(path))


def _restore(config: Config, run: Path) -> None:
    """A new trainer each time, and an update: what a checkpoint has put in must be of use, too."""
    with naming(run):
        trainer = build_trainer(config, Engine("never"))
        trainer.restore(load_checkpoint(run))
    trainer.update()


def _unpack(path: Path, folder: Path) -> None:
    """Into a folder in a folder: whatever lies beside it was led out of it."""
    unpack(path, folder / "inside")
    assert [made.name for made in folder.iterdir()] == ["inside"]


def _tensors(path: Path) -> None:
    """The tensors of one file, in the words of those who name it."""
    try:
        parse_tensors(path.read_bytes())
    except InputError as error:
        raise InputError(f"{path} {error}") from error


def _sign(config: Path, weights: Path) -> None:
    """The checksum of the weights in the JSON, where that still is a table."""
    with contextlib.suppress(ValueError, RecursionError):
        content = json.loads(config.read_bytes())
        if isinstance(content, dict):
            content["sha256"] = hashlib.sha256(weights.read_bytes()).hexdigest()
            config.write_text(json.dumps(content), encoding="utf-8")


def _sign_checkpoint(state: Path, tensors: Path) -> None:
    _sign(state, tensors)
    with contextlib.suppress(ValueError, RecursionError):
        content = json.loads(state.read_bytes())
        if isinstance(content, dict):
            whole = json.dumps(content.get("state"), sort_keys=True)
            content["state_sha256"] = hashlib.sha256(whole.encode()).hexdigest()
            state.write_text(json.dumps(content), encoding="utf-8")


def stream_of(seed: int, name: str, case: int) -> random.Random:
    """The numbers that one case is made of, whatever ran before."""
    return random.Random(f"{seed}:{name}:{case}")
