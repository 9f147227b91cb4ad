"""The hybrid paper's synthetic experiment: five schemes on the 10-D rings, Fig. 2 and a table.

Each scheme is a row, made in a process of its own with one thread; a row that is done is not made
again, and one that was cut off goes on from its last checkpoint.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing.managers import DictProxy
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from burnin.assemble import build_data
from burnin.config import Config, load_config, nearest
from burnin.core import InputError, Outcome
from burnin.data import Rings
from burnin.evaluation import band_kl, band_masses, count_rings, ring_bands
from burnin.evaluation.assess import Assessment, plane_of
from burnin.evaluation.model import Model
from burnin.provenance import provenance
from burnin.report import figures
from burnin.rng import Streams
from burnin.runs import assess_run, train_in
from burnin.studies.table import Check, check_expectations, markdown_table, write_json

METRICS = (
    "density_kl",
    "density_kl_within",
    "density_masses",
    "sample_distance",
    "sample_distance_matched",
    "sample_distance_plain",
    "sample_distance_annealed",
    "long_run_distance",
    "data_run_distance",
    "ring_shares",
    "ring_shares_long",
    "off_manifold",
    "seconds",
)
PLAIN = "sampler_from_noise={}"
ROWS: dict[str, list[str]] = {
    "data": ['scheme.name="data"'],
    "noise": ['scheme.name="noise"', PLAIN],
    "persistent": ['scheme.name="persistent"'],
    "refresh": ['scheme.name="refresh"'],
    "hybrid": ['scheme.name="hybrid"'],
    "noise-annealed": ['scheme.name="noise"'],
    "hybrid-plain": ['scheme.name="hybrid"', PLAIN],
}
"""The five schemes of the paper and two ablations, as changes of the recipe.

The noise scheme is the paper's: plain short chains. The hybrid's chains from noise are annealed. The two
ablations exchange the chains, so that what the scheme does and what the chain does can be told apart.
"""
Status = Callable[[str, str, int, int], None]
"""Called with a row's name, what it does, how much is done and how much there is."""


def reproduce(
    out: Path,
    *,
    quick: bool,
    changes: Sequence[str] = (),
    rows: Sequence[str] = tuple(ROWS),
    jobs: int = 2,
    status: Status,
) -> tuple[dict[str, Any], list[Check]]:
    """Makes the rows that are missing, then the table and the figure.

    Arguments:
        out: where the runs and the results go.
        quick: the small variant, with its own expected values.
        changes: key=value changes of the recipe.
        rows: which of `ROWS`.
        jobs: processes at a time, one thread each.
        status: told what goes on.
    """
    recipe = "rings-quick" if quick else "rings"
    for name in rows:
        if name not in ROWS:
            raise InputError(f"there is no row {name!r}{nearest(name, list(ROWS))}")
    configs = {name: load_config(recipe, [*changes, *ROWS[name]]) for name in rows}
    out.mkdir(parents=True, exist_ok=True)
    for name, config in configs.items():
        _refuse_other_settings(out / f"{name}.json", config)
    origin = provenance()
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(jobs, mp_context=context) as pool:
        board: DictProxy[str, tuple[str, int, int]] = manager.dict()
        pending: set[Future[None]] = {
            pool.submit(_make_row, out, name, config, origin, board)
            for name, config in configs.items()
            if not (out / f"{name}.json").exists()
        }
        while pending:
            done, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
            for name, (what, count, total) in dict(board).items():
                status(name, what, count, total)
            for future in done:
                future.result()
    return _collect(out, configs)


def _refuse_other_settings(path: Path, config: Config) -> None:
    if path.exists() and json.loads(path.read_text(encoding="utf-8"))["config"] != _essence(config):
        raise InputError(f"{path} was made with other settings; choose another --out")


def _essence(config: Config) -> dict[str, Any]:
    """What decides a row's numbers: not its words, nor what is expected of it."""
    return config.model_dump(mode="json", exclude={"title", "about", "cost", "expected"})


