"""The processes: what they answer, what becomes of one that fails, who is missing, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from burnin.bench import CONTESTANTS, Case, Contestant, Settings, choose_cases, measure
from burnin.bench.contestants import BASELINE, FLOOR
from burnin.bench.measure import settings_for
from burnin.bench.process import ContestantError, Process, environment, held_to
from burnin.core import InputError

TINY = Case("tiny", "langevin", "small", 3, (2,), 4, 1)
HERE = {one.name: one for one in CONTESTANTS}
BROKEN = """
import os
from burnin.bench.contestants import Work
def later(case):
    turns = []
    def run(steps):
        turns.append(steps)
        if len(turns) == 6:
            raise RuntimeError("enough\\nof this")
    return Work(run)
def dies(case):
    print("noise on stdout", flush=True)
    os._exit(3)
def prints(case):
    print("noise on stdout")
    return Work(lambda steps: print("more noise"))
"""


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of contestants that fail, which the children can import."""
    (tmp_path / "broken.py").write_text(BROKEN, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "broken"


def test_a_process_answers_and_is_held_to_one_thread() -> None:
    process = Process(HERE[BASELINE], TINY, threads=1)
    try:
        ready = process.ask("prepare")
        assert ready["threads"] == 1
        assert process.ask("run", steps=5)["seconds"] > 0
        end = process.ask("end")
        if sys.platform == "linux":
            assert 10 < ready["memory"] <= end["memory"] < 5000
        with pytest.raises(ContestantError, match="exit code 0"):
            process.ask("run", steps=1)
    finally:
        process.stop()


def test_turns_are_measured_and_failures_reported(broken: str) -> None:
    contestants = [
        *(Contestant(name, f"{broken}:{name}") for name in ("prints", "later", "dies")),
        Contestant("absent", f"{broken}:prints", requires=("torch", "no_such_library")),
        Contestant("other kind", f"{broken}:dies", kinds=("hmc",)),
        replace(HERE[FLOOR], name="peer", peer=True),
    ]
    seen: list[tuple[str, int, int]] = []
    settings = Settings((TINY,), contestants, repeats=3, seconds=0.01, threads=1)
    result = measure(settings, lambda table, what, done, total: seen.append((table, done, total)))
    row = result["tables"]["one core"]["rows"]["tiny"]
    assert list(row) == ["prints", "later", "dies", "absent"]
    assert row["later"] == {"error": "RuntimeError: enough"}
    assert row["dies"] == {"error": "ended with exit code 3: noise on stdout"}
    assert row["absent"] == {"error": "no_such_library not installed"}
    assert result["missing"] == {
        "no_such_library": "no_such_library is not installed; to compare with it: "
        "pip install -c constraints.txt 'burnin[peers]'"
    }
    cell = row["prints"]
    assert len(cell["turns"]) == 3
    assert cell["steps"] % 10 == 0
    assert 0 < cell["least"] <= cell["quartiles"][0] <= cell["median"] <= cell["quartiles"][1]
    assert cell["first_call"] > 0
    assert seen[-1] == ("one core", 16, 16)
    assert result["made_by"]["processor"]


def test_settings() -> None:
    assert list(Settings(threads=1).tables()) == ["one core"]
    assert Settings(threads=2).tables() == {"one core": 1, "2 cores": 2}
    quick = settings_for(choose_cases([]), peers=True, quick=True, repeats=None, threads=None)
    assert (quick.repeats, quick.peers) == (3, True)
    with pytest.raises(InputError, match="cores to use"):
        settings_for(choose_cases([]), peers=False, quick=True, repeats=None, threads=10_000)
    with pytest.raises(InputError, match="did you mean 'mlp-100x2'"):
        choose_cases(["mlp-100"])


def test_threads_are_set_for_the_child_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    before = dict(os.environ), torch.get_num_threads()
    assert "OMP_NUM_THREADS" not in environment(None)
    assert environment(1)["OMP_NUM_THREADS"] == "1"
    assert "multi_thread_eigen=false" in environment(1)["XLA_FLAGS"]
    if sys.platform == "linux":
        assert len(held_to(1)) == 1
        assert set(held_to(1)) <= set(held_to(None)) == os.sched_getaffinity(0)
    assert (dict(os.environ), torch.get_num_threads()) == before


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ctrl_c_stops_the_children(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "burnin.cli", "bench", "--sizes", "mlp-100x2", "--json", "out.json"]
    parent = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    listed = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    children: list[str] = []
    while not children:
        time.sleep(0.05)
        assert parent.poll() is None
        children = listed.read_text(encoding="ascii").split()
    parent.send_signal(signal.SIGINT)
    _, said = parent.communicate(timeout=30)
    assert parent.returncode == 130, said
    assert "Traceback" not in said
    # A child that was being started when Ctrl-C came ends by itself, once it finds its parent gone.
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < deadline, "a child is still there"
        time.sleep(0.05)
    assert not (tmp_path / "out.json").exists()
