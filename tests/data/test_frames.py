from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from burnin.core import InputError
from burnin.data import Frame, load_frame, save_frame


def write(folder: Path, text: str, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_frame(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def parquet(folder: Path, **columns: Any) -> Path:
    path = folder / "data.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def test_numbers_words_and_gaps_of_a_csv(tmp_path: Path) -> None:
    frame = load_frame(write(tmp_path, "size,colour\n1.5,red\n,NA\n-2e3, blue \n"))
    assert frame.names == ("size", "colour")
    np.testing.assert_array_equal(frame.columns["size"], [1.5, np.nan, -2000.0])
    assert frame.columns["colour"].tolist() == ["red", None, "blue"]
    assert frame.rows_with_gaps().tolist() == [1]
    assert frame.notes == ()


@pytest.mark.parametrize(("mark", "name"), [(";", "a semicolon"), ("\t", "a tab"), ("|", "a bar")])
def test_another_delimiter_is_found_and_said(tmp_path: Path, mark: str, name: str) -> None:
    frame = load_frame(write(tmp_path, f"a{mark}b\n1{mark}x\n2{mark}y\n"))
    assert frame.names == ("a", "b")
    assert frame.notes == (f"read with {name} between cells",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("a,b\n", "the file is empty: a header (a, b) and no rows"),
        ("a,b\n1,2\n3\n", "row 2 has 1 cells; the rows before or the header have 2"),
        ("a\n1\n2\nx\n", "row 3, column a: 'x' is not a number, and 2 of its 3 cells are"),
        ("a,a\n1,2\n", "the column name 'a' is there more than once; rename one"),
        ("a;b\n1,5;2\n2,5;3\n", "column a has decimal commas ('1,5'); write them as points"),
        (
            "a\n1 2\n",
            "one column, with several numbers in a cell ('1 2'); delimiters are a comma, a semicolon, "
            "a tab, a bar",
        ),
        ("a,b\n1,2\n3,-inf\n", "row 2, column b: the value is infinite"),
    ],
)
def test_bad_csv(tmp_path: Path, text: str, message: str) -> None:
    assert refused(write(tmp_path, text)) == message


def test_parquet_of_every_kind(tmp_path: Path) -> None:
    frame = load_frame(
        parquet(
            tmp_path,
            whole=[1, None, 3],
            real=[0.5, 1.5, 2.5],
            yes=[True, False, None],
            word=["a", None, "b"],
            coded=pyarrow.array(["u", "v", "u"]).dictionary_encode(),
        )
    )
    np.testing.assert_array_equal(frame.columns["whole"], [1.0, np.nan, 3.0])
    np.testing.assert_array_equal(frame.columns["real"], [0.5, 1.5, 2.5])
    assert frame.columns["yes"].tolist() == ["True", "False", None]
    assert frame.columns["word"].tolist() == ["a", None, "b"]
    assert frame.columns["coded"].tolist() == ["u", "v", "u"]


def test_bad_parquet(tmp_path: Path) -> None:
    good = parquet(tmp_path, a=np.arange(1000.0))
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(good.read_bytes()[:-200])
    assert refused(cut) == "not a readable .parquet file: it is damaged or cut short"
    when = parquet(tmp_path, when=[datetime.datetime(2020, 1, 1)])
    assert refused(when).startswith("column when holds timestamp[us]; turn it into numbers or words")


def test_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[1, 2], [3, 4]]))
    assert load_frame(tmp_path / "a.npy").names == ("x1", "x2")
    np.save(tmp_path / "b.npy", np.zeros(3))
    assert "got shape (3,)" in refused(tmp_path / "b.npy")
    assert refused(write(tmp_path, "1", "data.xlsx")).startswith("unknown ending '.xlsx'; wanted one of .csv")


def test_gaps_are_named_or_filled_from_the_column() -> None:
    size = np.array([1.0, np.nan, 2.0, 1.0] * 50)
    colour = np.array(["red", "blue", None, "red"] * 50, dtype=object)
    frame = Frame({"size": size, "colour": colour})
    with pytest.raises(InputError, match=r"100 of 200 rows have .* \(row 2, 3, 6, 7, 10, …; column"):
        frame.require_no_gaps()
    filled = frame.imputed(np.random.default_rng(0))
    filled.require_no_gaps()
    np.testing.assert_array_equal(filled.columns["size"][~np.isnan(size)], size[~np.isnan(size)])
    # Each value in its own share, 2/3 of 50 draws: within 4 standard errors.
    ones = int((filled.columns["size"][np.isnan(size)] == 1).sum())
    assert abs(ones - 100 / 3) < 4 * np.sqrt(50 * 2 / 9)
    assert len(filled.notes) == 2
    assert "50 gaps filled" in filled.notes[0]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_written_as_read(tmp_path: Path, ending: str) -> None:
    frame = Frame(
        {
            "whole": np.array([1.0, 2.0, 30.0]),
            "real": np.array([0.1, -2.5e-7, 1e9]),
            "word, with a comma": np.array(["a", 'b"', "c,d"], dtype=object),
        }
    )
    path = tmp_path / f"data.{ending}"
    save_frame(frame, path)
    again = load_frame(path)
    assert again.names == frame.names
    for name, values in frame.columns.items():
        assert again.columns[name].tolist() == values.tolist()
    if ending == "csv":
        assert path.read_text().splitlines()[3] == '30,1000000000,"c,d"'
    else:
        assert pyarrow.parquet.read_schema(path).field("whole").type == pyarrow.int64()


def test_words_do_not_go_into_an_array(tmp_path: Path) -> None:
    frame = Frame({"a": np.array([1.0]), "b": np.array(["x"], dtype=object)})
    with pytest.raises(InputError, match=r"b holds words; write \.csv or \.parquet"):
        save_frame(frame, tmp_path / "a.npy")
    save_frame(frame.without(["b"]), tmp_path / "a.npy")
    assert np.load(tmp_path / "a.npy").tolist() == [[1.0]]
    with pytest.raises(InputError, match="there is no column 'c'; there are: a, b"):
        frame.without(["c"])


def test_an_empty_column_is_read_and_no_density_is_made_of_it(tmp_path: Path) -> None:
    frame = load_frame(write(tmp_path, "a,b\n1,\n2,\n"))
    assert np.isnan(frame.columns["b"]).all()
    with pytest.raises(InputError, match="column b has no values at all; leave it out"):
        frame.require_values()
    with pytest.raises(InputError, match="column b has no values at all"):
        frame.imputed(np.random.default_rng(0))
