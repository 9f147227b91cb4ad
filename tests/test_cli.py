"""The command line: what it writes, what it refuses, in how many lines and with which exit code."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
import typer.main

from burnin.cli import app, main
from burnin.evaluation import Standing

SMALL = """
title = "small"
[run]
updates = 12
batch_size = 16
checkpoint_every = 5
tensorboard = false
[data]
name = "mixture8"
[model]
temperature = 0.5
width = 8
depth = 1
gaussian_factor = "fixed"
[scheme]
name = "hybrid"
bank_size = 40
[sampler]
num_steps = 3
step_size = 0.05
[study]
samples = 60
distance_sets = 5
long_chains = 40
long_steps = 20
data_chains = 40
data_steps = 20
grid_points = 21
likelihood_particles = 8
"""
STUDY = (
    "study={samples=60, distance_sets=5, long_chains=40, long_steps=20, data_chains=40, data_steps=20, "
    "grid_points=21, cooling_steps=10, likelihood_particles=8}"
)
ROWS = "length,width\n" + "".join(f"{0.1 * i % 1.7:.3f},{10 + 0.3 * i % 5:.3f}\n" for i in range(60))


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Burnin = Callable[..., Result]


@pytest.fixture
def burnin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Burnin]:
    """Runs the program in this process, in a folder of its own with small.toml and rows.csv."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("small.toml").write_text(SMALL, encoding="utf-8")
    Path("rows.csv").write_text(ROWS, encoding="utf-8")
    threads = torch.get_num_threads()

    def call(*arguments: str) -> Result:
        monkeypatch.setattr(sys, "argv", ["burnin", *arguments])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as exit:
            code = exit.code if isinstance(exit.code, int) else int(exit.code is not None)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    yield call
    torch.set_num_threads(threads)


@pytest.fixture
def trained(burnin: Burnin) -> Path:
    result = burnin("train", "small.toml", "--out", "run")
    assert result.code == 0, result.err
    return Path("run")


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def assert_refused(result: Result, *words: str, code: int = 2) -> None:
    assert result.code == code, result.err
    assert result.out == ""
    lines = result.err.splitlines()
    assert len(lines) == 1, result.err
    assert lines[0].startswith("burnin: ")
    for word in words:
        assert word in lines[0]


# ---------------------------------------------------------------- help


COMMANDS = ["train", "sample", "export", "diagnose", "report", "reproduce", "recipes", "demo", "bench"]


def test_the_commands_are_those_of_the_issue() -> None:
    assert set(COMMANDS) <= set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(burnin: Burnin, command: str) -> None:
    result = burnin(command, "--help")
    assert result.code == 0
    assert f"Example: burnin {command}" in result.out


def test_no_command_shows_help(burnin: Burnin) -> None:
    result = burnin()
    assert "train" in result.out + result.err


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("train", "rigns"), ("'rings'",)),
        (("train", "missing.toml"), ("missing.toml",)),
        (("train", "small.toml", "--set", "data.name=mixtur8"), ("did you mean 'mixture8'?",)),
        (("train", "small.toml", "--set", "model.widht=8"), ("unknown key", "'width'")),
        (("train", "small.toml", "--set", "widht=8"), ("unknown key",)),
        (("train", "small.toml", "--set", "model.width"), ("key=value",)),
        (("train", "small.toml", "--set", "model.width=0"), ("width",)),
        (("train", "small.toml", "--set", "model.activation=selu"), ("activation", "silu")),
        (("train", "small.toml", "--set", "model.temperature=-1"), ("temperature",)),
        (("train", "small.toml", "--set", "sampler.step_size=0"), ("step_size",)),
        (("train", "small.toml", "--set", "optimizer.name=Adan"), ("Adan",)),
        (("train", "small.toml", "--set", "run.log_every=0"), ("log_every",)),
        (("train", "small.toml", "--set", "model.average=2"), ("average",)),
        (
            ("train", "small.toml", "--set", "scheme.name=persistent", "--set", "scheme.bank_size=8"),
            ("bank_size",),
        ),
        (("train", "small.toml", "--set", "data.file=rows.csv"), ("either a name", "or a file")),
        (("train", "small.toml", "--resume"), ("no config.toml",)),
        (("reproduce", "ring"), ("'rings'",)),
        (("reproduce", "rings", "--quick", "--rows", "hybird"), ("'hybrid'",)),
        (("reproduce", "rings", "--set", "run.update=1"), ("unknown key",)),
        (("demo", "--set", "model.widht=8"), ("unknown key", "'width'")),
    ],
    ids=lambda value: " ".join(value) if value[0] in COMMANDS else "",
)
def test_bad_settings_end_in_one_line_and_write_nothing(
    burnin: Burnin, tmp_path: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    before = contents(tmp_path)
    out = () if arguments[0] == "demo" else ("--out", "new")
    assert_refused(burnin(*arguments, *out), *words)
    assert contents(tmp_path) == before
    assert not Path("new").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\nnan,3\n4,5\n6,inf\n", ("2 of 4 rows", "row 2, 4")),
        ("a,b\n1,2\n3,\n", ("row 2", "empty")),
        ("a,b\n1,2\n3,x\n", ("row 2", "'x'")),
        ("a,b\n1,2\n3\n", ("row 2",)),
        ("", ("empty",)),
        ("a,b\n", ("empty",)),
        ("a,b\n1,7\n2,7\n3,7\n", ("constant",)),
    ],
    ids=["nan", "gap", "word", "short row", "empty", "header only", "constant column"],
)
def test_bad_data_end_in_one_line_and_write_nothing(
    burnin: Burnin, text: str, words: tuple[str, ...]
) -> None:
    Path("small.toml").write_text(SMALL.replace('name = "mixture8"', 'file = "bad.csv"'))
    Path("bad.csv").write_text(text)
    assert_refused(burnin("train", "small.toml", "--out", "new"), *words)
    assert not Path("new").exists()