def _make_row(
    out: Path,
    name: str,
    config: Config,
    origin: dict[str, Any],
    board: DictProxy[str, tuple[str, int, int]],
) -> None:
    torch.set_num_threads(max(1, config.run.threads))
    started = time.perf_counter()
    folder, parent = out / name, os.getppid()

    def report(what: str, done: int, total: int) -> None:
        if os.getppid() != parent:
            raise KeyboardInterrupt  # the study was killed: do not go on for nobody
        board[name] = (what, done, total)

    outcome = train_in(
        folder,
        config,
        resume=(folder / "config.toml").exists(),
        on_update=lambda step, _: report("training", step, config.run.updates) if step % 10 == 0 else None,
    )
    if outcome is not Outcome.OK:
        raise KeyboardInterrupt
    trained = time.perf_counter() - started
    model, result = assess_run(folder, report)
    row = measure(model, result)
    tensors = {"samples": result.samples.position.contiguous()}
    if result.log_model is not None:
        tensors["log_density"] = result.log_model.float()
    safetensors.torch.save_file(tensors, out / f"{name}.safetensors")
    row |= {"seconds_training": trained, "seconds": time.perf_counter() - started}
    write_json(
        out / f"{name}.json",
        {
            "scheme": name,
            "seed": config.run.seed,
            "metrics": row,
            "verdict": list(result.verdict.lines),
            "made_by": origin,
            "config": _essence(config),
        },
    )


def measure(model: Model, result: Assessment) -> dict[str, Any]:
    """The table's numbers for one scheme; docs/rings.md says what each means."""
    rings = model.data
    if not isinstance(rings, Rings) or result.grid is None:
        raise InputError("the rings study needs the data set 'rings10'")
    assert result.log_truth is not None
    assert result.log_model is not None
    bands = ring_bands(result.grid, rings.radii)
    counts = count_rings(result.samples.position, rings.radii)
    return {
        "density_kl": result.density_kl,
        "density_kl_within": band_kl(result.log_truth, result.log_model, bands),
        "density_masses": band_masses(result.log_model, bands),
        "sample_distance": result.sample_distance(model),
        "sample_distance_matched": result.matched,
        "sample_distance_plain": result.plain,
        "sample_distance_annealed": result.annealed,
        "long_run_distance": result.long_run,
        "data_run_distance": result.data_run,
        "ring_shares": counts.shares,
        "ring_shares_long": count_rings(result.long_sampled.position, rings.radii).shares,
        "off_manifold": counts.off_manifold,
    }


def _collect(out: Path, configs: dict[str, Config]) -> tuple[dict[str, Any], list[Check]]:
    rows = {name: json.loads((out / f"{name}.json").read_text(encoding="utf-8")) for name in configs}
    metrics = {name: row["metrics"] for name, row in rows.items()}
    first = next(iter(configs.values()))
    checks = check_expectations(first.expected, metrics)
    table = {
        "study": "rings",
        "rows": rows,
        "checks": [{"text": c.text, "holds": c.holds, "claim": c.claim} for c in checks],
    }
    write_json(out / "table.json", table)
    (out / "table.md").write_text(markdown_table(metrics, METRICS), encoding="utf-8")
    _draw(out, first, list(configs))
    return table, checks


def _draw(out: Path, config: Config, schemes: list[str]) -> None:
    """Fig. 2: samples above, densities below, the data and one column for each scheme."""
    rings = build_data(config)
    data = rings.sample(config.study.samples, Streams(config.run.seed)["figure"])
    grid = plane_of(rings, data, config.study.grid_points)
    assert grid is not None
    assert isinstance(rings, Rings)
    columns = {}
    for name in schemes:
        tensors = safetensors.torch.load_file(out / f"{name}.safetensors")
        columns[name] = (tensors["samples"], tensors["log_density"].double().exp())
    figure = figures.schemes_figure(grid.log_truth(rings).exp(), data, columns, grid)
    figures.save(figure, out / "figure.png")
