"""What columns are taken for, and coordinates that lead back to the rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from burnin.core import InputError
from burnin.data import EncodedRows, Encoding, Frame
from burnin.data.columns import infer_columns
from burnin.data.whitening import APART, corners_of


def mixed(n: int = 400, seed: int = 0) -> Frame:
    stream = np.random.default_rng(seed)
    colour = stream.choice(["red", "green", "blue"], n, p=[0.5, 0.3, 0.2])
    return Frame(
        {
            "height": 1e9 + 1e3 * (stream.normal(size=n) + (colour == "red")),
            "count": stream.poisson(2.0, n).astype(float),
            "colour": colour.astype(object),
            "share": np.round(stream.uniform(size=n), 2),
            "unit": np.full(n, "cm", dtype=object),
            "again": colour.astype(object),
        }
    )


def test_columns_are_recognised() -> None:
    found = {c.name: c.describe() for c in infer_columns(mixed(), find_bounds=True)}
    assert found == {
        "height": "continuous",
        "count": "whole numbers, at least 0",
        "colour": "3 categories",
        "share": "in steps of 0.01, at least 0",
        "unit": "constant (cm): left out of the density, written back on output",
        "again": "repeats colour: left out of the density, copied on output",
    }
    plain = {c.name: c.describe() for c in infer_columns(mixed(), dequantise=False)}
    assert plain["count"] == plain["share"] == "continuous"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1.0, 2.0, 1e9], "whole numbers"),
        ([0.1, 0.2, 0.7], "in steps of 0.1"),
        ([0.125, 3.0, 1.5], "in steps of 0.001"),
        ([0.1, 1 / 3, 0.7], "continuous"),
        ([0.01, 5000.5, 1.0], "continuous"),
        ([1e60, 2e60, 3e60], "continuous"),
    ],
)
def test_steps(values: list[float], words: str) -> None:
    (column,) = infer_columns(Frame({"x": np.array(values)}))
    assert column.describe() == words


def test_bounds_are_kept_or_refused() -> None:
    frame = Frame({"age": np.array([3.5, 20.25, 90.125])})
    (age,) = infer_columns(frame, bounds={"age": (0.0, None)})
    assert "at least 0" in age.describe()
    with pytest.raises(InputError, match=r"ranges from 3\.5 to 90\.125, beyond its bounds 0\.0 to 50\.0"):
        infer_columns(frame, bounds={"age": (0.0, 50.0)})
    with pytest.raises(InputError, match="bounds for agee; the columns are: age"):
        infer_columns(frame, bounds={"agee": (0.0, 50.0)})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1.0] * 9}, "every column is constant"),
        ({"a": [str(i) for i in range(9)]}, "9 different words in 9 rows"),
        ({"a": [1e300, -1e300] * 5}, "rescale it"),
        ({"a": [1.0, 2.0]}, "the table has 2 rows; a density needs at least 5"),
        ({"a": [1.0, np.nan] * 5}, "5 of 10 rows have missing values"),
    ],
)
def test_what_cannot_be_encoded(columns: dict[str, list[object]], message: str) -> None:
    arrays = {
        name: np.array(v, dtype=object if isinstance(v[0], str) else float) for name, v in columns.items()
    }
    with pytest.raises(InputError, match=message):
        Encoding.fit(Frame(arrays))


@pytest.mark.parametrize("levels", [2, 3, 7])
def test_no_level_is_nearer_than_another(levels: int) -> None:
    corners = corners_of(levels)
    assert corners.shape == (levels, levels - 1)
    apart = torch.cdist(corners, corners)[~torch.eye(levels, dtype=torch.bool)]
    torch.testing.assert_close(apart, torch.full_like(apart, APART))
    torch.testing.assert_close(corners.mean(0), torch.zeros(levels - 1, dtype=torch.float64))


def test_coordinates_lead_back_to_the_rows() -> None:
    frame = mixed()
    encoding = Encoding.fit(frame, find_bounds=True)
    rows = EncodedRows(encoding, encoding.codes(frame))
    z = rows.each(torch.Generator().manual_seed(0))
    again, good = encoding.decode(z)
    assert again.names == frame.names
    assert good.all()
    for name in ("count", "colour", "share", "unit", "again"):
        assert again.columns[name].tolist() == frame.columns[name].tolist()
    # In single precision: 1e3 standard deviations, to seven digits.
    np.testing.assert_allclose(again.columns["height"], frame.columns["height"], atol=0.01)


def test_coordinates_are_white() -> None:
    frame = mixed(2000)
    encoding = Encoding.fit(frame)
    rows = EncodedRows(encoding, encoding.codes(frame))
    z = rows.sample(40_000, torch.Generator().manual_seed(0)).double()
    # Shrinkage moves it a little away from the identity; the rest is chance, 1/sqrt(40,000).
    off = torch.cov(z.T) - torch.eye(encoding.dim)
    assert off.abs().max() < 0.06
    assert z.mean(0).abs().max() < 0.02


def test_coordinates_along_the_columns_have_unit_scales_and_lead_back() -> None:
    frame = Frame.of_numbers(np.random.default_rng(0).normal(size=(200, 3)) @ np.diag([1e-3, 1.0, 1e4]) + 7.0)
    white = Encoding.fit(frame)
    rows = EncodedRows.split(white, white.codes(frame), share=0.2, seed=0)
    plain = rows.along_columns()
    assert plain.held_out is not None
    assert plain.held_out.encoding == plain.encoding
    whole = EncodedRows(plain.encoding, white.codes(frame)).each(torch.Generator().manual_seed(0))
    torch.testing.assert_close(whole.std(0, correction=0), torch.ones(3))
    again, _ = plain.encoding.decode(whole)
    for name, values in frame.columns.items():
        np.testing.assert_allclose(again.columns[name], values, rtol=1e-4)
    assert (np.array(plain.encoding.matrix) == np.diag(np.diag(plain.encoding.matrix))).all()


def test_what_cannot_occur() -> None:
    frame = mixed()
    encoding = Encoding.fit(frame, find_bounds=True)
    rows = {name: values[:4].copy() for name, values in frame.columns.items()}
    rows["colour"][0] = "violet"
    rows["count"][1] = -1.0
    rows["unit"][2] = "inch"
    other = Frame(rows)
    assert encoding.supported(encoding.codes(other), other).tolist() == [False, False, False, True]
    with pytest.raises(InputError, match="the table lacks the column height"):
        encoding.codes(other.without(["height"]))
    words = Frame({**rows, "height": rows["colour"]})
    with pytest.raises(InputError, match="column height holds words"):
        encoding.codes(words)


def test_gaps_of_new_rows_are_filled_with_what_is_typical() -> None:
    frame = mixed()
    encoding = Encoding.fit(frame)
    holes = {name: values[:1].copy() for name, values in frame.columns.items()}
    holes["height"][0], holes["colour"][0] = np.nan, None
    with pytest.raises(InputError, match="1 of 1 rows have missing values"):
        encoding.codes(Frame(holes))
    filled, _ = encoding.decode(encoding.whiten(encoding.features(encoding.codes(Frame(holes), fill=True))))
    assert filled.columns["colour"].tolist() == ["red"]
    assert abs(filled.columns["height"][0] - np.median(frame.columns["height"])) < 0.01


def test_kept_as_json_beside_the_rows(tmp_path: Path) -> None:
    frame = mixed()
    encoding = Encoding.fit(frame, find_bounds=True)
    rows = EncodedRows.split(encoding, encoding.codes(frame), share=0.2, seed=1)
    rows.save(tmp_path / "rows.npz")
    again = EncodedRows.load(tmp_path / "rows.npz")
    assert again.encoding == encoding
    assert again.held_out is not None
    np.testing.assert_array_equal(again.all_codes(), rows.all_codes())
    stream = [torch.Generator().manual_seed(0) for _ in range(2)]
    assert torch.equal(rows.sample(9, stream[0]), again.sample(9, stream[1]))
    json.loads((tmp_path / "encoding.json").read_text(encoding="utf-8"))
    (tmp_path / "encoding.json").write_text("{")
    with pytest.raises(InputError, match=r"encoding.json is damaged"):
        EncodedRows.load(tmp_path / "rows.npz")
    encoding.save(tmp_path / "encoding.json")
    (tmp_path / "rows.npz").write_bytes(b"PK")
    with pytest.raises(InputError, match=r"rows.npz is missing or damaged"):
        EncodedRows.load(tmp_path / "rows.npz")


def test_rows_know_where_they_stood_in_the_table(tmp_path: Path) -> None:
    frame = Frame.of_numbers(np.random.default_rng(0).normal(size=(50, 2)))
    encoding = Encoding.fit(frame)
    codes = encoding.codes(frame)
    split = EncodedRows.split(encoding, codes, share=0.2, seed=3)
    split.save(tmp_path / "rows.npz")
    for rows in (split, EncodedRows.load(tmp_path / "rows.npz")):
        assert sorted(rows.all_numbers().tolist()) == list(range(1, 51))
        np.testing.assert_array_equal(rows.all_codes(), codes[rows.all_numbers() - 1])
        assert rows.held_out is not None
        np.testing.assert_array_equal(rows.held_out.codes, codes[rows.held_out.all_numbers() - 1])
    assert EncodedRows(encoding, codes[:3]).all_numbers().tolist() == [1, 2, 3]
    np.savez(tmp_path / "rows.npz", rows=codes, held_out=codes[:0], numbers=np.arange(3))
    with pytest.raises(InputError, match="numbers for 3 rows"):
        EncodedRows.load(tmp_path / "rows.npz")


def test_split_holds_out_a_share_and_keeps_every_column_varied() -> None:
    frame = Frame({"a": np.linspace(0.0, 1.3, 50), "b": np.array(["no"] + ["yes"] * 49, dtype=object)})
    encoding = Encoding.fit(frame)
    for seed in range(10):
        rows = EncodedRows.split(encoding, encoding.codes(frame), share=0.2, seed=seed)
        assert rows.held_out is not None
        assert (len(rows), len(rows.held_out)) == (40, 10)
        assert rows.constant == []
        together = np.sort(rows.all_codes()[:, 0])
        np.testing.assert_array_equal(together, frame.columns["a"])