def test_a_constant_column_is_refused_whatever_the_energy_sees(burnin: Burnin) -> None:
    Path("small.toml").write_text(SMALL.replace('name = "mixture8"', 'file = "bad.csv"'))
    Path("bad.csv").write_text("a,b\n1,0.1\n2,0.1\n3,0.1\n")
    result = burnin("train", "small.toml", "--set", "model.standardise=false", "--out", "new")
    assert_refused(result, "constant")
    assert not Path("new").exists()


def test_a_missing_data_file_is_named(burnin: Burnin) -> None:
    Path("small.toml").write_text(SMALL.replace('name = "mixture8"', 'file = "none.csv"'))
    assert_refused(burnin("train", "small.toml", "--out", "new"), "none.csv", "no such file")


def test_a_folder_in_use_is_not_touched(burnin: Burnin, trained: Path) -> None:
    before = contents(trained)
    assert_refused(burnin("train", "small.toml", "--out", "run"), "already holds something", "--resume")
    assert contents(trained) == before
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("precious")
    assert_refused(burnin("train", "small.toml", "--out", "mine"), "already holds something")
    assert [p.name for p in Path("mine").iterdir()] == ["notes.txt"]
    assert_refused(burnin("train", "small.toml", "--out", "rows.csv"), "is a file")
    assert Path("rows.csv").read_text() == ROWS
    assert_refused(burnin("train", "small.toml", "--out", "rows.csv/inner"), "rows.csv")


def test_an_empty_folder_may_be_used(burnin: Burnin) -> None:
    Path("empty").mkdir()
    assert burnin("train", "small.toml", "--out", "empty").code == 0


def flip_a_byte(path: Path) -> None:
    payload = bytearray(path.read_bytes())
    payload[-1] ^= 255
    path.write_bytes(payload)


def newest(folder: Path, ending: str) -> Path:
    return sorted(folder.glob(f"checkpoint-*.{ending}"))[-1]


