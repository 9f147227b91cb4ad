"""A checkpoint comes back as it was, survives a crash at any moment, and is read without running code."""

from __future__ import annotations

import ast
import errno
import itertools
import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import burnin.training
from burnin.core import CheckpointError, StorageError
from burnin.training import Snapshot, load_checkpoint, save_checkpoint
from burnin.training.checkpoint import checkpoint_steps, load_weights, pack_optimizer, unpack_optimizer

OPTIMIZERS: dict[str, Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer]] = {
    "adam": lambda weights: torch.optim.Adam(weights, lr=0.03, betas=(0.8, 0.95)),
    "amsgrad": lambda weights: torch.optim.Adam(weights, lr=0.03, amsgrad=True),
    "momentum": lambda weights: torch.optim.SGD(weights, lr=0.03, momentum=0.9, nesterov=True),
    "rmsprop": lambda weights: torch.optim.RMSprop(weights, lr=0.03, momentum=0.5, centered=True),
    "adamw": lambda weights: torch.optim.AdamW(weights, lr=0.03, weight_decay=0.1),
}


def snapshot(seed: int = 0) -> Snapshot:
    generator = torch.Generator().manual_seed(seed)
    tensors = {
        "energy.weight": torch.randn(5, 3, generator=generator),
        "energy.transposed": torch.randn(4, 6, generator=generator).T,
        "energy.scalar": torch.tensor(0.1, dtype=torch.float64),
        "energy.counter": torch.tensor(7),
        "start.bank.position": torch.randn(8, 2, generator=generator),
        "stream.data": generator.get_state(),
    }
    return Snapshot(tensors, {"step": seed, "list": [1, 2.5, None, "π"], "nested": {"deep": 0.1 + 0.2}})


def assert_same(a: Snapshot, b: Snapshot) -> None:
    assert a.state == b.state
    assert a.tensors.keys() == b.tensors.keys()
    for name, value in a.tensors.items():
        assert value.dtype == b.tensors[name].dtype, name
        assert torch.equal(value, b.tensors[name]), name


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_round_trip_of_tensors_and_state(tmp_path: Path) -> None:
    saved = snapshot()
    assert save_checkpoint(tmp_path / "new" / "folder", 3, saved).name == "checkpoint-000000003.json"
    assert_same(load_checkpoint(tmp_path / "new" / "folder"), saved)


def test_tensors_that_share_memory_can_be_saved(tmp_path: Path) -> None:
    tensor = torch.arange(6.0)
    save_checkpoint(tmp_path, 0, Snapshot({"a": tensor, "b": tensor.clone(), "c": tensor[::2]}, {}))
    assert load_checkpoint(tmp_path).tensors["c"].tolist() == [0.0, 2.0, 4.0]


def test_clone_does_not_follow_later_training() -> None:
    first = snapshot()
    copy = first.clone()
    first.tensors["energy.weight"].zero_()
    first.state["list"].append("later")
    assert_same(copy, snapshot())


def test_part_takes_whole_names_only() -> None:
    one, two = torch.zeros(1), torch.ones(1)
    parts = Snapshot({"start.a.x": one, "start.ab.x": two}, {})
    assert parts.part("start.a") == {"x": one}
    assert parts.part("start.ab") == {"x": two}


def test_newest_is_read_and_an_older_one_by_its_step(tmp_path: Path) -> None:
    for step in (5, 30, 200):
        save_checkpoint(tmp_path, step, snapshot(step))
    assert load_checkpoint(tmp_path).state["step"] == 200
    assert load_checkpoint(tmp_path, 30).state["step"] == 30


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_only_the_newest_are_kept(tmp_path: Path, keep: int) -> None:
    for step in (1, 2, 10, 100):
        save_checkpoint(tmp_path, step, snapshot(step), keep=keep)
    assert checkpoint_steps(tmp_path) == [1, 2, 10, 100][-keep:]
    assert len(list(tmp_path.glob("*.safetensors"))) == keep
    for step in (1, 2, 10, 100)[-keep:]:
        assert_same(load_checkpoint(tmp_path, step), snapshot(step))


def test_writing_a_step_anew_leaves_one_pair_of_files(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, 4, snapshot(1))
    save_checkpoint(tmp_path, 4, snapshot(2))
    assert len(list(tmp_path.iterdir())) == 2
    assert_same(load_checkpoint(tmp_path), snapshot(2))


class Crash(BaseException):
    """Nobody catches it, as nobody catches SIGKILL."""


