"""Rows as jobs of a Slurm cluster, by submitit (`pip install 'burnin[cluster]'`).

Every machine of the cluster must see the experiment's folder. A job that runs out of its time is put back in
the queue, and goes on from its row's last checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from burnin.core import BurninError, InputError
from burnin.limits import brief
from burnin.studies.workers import RowTask, Status, WorkerDiedError

DEFAULTS = {"job_name": "burnin", "time": 24 * 60, "cpus_per_task": 1}
"""Of jobs; `time` in minutes."""
LOOK_SECONDS = 2.0
"""Between two looks at the jobs."""


@dataclass(frozen=True)
class Job:
    """What a job does: a row, with as many threads for native chains as it was given cores."""

    task: RowTask[Any]
    threads: int

    def __call__(self) -> str | None:
        """Makes the row; what the user can put right is returned in words."""
        try:
            self.task.run(lambda what, done, total: None, self.threads)
        except BurninError as error:
            return str(error)
        return None

    def checkpoint(self) -> Any:
        """Called by submitit shortly before the job's time is over: the same again, which goes on."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def cluster_round(
    tasks: Sequence[RowTask[Any]],
    jobs: int,
    status: Status,
    options: Mapping[str, str],
    kind: str = "slurm",
    look_seconds: float = LOOK_SECONDS,
) -> None:
    """Makes rows as jobs, `jobs` of them at a time. Ctrl-C cancels those that are not done.

    Arguments:
        tasks: the rows.
        jobs: how many at a time.
        status: told what goes on.
        options: of sbatch, such as partition, time, mem or cpus_per_task.
        kind: of cluster, as submitit calls it; "local" makes jobs of this machine's processes.
        look_seconds: between two looks.
    """
    try:
        import submitit
        from submitit.core.utils import UncompletedJobError
    except ImportError as error:
        raise InputError("--on slurm needs submitit: pip install 'burnin[cluster]'") from error
    executor = _executor(submitit, tasks, jobs, options, kind)
    threads = int(options.get("cpus_per_task", 1))
    queue = sorted(tasks, key=lambda task: not task.first)
    running = {}
    try:
        with executor.batch():
            submitted = [executor.submit(Job(task, threads)) for task in queue]
        running = dict(zip([task.name for task in queue], submitted, strict=True))
        while running:
            for name, job in list(running.items()):
                if not job.done():
                    status(name, f"job {job.job_id}, {job.state.lower()}", 0, 1)
                    continue
                try:
                    said = job.result()
                except UncompletedJobError as error:
                    raise WorkerDiedError(f"job {job.job_id} of {name}: {brief(error)}") from error
                if said is not None:
                    raise BurninError(said)
                status(name, "done", 1, 1)
                del running[name]
            time.sleep(look_seconds if running else 0)
    finally:
        for job in running.values():  # rows that are cut off go on from their checkpoints another time
            job.cancel()


def _executor(
    submitit: Any, tasks: Sequence[RowTask[Any]], jobs: int, options: Mapping[str, str], kind: str
) -> Any:
    try:
        executor = submitit.AutoExecutor(folder=tasks[0].out / "jobs", cluster=kind)
    except RuntimeError as error:
        raise InputError(f"there is no Slurm here ({brief(error)}); leave out --on to stay here") from error
    if kind != "slurm":
        return executor
    told = {**DEFAULTS, "array_parallelism": jobs, **options}
    try:
        executor.update_parameters(**{f"slurm_{key}": _number(value) for key, value in told.items()})
    except (NameError, TypeError, ValueError) as error:
        raise InputError(f"--slurm: {brief(error)}; it takes options of sbatch: partition=gpu") from error
    return executor


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isdecimal() else value