def remove_checkpoints(run: Path) -> None:
    for path in run.glob("checkpoint-*"):
        path.unlink()


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "damaged tensors": (lambda run: flip_a_byte(newest(run, "safetensors")), "damaged"),
    "damaged json": (lambda run: newest(run, "json").write_text("{"), "damaged"),
    "foreign json": (lambda run: newest(run, "json").write_text('{"epoch": 3}'), "not written by"),
    "none": (remove_checkpoints, "holds no checkpoint"),
    "other energy": (
        lambda run: (run / "config.toml").write_text(
            (run / "config.toml").read_text().replace("width = 8", "width = 9")
        ),
        "do not fit this energy",
    ),
    "damaged config": (lambda run: (run / "config.toml").write_text("title ="), "not valid TOML"),
    "no run": (lambda run: (run / "config.toml").unlink(), "no config.toml"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_foreign_run_is_refused_by_every_command(
    burnin: Burnin, trained: Path, damage: str
) -> None:
    hurt, words = DAMAGES[damage]
    hurt(trained)
    before = contents(trained)
    assert_refused(burnin("sample", "run", "-n", "5", "-o", "new.csv"), words)
    assert_refused(burnin("report", "run"), words)
    assert_refused(burnin("report", "run", "--json"), words)
    assert_refused(burnin("diagnose", "run"), words)
    assert_refused(burnin("train", "small.toml", "--out", "run", "--resume"), words)
    assert contents(trained) == before
    assert not Path("new.csv").exists()


def test_commands_need_a_run(burnin: Burnin) -> None:
    assert_refused(burnin("sample", "nowhere", "-o", "new.npy"), "nowhere", "no run")
    assert_refused(burnin("report", "nowhere"), "nowhere", "no run")
    assert_refused(burnin("report", "."), "no run")
    assert_refused(burnin("diagnose", "nowhere"), "nowhere", "no run")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-o", "new.txt"), ("new.txt", ".npy, .csv or .parquet")),
        (("-o", "rows.csv"), ("rows.csv exists", "--force")),
        (("-o", "no/folder/new.csv"), ("no/folder",)),
        (("-n", "0"), ("-n is 0",)),
        (("--steps", "-1"), ("--steps -1",)),
    ],
)
def test_sample_refuses_before_it_works(
    burnin: Burnin, trained: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    assert_refused(burnin("sample", "run", *arguments), *words)
    assert Path("rows.csv").read_text() == ROWS
    assert not Path("samples.npy").exists()


def test_divergence_exits_with_3(burnin: Burnin) -> None:
    result = burnin(
        "train",
        "small.toml",
        "--out",
        "wild",
        *("--set", "optimizer.name=SGD"),
        *("--set", "optimizer.learning_rate=1e15"),
        *("--set", "guard.tries=2"),
    )
    assert result.code == 3
    assert "diverged" in result.err.splitlines()[-1]
    assert "given up after 2 rollbacks" in result.err
    assert result.err.count("training: ") == 2
    events = [json.loads(line) for line in Path("wild/metrics.jsonl").read_text().splitlines()]
    assert sum("event" in row for row in events) == 2
    assert burnin("sample", "wild", "-n", "3", "-o", "after.npy").code == 0  # the last good one is kept


# ---------------------------------------------------------------- what works


def test_train_leaves_what_the_design_says(trained: Path) -> None:
    names = sorted(path.name for path in trained.iterdir())
    assert names[-3:] == ["config.toml", "metrics.jsonl", "origin.json"]
    assert [name for name in names if name.endswith(".json")] == [
        "checkpoint-000000010.json",
        "checkpoint-000000012.json",
        "origin.json",
    ]
    assert len((trained / "metrics.jsonl").read_text().splitlines()) == 12


def test_the_default_folder_is_named_for_the_recipe(burnin: Burnin) -> None:
    assert burnin("train", "small.toml").code == 0
    assert Path("runs/small/config.toml").exists()


def test_resume_takes_the_runs_own_settings_or_the_same_and_no_others(burnin: Burnin) -> None:
    change = ("--set", "run.seed=5")
    assert burnin("train", "small.toml", "--out", "run", *change).code == 0
    before = contents(Path("run"))
    assert burnin("train", "small.toml", "--out", "run", "--resume").code == 0
    assert burnin("train", "small.toml", "--out", "run", "--resume", *change).code == 0
    assert_refused(
        burnin("train", "small.toml", "--out", "run", "--resume", "--set", "run.seed=6"), "other settings"
    )
    assert contents(Path("run")) == before


def test_a_table_is_trained_sampled_and_reported_under_its_own_names(burnin: Burnin) -> None:
    change = ("--set", 'data={file="rows.csv"}', "--set", "model.standardise=true")
    assert burnin("train", "small.toml", "--out", "run", *change).code == 0

    result = burnin("sample", "run", "-n", "7", "-o", "new.csv", "--steps", "5")
    assert result.code == 0
    assert result.out == ""
    with Path("new.csv").open() as file:
        header, *rows = list(csv.reader(file))
    assert header == ["length", "width"]
    values = np.array(rows, dtype=float)
    assert values.shape == (7, 2)
    assert np.isfinite(values).all()

    result = burnin("report", "run")
    assert result.code == 0
    lines = result.out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["verdict", "generates", "converged", "density", "fit"]
    assert "unknown" in lines[4]
    assert Path("run/report.html").stat().st_size > 10_000
    assert Path("run/report.png").read_bytes().startswith(b"\x89PNG")


def test_one_column_is_enough(burnin: Burnin) -> None:
    Path("one.csv").write_text("height\n" + "".join(f"{1.5 + 0.01 * i}\n" for i in range(30)))
    assert burnin("train", "small.toml", "--out", "run", "--set", 'data={file="one.csv"}').code == 0
    assert burnin("report", "run").code == 0


def test_many_samples_are_drawn_in_blocks(burnin: Burnin, trained: Path) -> None:
    result = burnin("sample", "run", "-n", "25", "-o", "all.npy", "--block", "10")
    assert result.code == 0, result.err
    assert "chains: " in result.err
    drawn = np.load("all.npy")
    assert drawn.shape == (25, 2)
    assert np.isfinite(drawn).all()
    assert len(np.unique(drawn, axis=0)) == 25, "each block draws its own"
    assert burnin("sample", "run", "-n", "10", "-o", "first.npy", "--block", "10").code == 0
    np.testing.assert_array_equal(np.load("first.npy"), drawn[:10])
    assert burnin("sample", "run", "-n", "25", "-o", "all.csv", "--block", "10").code == 0
    np.testing.assert_allclose(np.loadtxt("all.csv", delimiter=",", skiprows=1), drawn, rtol=1e-6)


def test_long_chains_are_kept_on_disk(burnin: Burnin, trained: Path) -> None:
    further = ("--steps", "25", "--keep", "chains.npy", "--keep-every", "10")
    assert burnin("sample", "run", "-n", "6", "-o", "ends.npy", *further).code == 0
    kept = np.load("chains.npy", mmap_mode="r")
    assert kept.shape == (2, 6, 2)
    assert burnin("sample", "run", "-n", "6", "-o", "twenty.npy", "--steps", "20").code == 0
    np.testing.assert_array_equal(kept[1], np.load("twenty.npy"))


def test_samples_as_npy_are_seeded_and_not_written_over(burnin: Burnin, trained: Path) -> None:
    for name, seed in (("a", "0"), ("b", "0"), ("c", "1")):
        assert burnin("sample", "run", "-n", "9", "-o", f"{name}.npy", "--seed", seed).code == 0
    a, b, c = (np.load(f"{name}.npy") for name in "abc")
    assert a.shape == (9, 2)
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)
    before = Path("a.npy").read_bytes()
    assert burnin("sample", "run", "-n", "9", "-o", "a.npy", "--seed", "1").code == 2
    assert Path("a.npy").read_bytes() == before
    assert burnin("sample", "run", "-n", "9", "-o", "a.npy", "--seed", "1", "--force").code == 0
    assert np.array_equal(np.load("a.npy"), c)


