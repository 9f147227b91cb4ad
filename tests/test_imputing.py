"""Gaps of tables filled: what stays, what is kept to, what is refused; by the library and the program."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from burnin import EnergyDensity
from burnin.core import InputError
from burnin.data import Frame, load_frame
from burnin.evaluation.conditional import Effort
from burnin.fitted import FittedTable
from burnin.imputing import Imputed, impute
from tests.test_cli import Burnin, assert_refused, burnin, contents
from tests.test_table_commands import people

__all__ = ["burnin"]
SHORT = Effort(rounds=6, steps=5, tries=8)
HOLES = (
    "id,height,colour,children,income,unit\n"
    "007,,red,2,1000000000.5,cm\n"
    "008,171.123456789012,,,,\n"
    "009,165,blue,1,2000000000.5,cm\n"
    "010,NA,,0,n/a,cm\n"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a small fit."""
    folder = tmp_path_factory.mktemp("fit")
    (folder / "people.csv").write_text(people(), encoding="utf-8")
    table = load_frame(folder / "people.csv").without(["id"])
    density = EnergyDensity(max_updates=15, num_steps=20, particles=64, random_state=0)
    density.fit_in(table, folder / "run", find_bounds=True)
    return folder / "run"


@pytest.fixture(scope="module")
def fitted(made: Path) -> FittedTable:
    return FittedTable.load(made)


@pytest.fixture
def run(burnin: Burnin, made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "run")
    Path("holes.csv").write_text(HOLES, encoding="utf-8")
    return tmp_path / "run"


def filled(fitted: FittedTable, frame: Frame, seed: int = 0, **wishes: object) -> Imputed:
    stream = torch.Generator().manual_seed(seed)
    return impute(fitted, frame, generator=stream, **({"effort": SHORT} | wishes))  # type: ignore[arg-type]


