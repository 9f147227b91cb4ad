"""`burnin test` and `burnin compare`: what they say, write and refuse, against a run of a known energy."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from burnin.cli import main

RECIPE = """
title = "a Gaussian, almost"
[run]
updates = 1
batch_size = 16
tensorboard = false
[data]
file = "train.npy"
[model]
temperature = 0.5
width = 4
depth = 1
first_scale = 0.001
gaussian_factor = "fixed"
[scheme]
name = "data"
[sampler]
num_steps = 1
step_size = 0.01
[optimizer]
learning_rate = 1e-6
"""
"""One update with hardly a step leaves the Gaussian factor: the moments of the training rows."""


QUICK = ("--iterations", "60")


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Burnin = Callable[..., Result]


def normal_rows(n: int, seed: int, shift: float = 0.0) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    rows: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = (
        torch.randn(n, 2, generator=torch.Generator().manual_seed(seed)) + shift
    ).numpy()
    return rows


@pytest.fixture
def burnin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Burnin:
    """Runs the program in a folder with a run of N(0, 1), one of N(2, 1), and rows of N(0, 1)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)

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

    Path("recipe.toml").write_text(RECIPE, encoding="utf-8")
    np.save("held.npy", normal_rows(200, 1))
    for name, shift in (("right", 0.0), ("wrong", 2.0)):
        np.save("train.npy", normal_rows(20_000, 0, shift))
        assert call("train", "recipe.toml", "--out", name, "--set", f"title={name}").code == 0
        Path("train.npy").replace(f"{name}.npy")
        text = Path(name, "config.toml").read_text(encoding="utf-8")
        Path(name, "config.toml").write_text(text.replace("train.npy", f"{name}.npy"), encoding="utf-8")
    return call


def assert_refused(result: Result, *words: str) -> None:
    assert result.code == 2, result.err
    assert result.out == ""
    assert len(result.err.splitlines()) == 1, result.err
    for word in words:
        assert word in result.err


@pytest.mark.parametrize("method", ["lsd", "ksd", "lksd", "fssd"])
def test_a_run_is_tested_against_rows(burnin: Burnin, method: str) -> None:
    right = burnin("test", "right", "--data", "held.npy", "--method", method, *QUICK)
    assert right.code == 0, right.err
    assert right.out.startswith("p = ")
    assert "no sign that the data did not come from this model" in right.out
    assert len(right.out.splitlines()) == 1
    assert Path("right", "test.png").stat().st_size > 5_000
    wrong = burnin("test", "wrong", "--data", "held.npy", "--method", method, "--json", *QUICK)
    answer = json.loads(wrong.out)
    assert answer["reject"] is True
    assert answer["method"] == method
    assert answer["p_value"] < 0.05
    assert answer["num_points"] == 200


def test_the_level_and_the_seed_are_obeyed(burnin: Burnin) -> None:
    def run(*options: str) -> dict[str, object]:
        result = burnin("test", "right", "--data", "held.npy", "--method", "ksd", "--json", *options)
        answer: dict[str, object] = json.loads(result.out)
        return {name: value for name, value in answer.items() if name != "seconds"}

    assert run() == run()
    assert run("--seed", "1") != run()
    assert run("--level", "0.99")["reject"] is True
    assert run("--level", "0.99")["level"] == 0.99


@pytest.mark.parametrize("method", ["lsd", "ksd"])
def test_runs_are_ranked(burnin: Burnin, method: str) -> None:
    plain = burnin("compare", "wrong", "right", "--data", "held.npy", "--method", method, *QUICK)
    assert plain.code == 0, plain.err
    lines = plain.out.splitlines()
    assert lines[0].startswith("right: ")
    assert lines[1].startswith("wrong: ")
    assert lines[2] == "right fits better than wrong"
    answer = json.loads(burnin("compare", "wrong", "right", "--data", "held.npy", "--json", *QUICK).out)
    assert [one["name"] for one in answer["ranking"]] == ["right", "wrong"]
    assert answer["differences"][0]["real"] is True


def test_help_shows_an_example(burnin: Burnin) -> None:
    for command in ("test", "compare"):
        result = burnin(command, "--help")
        assert result.code == 0
        assert f"Example: burnin {command}" in result.out


def test_bad_input_is_one_line(burnin: Burnin) -> None:
    np.save("wide.npy", np.zeros((50, 3), dtype=np.float32))
    np.save("few.npy", normal_rows(5, 0))
    held = ("--data", "held.npy")
    assert_refused(burnin("test", "nowhere", *held), "nowhere")
    assert_refused(burnin("test", "right", "--data", "none.csv"), "none.csv: no such file")
    assert_refused(burnin("test", "right", "--data", "wide.npy"), "3 columns", "trained on 2")
    assert_refused(burnin("test", "right", "--data", "few.npy"), "5 rows", "at least 20")
    assert_refused(burnin("test", "right", *held, "--method", "mmd"), "'mmd'", "lsd, ksd, lksd, fssd")
    assert_refused(burnin("test", "right", *held, "--level", "2"), "level is 2")
    assert_refused(burnin("test", "right", *held, "--iterations", "0"), "iterations is 0")
    assert_refused(burnin("compare", "right", *held), "at least 2 models")
    assert_refused(burnin("compare", "right", "right", *held), "right is given more than once")
    assert_refused(burnin("compare", "right", "wrong", *held, "--method", "fssd"), "lsd, ksd, lksd")
    assert_refused(burnin("compare", "right", "wrong", "--data", "wide.npy"), "3 columns")
    assert not Path("right", "test.png").exists()