def test_report_of_a_toy_knows_the_fit_and_speaks_json(burnin: Burnin, trained: Path) -> None:
    result = burnin("report", "run", "--json")
    assert result.code == 0
    answer = json.loads(result.out)
    assert len(answer["verdict"]) == 5
    assert "KL(true ‖ model)" in answer["verdict"][4]
    assert "sample distance" in answer["numbers"]
    again = burnin("report", "run")
    assert again.out.splitlines() == answer["verdict"]  # the same seed, the same verdict
    assert contents(trained).keys() >= {"report.html", "report.png"}


def test_diagnose_speaks_words_and_json_and_draws(burnin: Burnin) -> None:
    assert burnin("train", "small.toml", "--out", "run", "--set", "run.updates=120").code == 0
    plain, as_json = burnin("diagnose", "run"), burnin("diagnose", "run", "--json")
    assert plain.code == as_json.code == 0, plain.err
    answer = json.loads(as_json.out)
    assert set(answer["arms"]) == {"noise", "data"}
    for arm in answer["arms"].values():
        assert arm["logged"] == arm["window"] == 120
        assert arm["oscillation"]["kind"] in ("none yet", "weak", "strong")
        assert arm["balance"]["ratio"] > 0
        assert len(arm["correlations"]["d"]) == 16
    assert plain.out.splitlines()[0].split() == ["data", "noise"]
    assert plain.out.splitlines()[-len(answer["findings"]) :] == answer["findings"]
    assert Path("run/diagnose.png").read_bytes().startswith(b"\x89PNG")
    assert "diagnose.png" in plain.err