@pytest.mark.parametrize("same_step", [False, True])
@pytest.mark.parametrize("when", range(1, 20))
def test_a_crash_at_any_moment_leaves_a_whole_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: int, same_step: bool
) -> None:
    """Counts every open, fsync, rename and unlink of a save and dies at number `when`."""
    save_checkpoint(tmp_path, 1, snapshot(1), keep=1)
    count, fsync = itertools.count(1), os.fsync

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if next(count) == when:
                if real is fsync and stat.S_ISREG(os.fstat(args[0]).st_mode):  # what was not flushed is lost
                    os.ftruncate(args[0], os.fstat(args[0]).st_size // 2)
                raise Crash
            return real(*args, **kwargs)

        return call

    new_step = 1 if same_step else 2
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", dying(fsync))
        for name in ("open", "replace", "unlink"):
            patch.setattr(Path, name, dying(getattr(Path, name)))
        try:
            save_checkpoint(tmp_path, new_step, snapshot(2), keep=1)
            crashed = False
        except Crash:
            crashed = True
    assert crashed == (when <= (9 if same_step else 10))
    found = load_checkpoint(tmp_path)
    assert_same(found, snapshot(found.state["step"]))
    if not crashed:
        assert found.state["step"] == 2
    save_checkpoint(tmp_path, 3, snapshot(3), keep=1)
    assert_same(load_checkpoint(tmp_path), snapshot(3))
    assert [p.suffix for p in sorted(tmp_path.glob("checkpoint-*"))] == [".safetensors", ".json"]


def test_a_payload_cut_short_by_a_crash_is_never_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_checkpoint(tmp_path, 1, snapshot(1))
    before = files(tmp_path)

    def fail(number: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match=r"No space .* make room"):
        save_checkpoint(tmp_path, 2, snapshot(2))
    assert files(tmp_path) == before
    assert_same(load_checkpoint(tmp_path), snapshot(1))


def rewritten(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = next(folder.glob("*.json"))
    header = json.loads(path.read_text())
    change(header)
    path.write_text(json.dumps(header))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def flip_a_bit(path: Path) -> None:
    payload = bytearray(path.read_bytes())
    payload[-3] ^= 1
    path.write_bytes(payload)


def tensor_file(folder: Path) -> Path:
    return next(folder.glob("*.safetensors"))


def json_file(folder: Path) -> Path:
    return next(folder.glob("*.json"))


def replace_by_folder(folder: Path) -> None:
    path = json_file(folder)
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "truncated tensors": (lambda f: truncate(tensor_file(f)), "damaged"),
    "flipped bit": (lambda f: flip_a_bit(tensor_file(f)), "damaged"),
    "no tensors": (lambda f: tensor_file(f).unlink(), "cannot be read"),
    "empty tensors": (lambda f: tensor_file(f).write_bytes(b""), "damaged"),
    "truncated json": (lambda f: truncate(json_file(f)), "damaged"),
    "empty json": (lambda f: json_file(f).write_bytes(b""), "damaged"),
    "binary json": (lambda f: json_file(f).write_bytes(b"\x80\x04\x95\xff"), "damaged"),
    "json is a folder": (replace_by_folder, "damaged"),
    "foreign list": (lambda f: json_file(f).write_text("[1, 2]"), "not written by this version"),
    "foreign dict": (lambda f: json_file(f).write_text('{"epoch": 3}'), "not written by this version"),
    "other version": (
        lambda f: rewritten(f, lambda h: h.update(format="burnin-checkpoint-99")),
        "burnin-checkpoint-1",
    ),
    "no state": (lambda f: rewritten(f, lambda h: h.pop("state")), "damaged"),
    "state is a list": (lambda f: rewritten(f, lambda h: h.update(state=[1])), "damaged"),
    "no tensors named": (lambda f: rewritten(f, lambda h: h.pop("tensors")), "names no file of tensors"),
    "tensors is a number": (
        lambda f: rewritten(f, lambda h: h.update(tensors=3)),
        "names no file of tensors",
    ),
    "tensors is empty": (lambda f: rewritten(f, lambda h: h.update(tensors="")), "names no file of tensors"),
    "no checksum": (lambda f: rewritten(f, lambda h: h.pop("sha256")), "damaged"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named_in_one_line(tmp_path: Path, damage: str) -> None:
    save_checkpoint(tmp_path, 1, snapshot())
    hurt, words = DAMAGES[damage]
    hurt(tmp_path)
    with pytest.raises(CheckpointError, match=words) as caught:
        load_checkpoint(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_foreign_safetensors_payload_with_a_right_checksum(tmp_path: Path) -> None:
    import hashlib

    save_checkpoint(tmp_path, 1, snapshot())
    payload = b"PK\x03\x04 a zip file, say, of pickles"
    tensor_file(tmp_path).write_bytes(payload)
    rewritten(tmp_path, lambda header: header.update(sha256=hashlib.sha256(payload).hexdigest()))
    with pytest.raises(CheckpointError, match="no safetensors file") as caught:
        load_checkpoint(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("absolute", [False, True])
def test_a_checkpoint_cannot_point_outside_its_folder(tmp_path: Path, absolute: bool) -> None:
    """The very file that it names exists, with the right checksum, and is still not read."""
    secret, run = tmp_path / "secret", tmp_path / "run"
    save_checkpoint(secret, 1, snapshot(1))
    save_checkpoint(run, 1, snapshot(2))
    outside = tensor_file(secret)
    header = json.loads(json_file(secret).read_text())
    name = str(outside) if absolute else f"../secret/{outside.name}"
    rewritten(run, lambda h: h.update(tensors=name, sha256=header["sha256"]))
    with pytest.raises(CheckpointError, match="names no file of tensors"):
        load_checkpoint(run)


def test_no_checkpoint_at_all(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-latest.json").write_text("{}")
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(CheckpointError, match="holds no checkpoint"):
            load_checkpoint(folder)


def test_a_number_that_json_cannot_hold_leaves_the_old_checkpoint(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, 1, snapshot(1))
    with pytest.raises(ValueError, match="not JSON compliant"):
        save_checkpoint(tmp_path, 2, Snapshot({}, {"d": float("nan")}))
    assert_same(load_checkpoint(tmp_path), snapshot(1))


def quadratic_steps(net: nn.Module, optimizer: torch.optim.Optimizer, data: list[Tensor]) -> None:
    for x in data:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer_goes_on_bit_for_bit(tmp_path: Path, name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    data = [torch.randn(8, 3, generator=generator) for _ in range(12)]
    never_stopped, stopped, resumed = nn.Linear(3, 2), nn.Linear(3, 2), nn.Linear(3, 2)
    stopped.load_state_dict(never_stopped.state_dict())
    whole = OPTIMIZERS[name](never_stopped.parameters())
    quadratic_steps(never_stopped, whole, data)

    first = OPTIMIZERS[name](stopped.parameters())
    quadratic_steps(stopped, first, data[:5])
    packed = pack_optimizer(first)
    tensors = {f"optimizer.{k}": v for k, v in packed.tensors.items()}
    tensors |= {f"energy.{k}": v for k, v in stopped.state_dict().items()}
    save_checkpoint(tmp_path, 5, Snapshot(tensors, {"optimizer": packed.state}))

    loaded = load_checkpoint(tmp_path)
    second = OPTIMIZERS[name](resumed.parameters())
    load_weights(resumed, loaded.part("energy"))
    unpack_optimizer(second, Snapshot(loaded.part("optimizer"), loaded.state["optimizer"]))
    quadratic_steps(resumed, second, data[5:])

    for a, b in zip(never_stopped.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(a, b)
    assert json.dumps(pack_optimizer(second).state) == json.dumps(pack_optimizer(whole).state)
    assert_same(Snapshot(pack_optimizer(second).tensors, {}), Snapshot(pack_optimizer(whole).tensors, {}))


def test_an_optimizer_of_other_parameters_is_refused() -> None:
    packed = pack_optimizer(torch.optim.Adam(nn.Linear(3, 2).parameters()))
    other = torch.optim.Adam([nn.Parameter(torch.zeros(2))])
    with pytest.raises(CheckpointError, match="does not fit"):
        unpack_optimizer(other, packed)


def test_weights_of_another_network_are_refused_in_one_line() -> None:
    with pytest.raises(CheckpointError, match="do not fit this energy") as caught:
        load_weights(nn.Linear(3, 2), nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 1)).state_dict())
    assert "\n" not in str(caught.value)


def test_nothing_in_the_room_can_unpickle() -> None:
    room = Path(burnin.training.__file__).parent
    for path in room.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        imported |= {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        assert not imported & {"pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}, path.name
        called = {ast.unparse(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
        assert not called & {"torch.load", "torch.save", "eval", "exec"}, path.name
