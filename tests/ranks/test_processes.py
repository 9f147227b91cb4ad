"""Two processes of this machine: what burnin starts, what it says when one is killed, and how it goes on."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from burnin.assemble import build_trainer
from burnin.config import dump_config, load_config
from burnin.core import InputError, Outcome
from burnin.launching import Worker, _verdict, start_processes
from burnin.ranks import ALONE
from burnin.runs import train_in
from burnin.training import load_checkpoint, read_metrics
from tests.ranks.worker import learn, learn_together
from tests.training.test_killed import PRELOADED

pytest.importorskip("lightning_fabric")

RECIPE = [
    *("run.batch_size=16", "run.updates=100000", "run.checkpoint_every=10", "run.tensorboard=false"),
    *("model.width=16", "model.depth=2", "model.average=0", "optimizer.warmup=0", "scheme.beta_on=both"),
    *("scheme.name=refresh", "scheme.bank_size=64", "scheme.exchange=true", "scheme.beta=0.3"),
    *("sampler.num_steps=5", "run.compile=never"),
]


def kill_the_second(out: Path) -> None:
    """Waits for the checkpoint of update 20, and kills the process whose rank is 1."""
    deadline = time.monotonic() + 240
    while not (out / "checkpoint-000000020.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text(encoding="utf-8").split()
    for pid in children:
        if b"RANK=1\0" in Path(f"/proc/{pid}/environ").read_bytes():
            os.kill(int(pid), signal.SIGKILL)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the worker through /proc")
def test_a_killed_worker_ends_the_run_in_a_line_and_one_process_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    changes = [part for change in RECIPE for part in ("--set", change)]
    options = ["train", "rings", *changes, "--out", str(out), "--devices", "2"]
    monkeypatch.setattr(sys, "argv", ["burnin", *options])
    with ThreadPoolExecutor(1) as pool:
        killing = pool.submit(kill_the_second, out)
        assert start_processes(2, 1) == 4
        killing.result()
    said = capfd.readouterr().err
    lines = [line for line in said.splitlines() if line.startswith("burnin")]
    assert len(lines) == 1
    assert "another process of this run is gone" in lines[0]
    assert "Traceback" not in said

    # One process goes on from the last checkpoint, to where one process alone comes.
    reached = load_checkpoint(out).state["step"]
    config = load_config("rings", [*RECIPE, f"run.updates={reached + 5}"])
    (out / "config.toml").write_text(dump_config(config), encoding="utf-8")
    assert train_in(out, None, resume=True) is Outcome.OK
    alone = build_trainer(config)
    losses: list[float] = []
    alone.train(reached + 5, on_update=lambda step, numbers: losses.append(numbers["loss"]))
    shared = [row for row in read_metrics(out / "metrics.jsonl") if "loss" in row]
    assert [row["step"] for row in shared] == list(range(1, reached + 6))
    assert [row["loss"] for row in shared[:20]] == pytest.approx(losses[:20], rel=1e-3, abs=1e-3)


def test_weights_that_are_shared_out_learn_the_same(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    answer = tmp_path / "answer.json"
    processes = [context.Process(target=learn_together, args=(rank, port, answer)) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(240)
    assert [process.exitcode for process in processes] == [0, 0]
    found = json.loads(answer.read_text(encoding="utf-8"))
    assert found[2] == found[3], "a checkpoint holds all parts"
    assert found == pytest.approx(learn(ALONE), rel=1e-3, abs=1e-5)


def ended(rank: int, program: str) -> Worker:
    """A process that has come to its end."""
    process = subprocess.Popen([sys.executable, "-c", program])
    process.wait()
    return Worker(rank, process, None)


def test_a_process_that_dies_when_all_is_done_takes_nothing_back(capfd: pytest.CaptureFixture[str]) -> None:
    fine = ended(0, "pass")
    late = ended(1, "import os; os.kill(os.getpid(), 9)")
    assert _verdict([fine, late], late) == 0
    assert "process 1 was ended by signal 9 after the work was done" in capfd.readouterr().err
    failed = ended(1, "raise SystemExit(2)")
    assert _verdict([fine, failed], failed) == 2
    lost = ended(0, "raise SystemExit(4)")
    assert _verdict([lost, late], late) == 4


def test_what_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert start_processes(1, 1) is None
    with pytest.raises(InputError, match="MASTER_ADDR is not set"):
        start_processes(2, 2)
    with pytest.raises(InputError, match="at least 1"):
        start_processes(0, 1)
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "1")
    assert start_processes(1, 1) is None
    with pytest.raises(InputError, match="but 4 processes were started here"):
        start_processes(2, 1)