def test_diagnose_says_when_a_run_is_too_short_or_logged_too_rarely(burnin: Burnin, trained: Path) -> None:
    assert "12 logged updates are too few" in burnin("diagnose", "run").out
    changes = ("--set", "run.updates=300", "--set", "run.log_every=3")
    assert burnin("train", "small.toml", "--out", "rare", *changes).code == 0
    result = burnin("diagnose", "rare")
    assert result.code == 0
    assert "only one update in 3 was logged" in result.out


@pytest.mark.parametrize("line", ["{", "[1, 2]", '{"loss": 0.0}'])
def test_damaged_metrics_are_refused_with_their_line(burnin: Burnin, trained: Path, line: str) -> None:
    path = Path("run/metrics.jsonl")
    rows = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*rows[:4], line, *rows[4:]]) + "\n", encoding="utf-8")
    assert_refused(burnin("diagnose", "run"), "metrics.jsonl", "line 5")


def test_diagnose_of_a_run_without_updates_is_refused(burnin: Burnin, trained: Path) -> None:
    Path("run/metrics.jsonl").unlink()
    assert_refused(burnin("diagnose", "run"), "no logged update")


def test_the_report_has_a_section_on_training_with_the_monitors(burnin: Burnin) -> None:
    changes = ("--set", "run.updates=60", "--set", "scheme.beta=0.1")
    assert burnin("train", "small.toml", "--out", "run", *changes).code == 0
    assert burnin("report", "run").code == 0
    text = Path("run/report.html").read_text(encoding="utf-8")
    for title in ("Training", "Spread of the losses", "β-weights"):
        assert f'<h3 class="part">{title}</h3>' in text
    assert "β-weighted" in text


def test_recipes_lists_what_each_costs_and_expects(burnin: Burnin) -> None:
    plain, as_json = burnin("recipes"), burnin("recipes", "--json")
    assert plain.code == as_json.code == 0
    listed = json.loads(as_json.out)
    assert {"demo", "rings", "rings-quick"} <= set(listed)
    for name, recipe in listed.items():
        assert f"{name}: {recipe['title']}" in plain.out
        assert recipe["cost"] in plain.out
    assert "expects hybrid's density_kl" in plain.out


def test_check_gives_one_of_five_sentences_with_its_numbers(burnin: Burnin, trained: Path) -> None:
    result = burnin("check", "run", "--json")
    assert result.code == 0, result.err
    answer = json.loads(result.out)
    assert answer["verdict"] in {str(standing) for standing in Standing}
    assert answer["lines"][0] == f"verdict:   {answer['verdict']}."
    assert set(answer["evidence"]) >= {"short", "long", "stayed", "anywhere", "rhat", "density_kl"}
    assert (trained / "check.png").stat().st_size > 10_000
    again = burnin("check", "run")
    assert again.out.splitlines() == answer["lines"]  # the same seed, the same verdict


def test_check_on_other_data(burnin: Burnin, trained: Path) -> None:
    Path("held.csv").write_text(ROWS, encoding="utf-8")
    result = burnin("check", "run", "--data", "held.csv")
    assert result.code == 0, result.err
    assert "fit:       unknown" in result.out
    Path("wide.csv").write_text("a,b,c\n1,2,3\n4,5,7\n", encoding="utf-8")
    wrong = burnin("check", "run", "--data", "wide.csv")
    assert wrong.code == 2
    assert "the data has 3 columns; the model was trained on 2" in wrong.err
    missing = burnin("check", "run", "--data", "nowhere.csv")
    assert missing.code == 2
    assert len(missing.err.splitlines()) == 1


def test_demo_resumes_and_refuses_other_settings(burnin: Burnin) -> None:
    changes = [
        "run.updates=4",
        "run.batch_size=16",
        "run.tensorboard=false",
        "model.width=8",
        "model.depth=1",
        "sampler.num_steps=3",
        "sampler_from_noise={}",
        STUDY,
    ]
    arguments = ["demo", "--out", "demo", *(part for change in changes for part in ("--set", change))]
    first = burnin(*arguments)
    assert first.code == 0, first.err
    assert len(first.out.splitlines()) == 5
    assert Path("demo/report.html").exists()
    again = burnin(*arguments)
    assert again.out == first.out
    before = contents(Path("demo"))
    assert_refused(burnin(*arguments, "--set", "run.seed=1"), "other settings")
    assert contents(Path("demo")) == before


