"""What strangers' files may not do: fill the memory, hang, lead elsewhere, start programs."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from burnin import limits
from burnin.assemble import load_model
from burnin.config import load_config, read_run_config
from burnin.core import BurninError, InputError
from burnin.data import load_frame, load_table
from burnin.data.cifar import read_cifar_pickles
from burnin.data.fetching import unpack
from burnin.data.folders import read_folder
from burnin.data.idx import read_idx
from burnin.data.kept import read_kept
from burnin.data.matlab import read_mat
from burnin.limits import LINE, SETTINGS, memory_limit, parse_json, parse_toml, read_json, read_within
from burnin.terminal import harmless
from burnin.training import load_checkpoint
from tests.data.files import write_cifar
from tests.fuzz.readers import RECIPE

ZEROS = bytes(30_000_000)
"""More than the tests allow, and next to nothing once packed."""


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURNIN_MEMORY", "0.02")


def npy(rows: int, columns: int) -> bytes:
    """A .npy file of this shape, whose numbers are all there, or its head alone."""
    made = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        made, {"descr": "<f8", "fortran_order": False, "shape": (rows, columns)}
    )
    return made.getvalue()


def packed(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


def npz_bomb(path: Path) -> None:
    packed(path, {"rows": npy(len(ZEROS) // 80, 10) + ZEROS})


def npy_head(path: Path) -> None:
    path.write_bytes(npy(2**40, 2**20))


def many_words(path: Path) -> None:
    """A million rows of one word in a few bytes."""
    column = pyarrow.array(["x"] * 1_000_000).dictionary_encode()
    pyarrow.parquet.write_table(pyarrow.table({"a": column, "b": column}), path)


def idx_bomb(path: Path) -> None:
    path.write_bytes(gzip.compress(struct.pack(">BBBBI", 0, 0, 8, 1, len(ZEROS)) + ZEROS))


def png_bomb(path: Path) -> None:
    """A picture of 9,000 by 9,000 pixels, below what Pillow itself refuses."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = struct.pack(">IIBBBBB", 9000, 9000, 8, 0, 0, 0, 0)
    body = zlib.compress(ZEROS)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b""))


def mat_bomb(path: Path) -> None:
    inner = zlib.compress(struct.pack("<II", 14, len(ZEROS)) + ZEROS)
    path.write_bytes(bytes(124) + b"\x00\x01IM" + struct.pack("<II", 15, len(inner)) + inner)


def much_text(path: Path) -> None:
    path.write_bytes(b"1,2\n" * 1_000_000)


