from __future__ import annotations

import math
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from burnin.core import InputError
from burnin.data import Table, load_table


def write(folder: Path, text: str, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def message_for(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_table(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def test_rows_are_drawn_equally_with_replacement() -> None:
    table = Table(torch.arange(10.0).reshape(5, 2), ("a", "b"))
    assert (table.dim, len(table), table.columns) == (2, 5, ("a", "b"))
    x = table.sample(10_000, torch.Generator().manual_seed(0))
    assert bool((x[:, 1] == x[:, 0] + 1).all())
    counts = np.bincount((x[:, 0] / 2).long().numpy(), minlength=5)
    assert stats.chisquare(counts).pvalue > 1e-3
    again = table.sample(10_000, torch.Generator().manual_seed(0))
    assert torch.equal(x, again)
    assert not torch.equal(x, table.sample(10_000, torch.Generator().manual_seed(1)))
    assert table.sample(0, torch.Generator()).shape == (0, 2)
    with pytest.raises(InputError, match="n is -1"):
        table.sample(-1, torch.Generator())


@pytest.mark.parametrize(
    ("values", "match"),
    [
        (torch.zeros(3), r"got shape \(3,\)"),
        (torch.zeros(2, 2, 2), r"got shape \(2, 2, 2\)"),
        (torch.zeros(0, 2), "empty: 0 rows and 2 columns"),
        (torch.zeros(2, 0), "empty: 2 rows and 0 columns"),
        (torch.zeros(2, 2, dtype=torch.int64), "got torch.int64"),
        (torch.zeros(2, 3), "2 column names for 3 columns"),
        (torch.tensor([[0.0, 1.0], [math.nan, 1.0]]), r"1 of 2 rows hold NaN or infinity \(row 2\)"),
        (torch.full((9, 2), math.inf), r"9 of 9 rows hold NaN or infinity \(row 1, 2, 3, 4, 5, \.\.\.\)"),
    ],
)
def test_bad_tables(values: torch.Tensor, match: str) -> None:
    with pytest.raises(InputError, match=match):
        Table(values, ("a", "b"))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "bool", ">f8"])
def test_numpy_files(tmp_path: Path, dtype: str) -> None:
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    np.save(tmp_path / "data.npy", array)
    np.savez(tmp_path / "data.npz", anything=array)
    for name in ("data.npy", "data.npz"):
        table = load_table(tmp_path / name)
        assert table.values.tolist() == [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]
        assert table.values.dtype == torch.float32
        assert table.columns == ("x1", "x2", "x3")


def test_bad_numpy_files(tmp_path: Path) -> None:
    def saved(array: object, name: str = "data.npy") -> Path:
        np.save(tmp_path / name, np.asarray(array))
        return tmp_path / name

    assert "got shape (3,)" in message_for(saved([1.0, 2.0, 3.0]))
    assert "got shape ()" in message_for(saved(1.0))
    assert "0 rows and 2 columns" in message_for(saved(np.zeros((0, 2))))
    assert "complex128" in message_for(saved([[1j]]))
    assert "<U1" in message_for(saved([["a"]]))
    assert "1 of 2 rows hold NaN or infinity (row 2)" in message_for(saved([[1.0], [np.nan]]))
    assert "too large for torch.float32" in message_for(saved([[1e300]]))
    assert "pickled" in message_for(saved(np.array([[object()]], dtype=object)))

    whole = saved([[1.0, 2.0]] * 50).read_bytes()
    (tmp_path / "cut.npy").write_bytes(whole[:-100])
    assert "damaged" in message_for(tmp_path / "cut.npy")
    (tmp_path / "header.npy").write_bytes(whole.replace(b"}", b" "))
    assert "damaged" in message_for(tmp_path / "header.npy")
    (tmp_path / "pickle.npy").write_bytes(pickle.dumps([[1.0]]))
    assert "pickled" in message_for(tmp_path / "pickle.npy")
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04 and then nothing")
    assert "damaged" in message_for(tmp_path / "cut.npz")
    np.savez_compressed(tmp_path / "flipped.npz", a=np.arange(100.0).reshape(50, 2))
    packed = bytearray((tmp_path / "flipped.npz").read_bytes())
    for position in range(60, 120):
        packed[position] ^= 0xFF
    (tmp_path / "flipped.npz").write_bytes(packed)
    assert "damaged" in message_for(tmp_path / "flipped.npz")
    np.savez(tmp_path / "two.npz", a=np.zeros((1, 1)), b=np.zeros((1, 1)))
    assert "2 arrays (a, b)" in message_for(tmp_path / "two.npz")
    np.savez(tmp_path / "none.npz")
    assert "0 arrays (none)" in message_for(tmp_path / "none.npz")
    np.savez(tmp_path / "object.npz", a=np.array([[object()]], dtype=object))
    assert "pickled" in message_for(tmp_path / "object.npz")


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("1,2\n3,4\n", ("x1", "x2")),
        ("a,b\n1,2\n3,4", ("a", "b")),
        ("\ufeffa,b\r\n1,2\r\n\r\n3,4\r\n", ("a", "b")),
        ('"long, name", b\n1, 2\n" 3",4e0\n,\n', ("long, name", "b")),
    ],
)
def test_csv_files(tmp_path: Path, text: str, columns: tuple[str, ...]) -> None:
    table = load_table(str(write(tmp_path, text, "DATA.CSV")))
    assert table.values.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert table.columns == columns


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        ("a,b\n", "the file is empty: a header (a, b) and no rows"),
        ("'two\n lines',b\n1,x\n".replace("'", '"'), "row 1, column 2 (b): 'x' is not a number"),
        ("'two\n lines'\nx\n".replace("'", '"'), "row 1, column 1 (two lines): 'x' is not a number"),
        ("a,b\n1,2\n3,four\n", "row 2, column 2 (b): 'four' is not a number"),
        ("1,2\n3,four\n", "row 2, column 2: 'four' is not a number"),
        ("1,b\n3,4\n", "row 1, column 2: 'b' is not a number"),
        ("a,b\n1,\n", "row 1, column 2 (b): the cell is empty"),
        ("a,b\n1_000,2\n", "row 1, column 1 (a): '1_000' is not a number"),
        ("a;b\n1;2\n", "row 1, column 1 (a;b): '1;2' is not a number"),
        ("1,2\n3\n", "row 2 has 1 cells; the rows before or the header have 2"),
        ("a\n1,2\n", "row 1 has 2 cells; the rows before or the header have 1"),
    ],
)
def test_bad_csv_files(tmp_path: Path, text: str, message: str) -> None:
    assert message_for(write(tmp_path, text)) == message


def test_csv_rows_with_nan_are_named(tmp_path: Path) -> None:
    text = "a,b\n" + "1,2\nnan,1\n1,inf\n" * 4
    assert "8 of 12 rows hold NaN or infinity (row 2, 3, 5, 6, 8, ...)" in message_for(write(tmp_path, text))


def test_csv_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(b"\xff\xfe\x00\x01\x80")
    assert "UTF-8" in message_for(path)
    path.write_bytes(b'"' + b"1" * 200_000)
    assert "not a readable .csv" in message_for(path)


def test_paths(tmp_path: Path) -> None:
    assert message_for(tmp_path / "missing.csv") == "no such file"
    (tmp_path / "folder.csv").mkdir()
    assert message_for(tmp_path / "folder.csv") == "is not a file"
    assert message_for(write(tmp_path, "1", "data.xlsx")).startswith(
        "unknown ending '.xlsx'; wanted one of .npy"
    )
    assert message_for(tmp_path / "data").startswith("unknown ending ''")
    for ending in ("npy", "npz", "csv"):
        assert message_for(write(tmp_path, "", f"empty.{ending}")) == "the file is empty"