TINY = [
    "run.updates=4",
    "run.batch_size=16",
    "run.tensorboard=false",
    "model.width=8",
    "model.depth=1",
    "sampler.num_steps=3",
    "sampler.step_size=0.1",
    "sampler_from_noise={num_steps=4}",
    STUDY,
]


def test_reproduce_makes_rows_once_and_refuses_other_settings(burnin: Burnin) -> None:
    changes = [part for change in [*TINY, "expected=[]"] for part in ("--set", change)]
    arguments = [
        "reproduce",
        "rings",
        "--quick",
        "--rows",
        "data,hybrid",
        "--jobs",
        "1",
        "--out",
        "study",
        *changes,
    ]
    first = burnin(*arguments, "--json", "copy.json")
    assert first.code == 0, first.err
    assert "| | data | hybrid |" in first.out
    study = Path("study")
    table = json.loads((study / "table.json").read_text(encoding="utf-8"))
    assert json.loads(Path("copy.json").read_text(encoding="utf-8")) == table
    assert list(table["rows"]) == ["data", "hybrid"]
    for row in table["rows"].values():
        assert {"density_kl", "density_kl_within", "sample_distance", "ring_shares"} <= set(row["metrics"])
        assert {"command", "commit", "time", "machine"} <= set(row["made_by"])
    assert (study / "table.md").read_text(encoding="utf-8").startswith("| | data | hybrid |")
    assert (study / "figure.png").read_bytes().startswith(b"\x89PNG")

    rows = {
        name: value for name, value in contents(study).items() if not name.startswith(("table", "figure"))
    }
    again = burnin(*arguments)
    assert again.code == 0, again.err
    assert again.out == first.out
    later = contents(study)
    assert {name: later[name] for name in rows} == rows  # nothing was made again, by content and by time

    everything = contents(study)
    assert_refused(burnin(*arguments, "--set", "run.seed=1"), "other settings", "--out")
    assert contents(study) == everything


def test_reproduce_exits_with_1_when_an_expectation_is_missed(burnin: Burnin) -> None:
    """With a row that is there already, so that nothing is trained."""
    from burnin.config import load_config
    from burnin.studies.rings import SCHEMES

    expected = 'expected=[{scheme="hybrid", metric="density_kl", at_most=0.1}]'
    claim = 'expected=[{scheme="hybrid", metric="density_kl", at_most=0.1, claim=true}]'
    config = load_config("rings-quick", [*TINY, *SCHEMES["hybrid"]])
    study = Path("study")
    study.mkdir()
    row = {"metrics": {"density_kl": 0.5}, "config": config.essence()}
    (study / "hybrid.json").write_text(json.dumps(row))
    import safetensors.torch

    safetensors.torch.save_file(
        {"samples": torch.zeros(5, 10), "log_density": torch.zeros(21 * 21)}, study / "hybrid.safetensors"
    )
    changes = [part for change in TINY for part in ("--set", change)]
    arguments = ["reproduce", "rings", "--quick", "--rows", "hybrid", "--out", "study", *changes]
    missed = burnin(*arguments, "--set", expected)
    assert missed.code == 1
    assert "MISSED" in missed.out
    not_so = burnin(*arguments, "--set", claim)
    assert not_so.code == 0
    assert "NOT so" in not_so.out


def test_a_damaged_row_is_named(burnin: Burnin) -> None:
    Path("study").mkdir()
    Path("study/data.json").write_text("{")
    result = burnin("reproduce", "rings", "--quick", "--rows", "data", "--out", "study")
    assert_refused(result, "data.json", "damaged")
    assert Path("study/data.json").read_text() == "{"


def test_the_installed_program_does_the_same(tmp_path: Path) -> None:
    """Once through a process of its own: exit code, one line, no traceback."""
    result = subprocess.run(
        [sys.executable, "-m", "burnin.cli", "train", "rigns", "--out", str(tmp_path / "new")],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=120,
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "did you mean 'rings'?" in result.stderr
    assert not (tmp_path / "new").exists()