BOMBS: dict[str, tuple[str, Callable[[Path], None], Callable[[Path], object]]] = {
    "an .npz file packed": ("a.npz", npz_bomb, load_table),
    "a run's own .npz file": ("rows.npz", npz_bomb, lambda path: read_kept(path, "rows")),
    "a .parquet file": ("a.parquet", many_words, load_frame),
    "an IDX file packed": ("a.gz", idx_bomb, read_idx),
    "a picture": ("a.png", png_bomb, lambda path: read_folder(path.parent)),
    "a .mat file packed": ("a.mat", mat_bomb, lambda path: read_mat(path, "X")),
    "a .csv file": ("a.csv", much_text, load_frame),
    "a JSON file": ("a.json", much_text, read_json),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_unpacks_to_too_much_is_refused_before_it_is(tmp_path: Path, name: str) -> None:
    file, write, read = BOMBS[name]
    write(tmp_path / file)
    with pytest.raises(InputError, match=r"would take .* of memory; 0.02 GB are allowed") as caught:
        read(tmp_path / file)
    assert str(tmp_path) in str(caught.value)


def test_a_user_can_allow_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    idx_bomb(tmp_path / "a.gz")
    npz_bomb(tmp_path / "a.npz")
    monkeypatch.setenv("BURNIN_MEMORY", "1")
    assert len(read_idx(tmp_path / "a.gz")) == len(ZEROS)
    assert read_kept(tmp_path / "a.npz", "rows")[0].nbytes == len(ZEROS)


def test_a_head_that_announces_more_than_follows_is_no_array(tmp_path: Path) -> None:
    npy_head(tmp_path / "a.npy")
    with pytest.raises(InputError, match=r"not a readable \.npy file"):
        load_table(tmp_path / "a.npy")


def test_an_archive_that_unpacks_to_much_more_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("zeros")
        member.size = len(ZEROS)
        archive.addfile(member, io.BytesIO(ZEROS))
    with pytest.raises(InputError, match="unpacks to more than 20 times its size"):
        unpack(tmp_path / "a.tar.gz", tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    "program",
    [
        pickle.PROTO + b"\x02N" + pickle.LONG_BINPUT + b"\xff\xff\xff\x7f.",  # 16 GB of Python's own reader
        pickle.PROTO + b"\x05" + pickle.BYTEARRAY8 + struct.pack("<Q", 2**40) + b".",
        b"cos\nsystem\n(S'true'\ntR.",
        b"(" * 100_000,
    ],
)
def test_a_pickle_is_not_run(tmp_path: Path, program: bytes) -> None:
    write_cifar(tmp_path, pickled=True)
    (tmp_path / "data_batch_3").write_bytes(program)
    with pytest.raises(InputError, match="data_batch_3: "):
        read_cifar_pickles(tmp_path)


def test_only_decoders_of_pictures_are_asked(tmp_path: Path) -> None:
    """Pillow takes a file for what it is, and has PostScript drawn by a program of the machine."""
    (tmp_path / "a.png").write_bytes(
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n"
    )
    with pytest.raises(InputError, match="not a readable picture"):
        read_folder(tmp_path)


def test_a_picture_whose_name_cannot_be_written_is_refused(tmp_path: Path) -> None:
    try:
        (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.png"))).write_bytes(b"")
    except OSError:
        pytest.skip("this file system has no such names")
    with pytest.raises(InputError, match="no UTF-8 text; rename"):
        read_folder(tmp_path)


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.json")
    with pytest.raises(InputError, match="is not a file"):
        read_within(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested too deep"),
        ('{"a":' * 100_000, "nested too deep"),
        (r'{"a": "\ud800"}', "lone surrogate"),
        ("9" * 5000, "digits"),
    ],
)
def test_json_that_cannot_be_used_is_a_value_error(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_json(text)
    assert parse_json(r'"\ud83d\ude00"') == "😀"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 1000, "nested too deep"),
        (".".join("a" * 20_000) + " = 1", f"at most {LINE}"),
        ("a = " + "9" * 1999, "a line of 2003"),
        ("a = " + "\n".join(["["] * 3000), "nested too deep"),
    ],
)
def test_toml_that_would_take_long_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_toml(text, "a.toml")


