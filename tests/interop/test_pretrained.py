"""Exported models: the same to the bit, without data, and errors that say what to change."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from burnin import EnergyDensity
from burnin.assemble import load_model
from burnin.config import load_config
from burnin.core import BurninError, InputError
from burnin.data import Frame, Table, load_frame, save_frame
from burnin.evaluation.chains import from_noise
from burnin.evaluation.model import Model
from burnin.fitted import FittedTable
from burnin.interop import from_pretrained, save_pretrained
from burnin.runs import train_in
from tests.interop.conftest import SMALL
from tests.test_cli import Burnin, assert_refused, burnin

__all__ = ["burnin"]


@pytest.fixture(scope="session")
def exported(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_pretrained(run_folder, tmp_path_factory.mktemp("exported") / "model")


def same(left: Model, right: Model) -> None:
    x = torch.randn(20, left.data.dim, generator=torch.Generator().manual_seed(0))
    assert torch.equal(left.energy(x), right.energy(x))
    drawn = [from_noise(m, 16, torch.Generator().manual_seed(1)).position for m in (left, right)]
    assert torch.equal(*drawn)
    assert left.columns == right.columns
    assert (left.temperature, left.num_updates, left.own) == (right.temperature, right.num_updates, right.own)


def test_a_run_comes_back_to_the_bit(run_folder: Path, exported: Path) -> None:
    loaded, own = from_pretrained(exported), load_model(run_folder)
    assert isinstance(loaded, Model)
    same(loaded, own)
    assert sorted(path.name for path in exported.iterdir()) == ["config.json", "model.safetensors"]
    with pytest.raises(InputError, match="without its data"):
        loaded.data.sample(1, torch.Generator())
    rows = Table(torch.zeros(3, 10), loaded.columns)
    assert len(replace(loaded, data=rows).data.sample(2, torch.Generator())) == 2


@pytest.mark.parametrize(
    "changes",
    [
        ["data.name=digits8", "model.kind=convnet", "model.width=4", "sampler.num_steps=2", "data.noise=0.1"],
        ["data={name='ica', dim=3}", "model.kind=ica", "sampler.num_steps=2"],
        ["data.name=rings4", "model.kind=rbm", "model.hidden=3", "sampler.num_steps=2"],
    ],
    ids=["convnet", "ica", "rbm"],
)
def test_every_kind_of_energy_comes_back(changes: list[str], tmp_path: Path) -> None:
    bare = [
        "model.gaussian_factor=none",
        "model.frequencies=[]",
        "model.standardise=false",
        "scheme.name=noise",
    ]
    plain = ["run.batch_size=8", "run.updates=1", "run.tensorboard=false", "sampler_from_noise={}"]
    train_in(tmp_path / "run", load_config(str(_recipe(tmp_path)), [*plain, *bare, *changes]), resume=False)
    save_pretrained(tmp_path / "run", tmp_path / "out")
    loaded = from_pretrained(tmp_path / "out")
    assert isinstance(loaded, Model)
    same(loaded, load_model(tmp_path / "run"))


def _recipe(folder: Path) -> Path:
    path = folder / "plain.toml"
    path.write_text(
        'title = "plain"\n[model]\ntemperature = 1.0\n[sampler]\nstep_size = 0.01\nnum_steps = 2\n',
        encoding="utf-8",
    )
    return path


def test_no_place_of_this_machine_is_told(tmp_path: Path) -> None:
    np.save(tmp_path / "secret.npy", np.random.default_rng(0).normal(size=(30, 10)).astype(np.float32))
    changes = ["data={file='" + str(tmp_path / "secret.npy") + "'}", *SMALL]
    train_in(tmp_path / "run", load_config("rings", changes), resume=False)
    text = (save_pretrained(tmp_path / "run", tmp_path / "out") / "config.json").read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    assert "secret.npy" in text
    (tmp_path / "secret.npy").unlink()
    loaded = from_pretrained(tmp_path / "out")  # its data is not needed
    assert isinstance(loaded, Model)
    assert from_noise(loaded, 4, torch.Generator()).position.shape == (4, 10)


def test_an_estimator_comes_back_to_the_bit(density: EnergyDensity, tmp_path: Path) -> None:
    density.save_pretrained(tmp_path / "out")
    loaded = EnergyDensity.from_pretrained(tmp_path / "out")
    rows = np.array([[0.0, 10.0], [2.0, 4.0], [0.0, -1.0]])
    assert np.array_equal(loaded.score_samples(rows), density.score_samples(rows))
    assert np.array_equal(loaded.predict(rows), density.predict(rows))
    assert np.array_equal(loaded.sample(5, random_state=3), density.sample(5, random_state=3))
    assert loaded.get_params() == density.get_params()
    assert (loaded.offset_, loaded.normaliser_, loaded.held_out_) == (
        density.offset_,
        density.normaliser_,
        density.held_out_,
    )
    with pytest.raises(InputError, match="fit anew"):
        loaded.partial_fit(rows)
    held = from_pretrained(tmp_path / "out")
    assert isinstance(held, FittedTable)
    again = save_pretrained(held, tmp_path / "again")  # what was loaded can be saved
    assert (again / "model.safetensors").read_bytes() == (tmp_path / "out" / "model.safetensors").read_bytes()


def test_a_wrong_folder_says_what_to_change(exported: Path, run_folder: Path, tmp_path: Path) -> None:
    for broken, change, message in (
        ("no-config", lambda p: (p / "config.json").unlink(), "holds no config.json"),
        ("no-weights", lambda p: (p / "model.safetensors").unlink(), "holds no model.safetensors"),
        ("no-json", lambda p: (p / "config.json").write_text("{"), "no JSON"),
        ("foreign", lambda p: (p / "config.json").write_text('{"model_type": "bert"}'), "the format None"),
        ("damaged", lambda p: (p / "model.safetensors").write_bytes(b"x"), "damaged or of another model"),
        ("no-columns", lambda p: _change(p, columns=None), "is damaged"),
        ("unfit", lambda p: _change(p, columns=["x1"] * 9), "do not fit"),
    ):
        folder = tmp_path / broken
        folder.mkdir()
        for file in exported.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        change(folder)
        with pytest.raises(BurninError, match=message):
            from_pretrained(folder)
    with pytest.raises(InputError, match="already holds something"):
        save_pretrained(run_folder, exported)
    with pytest.raises(InputError, match="no run"):
        save_pretrained(tmp_path, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(InputError, match="model of no table"):
        EnergyDensity.from_pretrained(exported)


def _change(folder: Path, **values: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | values), encoding="utf-8")


def test_the_command_exports(burnin: Burnin, run_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = burnin("export", str(run_folder), str(out), "--json")
    assert done.code == 0
    assert json.loads(done.out)["files"] == ["model.safetensors", "config.json"]
    assert "energy.net" in " ".join(safetensors.torch.load_file(out / "model.safetensors"))
    assert_refused(burnin("export", str(run_folder), str(out)), "already holds something")
    assert_refused(burnin("export", str(tmp_path / "none"), str(tmp_path / "new")), "no config.toml")


def test_the_shell_uses_what_was_exported(
    burnin: Burnin, density: EnergyDensity, run_folder: Path, exported: Path, tmp_path: Path
) -> None:
    """A table is scored, sampled and filled; a run's model is sampled to the bits of the run itself."""
    table = str(density.save_pretrained(tmp_path / "table"))
    names = [column.name for column in density.fitted_.encoding.columns]
    rows = np.array([[0.0, 10.0], [2.0, 4.0]])
    save_frame(Frame(dict(zip(names, rows.T, strict=True))), tmp_path / "rows.csv")
    assert burnin("score", table, str(tmp_path / "rows.csv"), "-o", str(tmp_path / "scores.csv")).code == 0
    scores = load_frame(tmp_path / "scores.csv").columns["log_density"]
    np.testing.assert_allclose(scores, density.score_samples(rows), rtol=1e-9)
    assert burnin("sample", table, "-n", "20", "-o", str(tmp_path / "new.csv")).code == 0
    drawn = load_frame(tmp_path / "new.csv")
    assert list(drawn.names) == names
    assert len(drawn) == 20
    assert drawn.columns[names[1]].min() >= 0, "the column's bound"
    holed = tmp_path / "holed.csv"
    holed.write_text(f"{names[0]},{names[1]}\n0.5,\n", encoding="utf-8")
    assert burnin("impute", table, str(holed), "-o", str(tmp_path / "filled.csv"), "--rounds", "2").code == 0
    assert load_frame(tmp_path / "filled.csv").columns[names[0]] == 0.5
    for folder, name in ((run_folder, "one.npy"), (exported, "two.npy")):
        assert burnin("sample", str(folder), "-n", "8", "-o", str(tmp_path / name)).code == 0
    assert np.array_equal(np.load(tmp_path / "one.npy"), np.load(tmp_path / "two.npy"))
    refused = burnin("score", str(exported), str(tmp_path / "rows.csv"), "-o", str(tmp_path / "no.csv"))
    assert_refused(refused, "of no table")