def holes(n: int = 60) -> Frame:
    """Rows in which everything that was fitted is missing somewhere."""
    gone = np.arange(n) % 3
    words = np.array([None if i % 3 == 1 else ("red", "green")[i % 2] for i in range(n)], dtype=object)
    return Frame(
        {
            "height": np.where(gone == 0, np.nan, 171.234567890123),
            "colour": words,
            "children": np.where(gone == 2, np.nan, 2.0),
            "income": np.where(gone >= 1, np.nan, 1.5e9),
            "unit": np.array(["cm", None] * (n // 2), dtype=object),
        }
    )


def test_known_cells_stay_and_filled_ones_keep_steps_bounds_and_words(fitted: FittedTable) -> None:
    frame = holes()
    result = filled(fitted, frame, draws=3)
    assert len(result.frames) == 3
    assert result.rows == 60
    assert result.cells == {"height": 20, "colour": 20, "children": 20, "income": 40, "unit": 30}
    for done in result.frames:
        assert done.names == frame.names
        for name, values in frame.columns.items():
            known = [v is not None and v == v for v in values.tolist()]
            assert done.columns[name][known].tolist() == values[known].tolist(), name
        assert not len(done.rows_with_gaps())
        children = done.columns["children"]
        assert (children == np.round(children)).all()
        assert children.min() >= 0
        assert done.columns["income"].min() >= 0
        assert set(done.columns["colour"]) <= {"red", "green", "blue"}
        assert set(done.columns["unit"]) == {"cm"}
    first, second = (frame.columns["income"].tolist() for frame in result.frames[:2])
    assert first != second
    assert 0.3 < result.acceptance < 0.9
    assert 0 < result.leapt < 1


def test_bounds_of_the_user_hold_for_what_is_filled(fitted: FittedTable) -> None:
    bounds = {"income": (1e8, 2e8), "children": (3.5, None), "height": (None, 160.0)}
    done = filled(fitted, holes(), bounds=bounds).frames[0]
    gone = np.arange(60) % 3
    assert (done.columns["income"][gone >= 1] >= 1e8).all()
    assert (done.columns["income"][gone >= 1] <= 2e8).all()
    assert (done.columns["children"][gone == 2] >= 4).all()
    assert (done.columns["height"][gone == 0] <= 160).all()
    assert (done.columns["height"][gone != 0] == 171.234567890123).all()


def test_a_mean_has_no_chance_in_it_but_that_of_chains(fitted: FittedTable) -> None:
    """Of the same row, means lie nearer to each other than draws, and near the mean of draws."""
    rows = 80
    frame = Frame(
        {
            "height": np.full(rows, np.nan),
            "colour": np.full(rows, "red", dtype=object),
            "children": np.full(rows, 1.0),
            "income": np.full(rows, 1e9),
        }
    )
    means = filled(fitted, frame, mean=True, effort=Effort(20, 5, 8)).frames[0].columns["height"]
    draws = filled(fitted, frame, seed=1).frames[0].columns["height"]
    assert means.std() < 0.6 * draws.std()
    assert abs(means.mean() - draws.mean()) < 4 * draws.std() * np.sqrt(1 / rows + 0.36 / rows)
    with pytest.raises(InputError, match="1 for a mean"):
        filled(fitted, frame, mean=True, draws=2)


def test_lacking_columns_are_added_and_foreign_ones_passed_on(fitted: FittedTable) -> None:
    note = np.array(["a", None, "c"], dtype=object)
    result = filled(fitted, Frame({"note": note, "children": np.array([0.0, 1.0, 2.0])}))
    done = result.frames[0]
    assert done.names == ("note", "children", "height", "colour", "income", "unit")
    assert done.columns["note"].tolist() == ["a", None, "c"]
    assert not len(done.without(["note"]).rows_with_gaps())
    assert result.notes == (
        "not in the table, filled in every row: height, colour, income, unit",
        "not in the density, gaps left as they are: note",
    )


def test_a_table_without_gaps_is_returned_as_it_is(fitted: FittedTable) -> None:
    frame = filled(fitted, holes()).frames[0]
    again = filled(fitted, frame)
    assert again.cells == {}
    assert again.rows == 0
    assert {name: values.tolist() for name, values in again.frames[0].columns.items()} == {
        name: values.tolist() for name, values in frame.columns.items()
    }


def test_twins_tell_each_other_and_arrays_are_filled() -> None:
    x = np.random.default_rng(0).normal(size=(40, 2))
    table = Frame({"a": x[:, 0], "b": x[:, 1], "same": x[:, 0], "k": np.full(40, 7.0)})
    density = EnergyDensity(max_updates=2, random_state=0).fit(table)
    given = Frame(
        {
            "a": np.array([np.nan, 0.5, np.nan]),
            "b": np.array([1.0, np.nan, 1.0]),
            "same": np.array([0.25, np.nan, np.nan]),
            "k": np.full(3, np.nan),
        }
    )
    done = density.impute_frames(given)[0].columns
    assert done["a"][:2].tolist() == [0.25, 0.5]
    assert done["same"].tolist() == done["a"].tolist()
    assert done["k"].tolist() == [7.0] * 3
    numbers = EnergyDensity(max_updates=2, random_state=0).fit(x).impute([[np.nan, 0.1], [0.3, 0.4]])
    assert numbers.shape == (2, 2)
    assert numbers[1].tolist() == [0.3, 0.4]
    assert numbers[0, 1] == 0.1
    assert abs(numbers[0, 0]) < 6


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("colour", "violet", "row 2: what is known cannot occur"),
        ("children", -3.0, "row 2: what is known cannot occur"),
        ("unit", "inch", "row 2: what is known cannot occur"),
    ],
)
def test_what_cannot_occur_is_refused_by_row(
    fitted: FittedTable, column: str, value: object, words: str
) -> None:
    columns = {name: values[:3].copy() for name, values in holes(6).columns.items()}
    columns["height"][:] = np.nan
    columns[column][1] = value
    with pytest.raises(InputError, match=words):
        filled(fitted, Frame(columns))


