"""burnin fit, score and sample on tables, as a user runs them."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from rich.console import Console

from burnin.data import load_frame, save_frame
from burnin.fitted import FittedTable
from burnin.terminal import training_bar
from tests.ranks.threads import together
from tests.test_cli import Burnin, Result, assert_refused, burnin, contents

__all__ = ["burnin"]


def people(n: int = 120, seed: int = 0) -> str:
    stream = np.random.default_rng(seed)
    lines = ["id,height,colour,children,income,unit"]
    for index in range(n):
        colour = stream.choice(["red", "green", "blue"], p=[0.5, 0.3, 0.2])
        height = stream.normal(170 + 5 * (colour == "red"), 8)
        lines.append(
            f"p{index},{height:.4f},{colour},{stream.poisson(1.5)},{stream.exponential(3e9):.0f}.5,cm"
        )
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table and its fit, made once in a process of its own."""
    folder = tmp_path_factory.mktemp("fit")
    (folder / "people.csv").write_text(people(), encoding="utf-8")
    result = program(folder, "fit", "people.csv", "--target-col", "id", "--out", "run", "--max-updates", "30")
    assert result.code == 0, result.err
    return folder


def program(folder: Path, *arguments: str) -> Result:
    done = subprocess.run(
        [sys.executable, "-m", "burnin.cli", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
        timeout=300,
    )
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def run(burnin: Burnin, made: Path, tmp_path: Path) -> Path:
    """A copy of the fit and its table in the test's own folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "run"


def test_a_fit_leaves_a_run_that_says_what_the_columns_are(run: Path) -> None:
    names = set(contents(run))
    assert {
        "config.toml",
        "encoding.json",
        "rows.npz",
        "base.npz",
        "choice.json",
        "fitted.json",
        "metrics.jsonl",
    } <= names
    assert not any(name.endswith((".pkl", ".pickle", ".pt")) for name in names)
    kinds = {c["name"]: c["kind"] for c in json.loads((run / "encoding.json").read_text())["columns"]}
    assert kinds == {
        "height": "numeric",
        "colour": "category",
        "children": "numeric",
        "income": "numeric",
        "unit": "constant",
    }


def test_samples_have_the_columns_units_and_bounds_of_the_table(burnin: Burnin, run: Path) -> None:
    result = burnin("sample", "run", "-n", "200", "-o", "new.csv", "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["samples"] == 200
    drawn = load_frame("new.csv")
    assert drawn.names == ("height", "colour", "children", "income", "unit")
    assert len(drawn) == 200
    assert set(drawn.columns["colour"]) <= {"red", "green", "blue"}
    assert set(drawn.columns["unit"]) == {"cm"}
    children, income = drawn.columns["children"], drawn.columns["income"]
    np.testing.assert_array_equal(children, np.round(children))
    assert children.min() >= 0
    assert income.min() >= 0
    assert 1e8 < income.mean() < 1e11
    # 120 rows of sd 8.4 and 200 samples: a mean within 4 standard errors, and some for the model.
    assert abs(drawn.columns["height"].mean() - 172.5) < 4
    with Path("new.csv").open() as file:
        assert next(csv.DictReader(file))["children"].isdigit()
    assert burnin("sample", "run", "-n", "7", "-o", "new.parquet").code == 0
    assert pyarrow.parquet.read_table("new.parquet").num_rows == 7
    assert_refused(burnin("sample", "run", "-n", "7", "-o", "new.csv"), "exists")
    words = burnin("sample", "run", "-n", "7", "-o", "new.npy")
    assert words.code == 2
    assert "colour, unit holds words" in words.err.splitlines()[-1]


def test_scores_have_log_density_percentile_and_flag(burnin: Burnin, run: Path) -> None:
    strange = "p1,400,red,1,1e9,cm\np2,171,violet,1,1e9,cm\np3,171,red,-1,1e9,cm\np4,171,red,1,1e9,inch\n"
    Path("new.csv").write_text(people(40, seed=1) + strange, encoding="utf-8")
    result = burnin("score", "run", "new.csv", "-o", "scores.csv")
    assert result.code == 0, result.err
    assert "nats, between" in result.out
    assert "bits per dimension, between" in result.out
    assert "impossible: 3 rows" in result.out
    assert "not in the density: id" in result.err
    with Path("scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["log_density", "percentile", "outlier"]
    assert len(rows) == 44
    assert [row["outlier"] for row in rows[-4:]] == ["1"] * 4
    assert [row["log_density"] for row in rows[-3:]] == ["-inf"] * 3
    typical = np.array([float(row["percentile"]) for row in rows[:40]])
    # 40 rows of the same law: a mean percentile of 50 within 4 standard errors, 28.9/sqrt(40), less overfit.
    assert 25 < typical.mean() < 70

    as_json = burnin("score", "run", "new.csv", "-o", "scores.parquet", "--json")
    answer = json.loads(as_json.out)
    assert answer["rows"] == 44
    assert answer["outside"] == 3
    assert answer["low"] < answer["nats"] < answer["high"]
    assert answer["bits_per_dimension"] == pytest.approx(-answer["nats"] / (4 * np.log(2)))
    assert answer["log_z_by"] == "annealed importance sampling"
    parquet = load_frame_or_infinite(Path("scores.parquet"))
    assert int(parquet["outlier"].sum()) == answer["outliers"]


def load_frame_or_infinite(path: Path) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    table = pyarrow.parquet.read_table(path)
    return {name: table[name].to_numpy() for name in table.column_names}


def test_the_flag_follows_the_share_of_outliers(burnin: Burnin, run: Path) -> None:
    counted = []
    for share in ("0.05", "0.25"):
        name = f"scores{share}.csv"
        result = burnin("score", "run", "people.csv", "-o", name, "--contamination", share, "--json")
        counted.append(json.loads(result.out)["outliers"])
    assert counted == [6, 30]
    assert_refused(burnin("score", "run", "people.csv", "-o", "x.csv", "--contamination", "0.9"), "0.9")


def test_columns_may_come_in_any_order_and_gaps_are_refused_or_filled(burnin: Burnin, run: Path) -> None:
    Path("order.csv").write_text(
        "income,children,colour,height\n1e9,1,red,\n2e9,0,blue,171\n", encoding="utf-8"
    )
    assert_refused(
        burnin("score", "run", "order.csv", "-o", "s.csv"), "order.csv", "row 1", "height", "--impute"
    )
    assert burnin("score", "run", "order.csv", "-o", "s.csv", "--impute").code == 0
    Path("short.csv").write_text("income,colour\n1e9,red\n", encoding="utf-8")
    assert_refused(burnin("score", "run", "short.csv", "-o", "t.csv"), "lacks the column height, children")
    assert not Path("t.csv").exists()


def test_the_run_may_be_moved_and_judged(burnin: Burnin, run: Path) -> None:
    Path("run").rename("elsewhere")
    Path("people.csv").rename("held-out.csv")
    assert burnin("sample", "elsewhere", "-n", "5", "-o", "new.csv").code == 0
    result = burnin("test", "elsewhere", "--data", "held-out.csv", "--method", "ksd")
    assert result.code == 0, result.err
    assert result.out.startswith("p = ")
    assert_refused(burnin("diagnose", "elsewhere"), "without chains")


def damage_fitted(run: Path) -> None:
    (run / "fitted.json").write_text("{")


def remove_fitted(run: Path) -> None:
    (run / "fitted.json").unlink()


def damage_encoding(run: Path) -> None:
    (run / "encoding.json").write_text('{"columns": []}')


def damage_rows(run: Path) -> None:
    (run / "rows.npz").write_bytes(b"PK")


def damage_base(run: Path) -> None:
    (run / "base.npz").write_bytes(b"PK")


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (damage_fitted, "damaged"),
        (remove_fitted, "burnin fit"),
        (damage_encoding, "damaged"),
        (damage_rows, "damaged"),
        (damage_base, "damaged"),
    ],
)
def test_a_damaged_run_is_named(burnin: Burnin, run: Path, damage: Callable[[Path], None], word: str) -> None:
    damage(run)
    assert_refused(burnin("score", "run", "people.csv", "-o", "s.csv"), word)
    assert not Path("s.csv").exists()


ROWS = "".join(f"{0.137 * i % 1.71:.4f},{10 + 0.31 * i % 5:.5f}\n" for i in range(60))
BAD = {
    "empty": ("", ("the file is empty",)),
    "header": ("a,b\n", ("no rows",)),
    "one row": ("a,b\n1,2\n", ("1 rows", "at least 5")),
    "all constant": ("a,b\n" + "1,2\n" * 20, ("every column is constant",)),
    "text in numbers": (f"a,b\n{ROWS}3,heavy\n", ("row 61", "column b", "'heavy'")),
    "gaps": (f"a,b\n{ROWS}3,\n,4\n", ("row 61, 62", "--impute")),
    "nan": (f"a,b\n{ROWS}3,NaN\n", ("row 61", "--impute")),
    "infinite": (f"a,b\n{ROWS}3,inf\n", ("row 61", "infinite")),
    "two names": (f"a,a\n{ROWS}", ("'a'", "rename")),
    "decimal commas": ("a;b\n" + ROWS.replace(",", ";").replace(".", ","), ("decimal commas",)),
    "ids": ("a,b\n" + "".join(f"n{i},{i}\n" for i in range(60)), ("60 different words", "--target-col")),
    "too large": ("a,b\n" + "".join(f"{i}e300,{i}\n" for i in range(9)), ("rescale",)),
    "blanks between": (
        "a b\n" + ROWS.replace(",", " "),
        ("several numbers in a cell", "a comma, a semicolon"),
    ),
    "colons between": (ROWS.replace(",", ":"), ("several numbers in a cell", "a comma, a semicolon")),
    "empty column": (
        "a,b\n" + "".join(f"{i},\n" for i in range(9)),
        ("column b has no values", "--target-col"),
    ),
    "open quote": ('a,b\n"1,2\n3,4\n', ("row 1 has 1 cells",)),
    "ragged": ("a,b\n1,2\n3\n", ("row 2",)),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_tables_end_in_one_line_and_leave_nothing(burnin: Burnin, tmp_path: Path, kind: str) -> None:
    text, words = BAD[kind]
    Path("bad.csv").write_text(text, encoding="utf-8")
    before = contents(tmp_path)
    assert_refused(burnin("fit", "bad.csv", "--out", "new"), "bad.csv", *words)
    assert contents(tmp_path) == before
    assert not Path("new").exists()


def test_a_cut_parquet_is_refused(burnin: Burnin) -> None:
    Path("rows.csv").write_text("a,b\n" + ROWS, encoding="utf-8")
    save_frame(load_frame("rows.csv"), Path("rows.parquet"))
    Path("cut.parquet").write_bytes(Path("rows.parquet").read_bytes()[:-100])
    assert_refused(burnin("fit", "cut.parquet", "--out", "new"), "cut.parquet", "damaged or cut short")


def test_two_processes_score_as_one_does(run: Path) -> None:
    pytest.importorskip("lightning_fabric")
    folder = run.parent
    assert program(folder, "score", "run", "people.csv", "-o", "one.csv").code == 0
    shared = program(folder, "score", "run", "people.csv", "-o", "two.csv", "--devices", "2", "--json")
    assert shared.code == 0, shared.err
    assert json.loads(shared.out)["file"] == "two.csv"
    assert (folder / "two.csv").read_text() == (folder / "one.csv").read_text()
    assert program(folder, "score", "run", "people.csv", "-o", "two.csv", "--devices", "2").code == 2


def test_rows_that_processes_share_have_the_density_that_they_have(run: Path) -> None:
    fitted = FittedTable.load(run)
    frame = load_frame(run.parent / "people.csv")
    codes = fitted.encoding.codes(frame)
    for rows in (len(codes), 2):  # of two rows, one of three processes has none
        wanted = fitted.log_density(codes[:rows])
        share = partial(fitted.log_density, codes[:rows], None)
        for found in together(3, share):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("command", ["score", "impute"])
def test_a_cut_parquet_is_refused_wherever_it_is_read(burnin: Burnin, run: Path, command: str) -> None:
    Path("cut.parquet").write_bytes(b"PAR1" + bytes(40))
    assert_refused(
        burnin(command, "run", "cut.parquet", "-o", "x.csv"), "cut.parquet", "damaged or cut short"
    )
    assert not Path("x.csv").exists()


def save_pickled(path: Path) -> None:
    np.save(path, np.array([{"a": 1}] * 9, dtype=object))


ARRAYS: dict[str, tuple[str, Callable[[Path], object], tuple[str, ...]]] = {
    "cut npy": ("bad.npy", lambda path: path.write_bytes(b"\x93NUMPY\x01"), ("damaged",)),
    "cut npz": ("bad.npz", lambda path: path.write_bytes(b"PK\x03\x04zz"), ("damaged",)),
    "pickled": ("bad.npy", save_pickled, ("pickled",)),
    "no rows": ("bad.npy", lambda path: np.save(path, np.zeros((0, 2))), ("no rows",)),
    "one axis": ("bad.npy", lambda path: np.save(path, np.arange(9.0)), ("2-D", "(9,)")),
    "gaps": ("bad.npy", lambda path: np.save(path, np.full((9, 2), np.nan)), ("no values at all",)),
    "complex": ("bad.npy", lambda path: np.save(path, np.zeros((9, 2), complex)), ("real numbers",)),
    "utf-16": ("bad.csv", lambda path: path.write_text("a,b\n1,2\n", encoding="utf-16"), ("UTF-8",)),
    "bytes": ("bad.csv", lambda path: path.write_bytes(bytes(range(256))), ("UTF-8",)),
    "ending": ("bad.txt", lambda path: path.write_text("a,b\n1,2\n"), ("'.txt'", ".parquet")),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_bad_files_end_in_one_line_and_leave_nothing(burnin: Burnin, kind: str) -> None:
    name, make, words = ARRAYS[kind]
    make(Path(name))
    assert_refused(burnin("fit", name, "--out", "new"), name, *words)
    assert not Path("new").exists()


def test_large_and_small_scales_are_fitted(burnin: Burnin) -> None:
    stream = np.random.default_rng(0)
    values = stream.normal(size=(40, 2)) * [1e9, 1e-9] + [5e9, 0]
    np.save("scales.npy", values)
    result = burnin("fit", "scales.npy", "--out", "new", "--max-updates", "2")
    assert result.code == 0, result.err
    assert burnin("sample", "new", "-n", "200", "-o", "new.npy").code == 0
    drawn = np.load("new.npy")
    # Two updates from the Gaussian of 40 rows: means within 5 standard errors of those of the rows.
    assert (np.abs(drawn.mean(0) - values.mean(0)) < 5 * values.std(0) / np.sqrt(40)).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--target-col", "c"), ("no column 'c'", "a, b")),
        (("--bounds", "a"), ("COLUMN=LOW:HIGH",)),
        (("--bounds", "a=x:y"), ("COLUMN=LOW:HIGH",)),
        (("--bounds", "c=0:1"), ("bounds for c", "a, b")),
        (("--bounds", "a=0:1"), ("beyond its bounds",)),
        (("--contamination", "0.8"), ("contamination is 0.8",)),
        (("--minutes", "0"), ("minutes is 0",)),
        (("--resume",), ("no config.toml",)),
    ],
)
def test_bad_options_end_in_one_line(
    burnin: Burnin, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    Path("rows.csv").write_text("a,b\n" + ROWS, encoding="utf-8")
    assert_refused(burnin("fit", "rows.csv", "--out", "new", *arguments), *words)
    assert not Path("new").exists()


def test_repairs_are_named(burnin: Burnin) -> None:
    lines = ["a;b;same;k"] + [
        f"{x:.5f};{y};{x:.5f};7" for x, y in np.random.default_rng(0).normal(size=(40, 2))
    ]
    Path("table.csv").write_text("\n".join(lines), encoding="utf-8")
    result = burnin("fit", "table.csv", "--out", "new", "--max-updates", "2", "--json")
    assert result.code == 0, result.err
    assert "read with a semicolon between cells" in result.err
    assert "same: repeats a" in result.err
    assert "k: constant (7.0)" in result.err
    answer = json.loads(result.out)
    assert answer["columns"]["same"].startswith("repeats a")
    assert answer["normaliser"]["by"] == "a grid"
    assert burnin("sample", "new", "-n", "9", "-o", "new.csv").code == 0
    drawn = load_frame("new.csv")
    assert drawn.names == ("a", "b", "same", "k")
    np.testing.assert_array_equal(drawn.columns["a"], drawn.columns["same"])
    before = contents(Path("new"))
    assert_refused(burnin("fit", "table.csv", "--out", "new"), "burnin: new already holds something")
    assert contents(Path("new")) == before


def test_impute_fills_and_says_so(burnin: Burnin) -> None:
    Path("gaps.csv").write_text(f"a,b\n{ROWS}3,\n,4\n", encoding="utf-8")
    result = burnin("fit", "gaps.csv", "--out", "new", "--max-updates", "2", "--impute")
    assert result.code == 0, result.err
    assert "a: 1 gaps filled" in result.err


def test_ctrl_c_keeps_the_best_and_resume_goes_on(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b\n" + ROWS, encoding="utf-8")
    fit = ["fit", "rows.csv", "--out", "run", "--max-updates", "100000"]
    started = subprocess.Popen(
        [sys.executable, "-m", "burnin.cli", *fit],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
    )
    metrics, deadline = tmp_path / "run" / "metrics.jsonl", time.monotonic() + 120
    while not (tmp_path / "run" / "checkpoint-000000000.json").exists() or not metrics.exists():
        assert time.monotonic() < deadline
        assert started.poll() is None, started.communicate()
        time.sleep(0.05)
    time.sleep(0.2)  # the fit ends by itself after some seconds
    started.send_signal(signal.SIGINT)
    _, err = started.communicate(timeout=120)
    assert started.returncode == 130, err
    assert "Traceback" not in err
    assert program(tmp_path, "score", "run", "rows.csv", "-o", "scores.csv").code == 0
    again = program(tmp_path, "fit", "--resume", "--out", "run", "--minutes", "0.03", "--json")
    assert again.code == 0, again.err
    assert json.loads(again.out)["trained_for"] >= 1


@pytest.mark.parametrize("command", ["fit", "score"])
def test_help_shows_an_example(burnin: Burnin, command: str) -> None:
    result = burnin(command, "--help")
    assert result.code == 0
    assert f"Example: burnin {command}" in result.out


def test_the_bar_shows_samples_and_the_numbers_of_each_arm() -> None:
    """Below the bar, whole on a terminal of 100 columns."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=100, color_system=None)
    numbers = {
        f"{name}/{arm}": value
        for arm in ("noise", "data")
        for name, value in (("d", -0.25), ("r", 1.5), ("acceptance", 0.9), ("step_size", 0.05))
    }
    with training_bar(console, "training", 200, 128) as update:
        update(10, numbers)
    lines = text.getvalue().splitlines()
    assert any("training" in line and "10/200" in line for line in lines)
    arm = "d -0.250 r 1.5 acc 0.90 step 0.05"
    assert any(f"1,280 samples  noise: {arm}  data: {arm}" in line for line in lines)
