"""Completion scripts: what a shell offers is what the program has."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from burnin.cli import app
from burnin.completion import commands_of, completion_script
from burnin.studies import STUDIES
from tests.test_cli import Burnin, assert_refused, burnin

__all__ = ["burnin"]


def offered(script: Path, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    line = " ".join(f"'{word}'" for word in words)
    asked = (
        f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; COMPREPLY=(); "
        "_burnin; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shell") / "burnin.bash"
    path.write_text(completion_script(app, "bash"), encoding="utf-8")
    return path


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_offers_commands_options_and_names(script: Path) -> None:
    assert offered(script, "burnin", "im") == ["impute"]
    assert set(commands_of(app)) <= set(offered(script, "burnin", ""))
    assert offered(script, "burnin", "fit", "--mi") == ["--minutes"]
    assert "--target-col" in offered(script, "burnin", "fit", "x.csv", "--")
    assert offered(script, "burnin", "reproduce", "iris") == ["iris-gaps"]
    assert offered(script, "burnin", "train", "ri")[0] == "rings"
    assert offered(script, "burnin", "data", "") == ["list", "get"]
    assert offered(script, "burnin", "data", "get", "--js") == ["--json"]
    assert offered(script, "burnin", "fit", "da") == []  # files, which bash itself offers


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_option_is_in_every_script(burnin: Burnin, shell: str) -> None:
    result = burnin("completion", shell)
    assert result.code == 0
    for name, command in commands_of(app).items():
        assert name in result.out
        for option in command.options:
            named = f"-l {option[2:]} " if option.startswith("--") else f"-s {option[1:]} "
            assert (named if shell == "fish" else option) in result.out, (name, option)
    assert all(name in result.out for name in STUDIES)
    if shutil.which(shell):
        subprocess.run([shell, "-n", "-c", result.out], check=True, capture_output=True)


def test_another_shell_is_refused(burnin: Burnin) -> None:
    assert_refused(burnin("completion", "fsh"), "did you mean 'fish'?", "bash, zsh, fish")


def test_programs_can_read_every_command() -> None:
    """Each has --json, but for the one that prints a script."""
    lacking = [name for name, command in commands_of(app).items() if "--json" not in command.options]
    assert lacking == ["completion"]