# ---------------------------------------------------------------- the program


def test_the_program_fills_a_table_and_leaves_the_rest_as_written(burnin: Burnin, run: Path) -> None:
    result = burnin("impute", "run", "holes.csv", "-o", "filled.csv", "--rounds", "6")
    assert result.code == 0, result.err
    assert "filled 8 cells in 3 of 4 rows: height 2, colour 2, children 1, income 2, unit 1" in result.out
    assert "chains: acceptance 0." in result.out
    with Path("filled.csv").open() as file:
        rows = list(csv.reader(file))
    before = list(csv.reader(HOLES.splitlines()))
    for old, new in zip(before, rows, strict=True):
        assert [n for o, n in zip(old, new, strict=True) if o not in ("", "NA", "n/a")] == [
            o for o in old if o not in ("", "NA", "n/a")
        ]
        assert "" not in new
    again = burnin("impute", "run", "holes.csv", "-o", "again.csv", "--rounds", "6")
    assert again.code == 0
    assert Path("again.csv").read_text() == Path("filled.csv").read_text()


def test_several_draws_and_json(burnin: Burnin, run: Path) -> None:
    result = burnin(
        "impute", "run", "holes.csv", "-o", "filled.parquet", "--draws", "3", "--rounds", "4", "--json"
    )
    assert result.code == 0, result.err
    answer = json.loads(result.out)
    assert answer["draws"] == 3
    assert answer["rows_filled"] == 3
    assert answer["cells"]["income"] == 2
    assert 0 < answer["acceptance"] < 1
    table = load_frame("filled.parquet")
    assert table.columns["draw"].tolist() == [1.0] * 4 + [2.0] * 4 + [3.0] * 4
    assert_refused(burnin("impute", "run", "holes.csv", "-o", "filled.parquet"), "exists")
    mean = burnin("impute", "run", "holes.csv", "-o", "mean.csv", "--mean", "--rounds", "4", "--json")
    assert json.loads(mean.out)["draws"] == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("holes.csv", "-o", "x.txt"), ("must end in",)),
        (("holes.csv", "-o", "x.csv", "--bounds", "height=5"), ("COLUMN=LOW:HIGH",)),
        (("holes.csv", "-o", "x.csv", "--bounds", "colour=0:1"), ("bounds for colour", "height")),
        (("holes.csv", "-o", "x.csv", "--bounds", "height=9:1"), ("no value lies between",)),
        (("holes.csv", "-o", "x.csv", "--bounds", "children=0.2:0.8"), ("no value lies between",)),
        (("holes.csv", "-o", "x.csv", "--draws", "2", "--mean"), ("1 for a mean",)),
        (("none.csv", "-o", "x.csv"), ("no such file",)),
        (("other.csv", "-o", "x.csv"), ("none of the density's columns",)),
    ],
)
def test_bad_wishes_end_in_one_line(
    burnin: Burnin, run: Path, tmp_path: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    Path("other.csv").write_text("z,w\n1,2\n", encoding="utf-8")
    before = contents(tmp_path)
    assert_refused(burnin("impute", "run", *arguments), *words)
    assert contents(tmp_path) == before


def test_one_row_and_an_empty_column_can_be_filled(burnin: Burnin, run: Path) -> None:
    Path("one.csv").write_text("height;colour;children\n;red;\n", encoding="utf-8")
    result = burnin("impute", "run", "one.csv", "-o", "filled.csv", "--rounds", "4")
    assert result.code == 0, result.err
    assert "filled in every row: income, unit" in result.err
    header, row = Path("filled.csv").read_text().splitlines()
    assert header == "height;colour;children;income;unit"
    assert row.split(";")[1] == "red"
    assert "" not in row.split(";")