def test_a_recipe_is_small(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("# x\n" * SETTINGS)
    with pytest.raises(InputError, match=rf"a\.toml has {4 * SETTINGS} bytes; wanted at most {SETTINGS}"):
        load_config(str(tmp_path / "a.toml"))


@pytest.mark.parametrize("base", ["../secret.toml", "{outside}/secret.toml", "linked.toml"])
def test_a_recipes_base_lies_in_its_folder(tmp_path: Path, base: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "secret.toml").write_text(RECIPE)
    (tmp_path / "mine" / "linked.toml").symlink_to(tmp_path / "secret.toml")
    recipe = tmp_path / "mine" / "recipe.toml"
    recipe.write_text(f'base = "{base.format(outside=tmp_path)}"\n')
    with pytest.raises(InputError, match="outside of its folder"):
        load_config(str(recipe))
    (tmp_path / "mine" / "below").mkdir()
    (tmp_path / "mine" / "below" / "base.toml").write_text(RECIPE)
    recipe.write_text('base = "below/base.toml"\ntitle = "mine"\n')
    assert load_config(str(recipe)).title == "mine"


@pytest.mark.parametrize("key", ["file", "folder"])
def test_a_recipe_names_data_outside_only_if_its_user_does(tmp_path: Path, key: str) -> None:
    recipe = tmp_path / "recipe.toml"
    for place in (f"{tmp_path}/rows.csv", "../rows.csv", "a/../../rows.csv"):
        recipe.write_text(RECIPE.replace('name = "moons"', f'{key} = "{place}"'))
        with pytest.raises(InputError, match=rf"--set data\.{key}=.*rows\.csv"):
            load_config(str(recipe))
        named = load_config(str(recipe), [f"data.{key}={place}"]).data
        assert Path(getattr(named, key)).name == "rows.csv"
    recipe.write_text(RECIPE.replace('name = "moons"', f'{key} = "below/rows.csv"'))
    assert "below" in getattr(load_config(str(recipe)).data, key)


def test_a_runs_folder_has_no_link_out_of_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.toml").write_text(RECIPE)
    assert read_run_config(run).title == "tiny"
    (run / "report.html").symlink_to(run / "config.toml")
    assert read_run_config(run).title == "tiny"
    (run / "metrics.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"metrics.jsonl is a link out of the run's folder"):
        read_run_config(run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("run.updates=1e300", "run.updates"),
        ("run.updates=10000000000", "less than or equal to 1000000000"),
        ("run.seed=99999999999999999999", "run.seed"),
        ("model.temperature=nan", "finite number"),
        ("model.width=1000000000000", "model.width"),
        ("model.depth=1000000000", "model.depth"),
        ("sampler.num_steps=1000000000", "sampler.num_steps"),
        ("sampler.num_leapfrog=-1", "sampler.num_leapfrog"),
        ("about=" + "x" * 301, "about"),
    ],
)
def test_numbers_that_nothing_can_do_are_refused(change: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_config("rings", [change])
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("lines", "setting"),
    [
        ("width = [4, 4]|width = 30000", "model.width"),
        ("width = [4, 4]|width = 400\ndepth = 1000", "model.width"),
        ("batch_size = 8|batch_size = 100000000", "run.batch_size"),
        ('name = "hybrid"|name = "persistent"\nbank_size = 100000000', "scheme.bank_size"),
        ("num_steps = 3|num_steps = 3\nnum_chains = 100000000", "sampler.num_chains"),
    ],
)
def test_what_would_take_all_memory_is_refused_before_it_is_made(
    tmp_path: Path, lines: str, setting: str
) -> None:
    old, new = lines.split("|")
    (tmp_path / "config.toml").write_text(RECIPE.replace(old, new))
    with pytest.raises(InputError, match=rf"{setting}: with 2 columns, it would take .* of memory"):
        load_model(tmp_path)


def test_the_limit_is_half_of_the_memory_or_what_a_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert memory_limit() == 20_000_000
    monkeypatch.setenv("BURNIN_MEMORY", "a lot")
    with pytest.raises(InputError, match="number of GB"):
        memory_limit()
    monkeypatch.delenv("BURNIN_MEMORY")
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < memory_limit() <= whole // 2


def test_a_container_has_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BURNIN_MEMORY")
    monkeypatch.setattr(limits, "CGROUP", tmp_path / "memory.max")
    (tmp_path / "memory.max").write_text("1000000\n")
    assert memory_limit() == 500_000


def test_names_of_checkpoints_are_plain(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-²³.json").write_text("{}")
    (tmp_path / "checkpoint-99999999999999999999999.json").write_text("{}")
    with pytest.raises(BurninError, match="holds no checkpoint"):
        load_checkpoint(tmp_path)


def test_a_header_cannot_command_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\x1b[2Jy,[bold]b\n1,2\n3,4\n")
    assert load_frame(tmp_path / "a.csv").names == ("x[2Jy", "[bold]b")
    assert harmless("a\x1b[2J\nb\x07") == "a�[2J\nb�"
