"""Processes that make rows: they are replaced when they die, and save when they are interrupted."""

from __future__ import annotations

import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from burnin.core import BurninError, InputError, Report
from burnin.limits import read_json
from burnin.settings import Recipe
from burnin.studies.cluster import cluster_round
from burnin.studies.experiment import run_study
from burnin.studies.rows import Study
from burnin.studies.table import write_json
from burnin.studies.workers import RowTask, WorkerDiedError, local_round, make_rows
from burnin.training.interrupt import ctrl_c
from tests.studies.test_rows import SMALL, refuse


def die_once(out: Path, name: str, settings: Recipe, report: Report, threads: int) -> dict[str, Any]:
    """Killed at its first try, as by a system that is out of memory."""
    tried = out / f"{name}.tried"
    if not tried.exists():
        tried.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"metrics": {"tries": 2}}


def wait_for_ctrl_c(out: Path, name: str, settings: Recipe, report: Report, threads: int) -> dict[str, Any]:
    """Works until it is interrupted, and saves then."""
    with ctrl_c() as interrupted:
        (out / f"{name}.begun").touch()
        while not interrupted():
            time.sleep(0.01)
        (out / f"{name}.saved").touch()
    raise KeyboardInterrupt


def task(out: Path, name: str, make: Any) -> RowTask[Recipe]:
    return RowTask(make, out, name, Recipe(title="a row"), {"command": "none"}, False)


def silent(*_: object) -> None:
    pass


def test_a_process_that_dies_is_replaced(tmp_path: Path) -> None:
    said: list[str] = []
    rows = [task(tmp_path, "a", die_once)]
    make_rows(rows, lambda tasks: local_round(tasks, 1, silent), said.append)
    assert read_json(tmp_path / "a.json")["metrics"] == {"tries": 2}
    assert len(said) == 1
    assert "a process died (signal 9); 1 rows go on" in said[0]
    assert not multiprocessing.active_children()


def test_processes_that_die_again_and_again_end_it(tmp_path: Path) -> None:
    rounds: list[int] = []

    def dying(tasks: Sequence[RowTask[Any]]) -> None:
        rounds.append(len(tasks))
        if len(rounds) == 2:
            tasks[0].path.touch()  # one row is made on the way, and the count begins anew
        raise WorkerDiedError("signal 9")

    rows = [task(tmp_path, name, die_once) for name in "abc"]
    with pytest.raises(BurninError, match=r"died 3 times .* left: b, c\. .*lower --jobs"):
        make_rows(rows, dying, silent)
    assert rounds == [3, 3, 2, 2]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="lists processes by /proc")
def test_no_process_outlives_a_study_that_is_killed(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from tests.studies.test_workers import *; "
        f"local_round([task(Path({str(tmp_path)!r}), 'a', wait_for_ctrl_c)], 1, silent)"
    )
    study = subprocess.Popen([sys.executable, "-c", code])
    begun = tmp_path / "a.begun"
    try:
        assert within(60, begun.exists)
        served = Path(f"/proc/{study.pid}/task/{study.pid}/children").read_text().split()
    finally:
        study.kill()
        study.wait()
    assert len(served) >= 3  # the board's, the row's, and what tracks shared resources
    assert within(20, lambda: not any(Path(f"/proc/{pid}").exists() for pid in served))


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    return holds()


def test_ctrl_c_lets_rows_save_and_begins_no_other(tmp_path: Path) -> None:
    rows = [task(tmp_path, name, wait_for_ctrl_c) for name in "abc"]

    def press() -> None:
        while not (tmp_path / "a.begun").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    with pytest.raises(KeyboardInterrupt):
        local_round(rows, 1, silent)
    assert {path.name for path in tmp_path.iterdir()} == {"a.begun", "a.saved"}
    assert not multiprocessing.active_children()


SBATCH = """#!{python}
import os, re, subprocess, sys
script = sys.argv[-1]
text = open(script).read()
count = int(re.search(r"--array=0-(\\d+)", text)[1]) + 1 if "--array" in text else 0
for index in range(max(count, 1)):
    own = {{"SLURM_ARRAY_JOB_ID": str(os.getpid()), "SLURM_ARRAY_TASK_ID": str(index)}} if count else {{}}
    told = {{**os.environ, **own, "SLURM_JOB_ID": str(os.getpid() + index)}}
    log = open(script + f".{{index}}", "w")
    subprocess.Popen(["bash", "-c", text], env=told, start_new_session=True, stdout=log, stderr=log)
print("Submitted batch job", os.getpid())
"""
SRUN = """#!{python}
import os, sys
words = sys.argv[1:]
program = next(place for place, word in enumerate(words) if word.endswith(("python", "python3")))
told = {{"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0", "SLURM_NTASKS": "1"}}
more = {{"SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_NODELIST": "here"}}
os.execvpe(words[program], words[program:], {{**os.environ, **told, **more}})
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs named like Slurm's, which run jobs here at once."""
    folder = tmp_path / "slurm"
    folder.mkdir()
    scripts = {"sbatch": SBATCH, "srun": SRUN, "sacct": "#!/bin/sh\necho 'JobID|State|NodeList'\n"}
    for name, text in {**scripts, "scancel": "#!/bin/sh\n"}.items():
        (folder / name).write_text(text.format(python=sys.executable), encoding="utf-8")
        (folder / name).chmod((folder / name).stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def make_or_refuse(out: Path, name: str, settings: Recipe, report: Report, threads: int) -> dict[str, Any]:
    if name == "bad":
        raise InputError("no number for this row")
    return {"metrics": {"threads": threads}}


def test_rows_as_jobs_of_slurm(tmp_path: Path, slurm: None) -> None:
    pytest.importorskip("submitit")
    out = tmp_path / "out"
    seen: list[tuple[str, str]] = []

    def status(name: str, what: str, done: int, total: int) -> None:
        seen.append((name, what))

    rows = [task(out, name, make_or_refuse) for name in ("a", "b")]
    cluster_round(rows, 2, status, {"partition": "long", "cpus_per_task": "3"}, look_seconds=0.05)
    assert read_json(out / "a.json")["metrics"] == {"threads": 3}
    assert {("a", "done"), ("b", "done")} <= set(seen)
    with pytest.raises(BurninError, match="no number for this row"):
        cluster_round([task(out, "bad", make_or_refuse)], 1, status, {}, look_seconds=0.05)
    assert not (out / "bad.json").exists()
    scripts = [path.read_text(encoding="utf-8") for path in (out / "jobs").glob("*.sh")]
    script = next(text for text in scripts if "--partition" in text)
    for line in ("--partition=long", "--cpus-per-task=3", "--time=1440", "--array=0-1%2"):
        assert f"#SBATCH {line}\n" in script


def test_what_is_wrong_with_a_cluster_is_said(tmp_path: Path, slurm: None) -> None:
    pytest.importorskip("submitit")
    with pytest.raises(InputError, match=r"--slurm: .*parttition"):
        cluster_round([task(tmp_path, "a", make_or_refuse)], 1, silent, {"parttition": "long"})


def test_no_cluster_is_said(tmp_path: Path) -> None:
    pytest.importorskip("submitit")
    with pytest.raises(InputError, match="no Slurm here"):
        cluster_round([task(tmp_path, "a", make_or_refuse)], 1, silent, {})


def study(drawn: list[str]) -> Study:
    return Study(
        name="known",
        about="rows that were made before",
        recipe="robust-toy",
        quick_recipe=None,
        rows={"a": SMALL, "b": [*SMALL, "run.seed=1"]},
        quick_rows=(),
        metrics=("kl",),
        measure=refuse,
        draw=lambda out, settings, rows: drawn.extend(rows),
    )


def test_known_rows_are_taken_from_a_table(tmp_path: Path) -> None:
    drawn: list[str] = []
    known, said = study(drawn), list[str]()
    rows: dict[str, dict[str, Any]] = {
        name: {
            "row": name,
            "metrics": {"kl": 0.5},
            "made_by": {},
            "config": known.load("robust-toy", changes).essence(),
        }
        for name, changes in known.rows.items()
    }
    file = tmp_path / "table.json"
    write_json(file, {"rows": rows})
    out = tmp_path / "out"
    table, _ = run_study(known, out, quick=False, known=file, status=silent, say=said.append)
    assert table["rows"] == rows
    assert drawn == []
    assert said[0] == f"rows: 0 are there, 2 from {file}, 0 go on, 0 to make"
    assert "there is no figure: it lacks 2 rows" in said[1]
    rows["b"]["config"]["run"]["updates"] = 3
    write_json(file, {"rows": rows})
    with pytest.raises(InputError, match="no number for this row"):  # b is made, as its settings differ
        run_study(known, tmp_path / "other", quick=False, known=file, jobs=1, status=silent)
    assert (tmp_path / "other" / "a.json").exists()
    with pytest.raises(InputError, match="no table of this study"):
        run_study(known, tmp_path / "third", quick=False, known=out / "a.json", status=silent)
