"""The commands `test` and `compare`: runs against data, by Stein discrepancies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from burnin.config import read_run_config
from burnin.core import InputError
from burnin.terminal import make_console, stages_bar

if TYPE_CHECKING:
    from burnin.data import Table
    from burnin.discrepancies import CriticSettings
    from burnin.evaluation.model import Model

BATCH_SIZE, PATIENCE = 1000, 3
Name = TypeVar("Name", bound=str)
Data = Annotated[
    Path,
    typer.Option(
        help="Independent rows (.csv, .npy, .npz, .parquet) that no run was trained on.", show_default=False
    ),
]
Level = Annotated[float, typer.Option(help="The chance of seeing a difference where there is none.")]
Iterations = Annotated[
    int, typer.Option(help="Updates of a critic of lsd at most; it stops when it no longer improves.")
]
Seed = Annotated[int, typer.Option(help="Seed of the shuffle and of all that is drawn.")]


def register(app: typer.Typer) -> None:
    """Adds the commands to the program."""
    app.command("test", epilog="Example: burnin test runs/rings --data held-out.csv")(judge_fit)
    app.command(
        "compare", epilog="Example: burnin compare runs/noise runs/hybrid --data held-out.csv --method ksd"
    )(compare_runs)


def judge_fit(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    data: Data,
    method: Annotated[str, typer.Option(help="lsd, ksd, lksd or fssd; see docs/stein.md.")] = "lsd",
    level: Level = 0.05,
    iterations: Iterations = 1000,
    seed: Seed = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Test whether data could have come from a trained model, without sampling it; draws test.png."""
    from burnin import discrepancies
    from burnin.report.figures import save
    from burnin.report.goodness import goodness_figure
    from burnin.rng import Streams
    from burnin.runs import table_for

    console = make_console()
    chosen = _method(method, discrepancies.METHODS)
    rows = table_for(run, data)
    model = _load(run, rows)
    with stages_bar(console) as report:
        result = discrepancies.test(
            model,
            rows.values,
            chosen,
            level,
            generator=Streams(seed)["test"],
            critic=_critic(iterations),
            report=report,
        )
    print(json.dumps(result.as_dict(), allow_nan=False) if as_json else result.sentence)
    save(goodness_figure(result), run / "test.png")
    console.print(f"picture: {run / 'test.png'}")


def compare_runs(
    runs: Annotated[list[Path], typer.Argument(help="Folders of two or more runs.")],
    data: Data,
    method: Annotated[str, typer.Option(help="lsd, ksd or lksd; see docs/stein.md.")] = "lsd",
    level: Level = 0.05,
    iterations: Iterations = 1000,
    seed: Seed = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the ranking as JSON.")] = False,
) -> None:
    """Rank trained models by their Stein discrepancy from data, and say which differences are real."""
    from burnin import discrepancies
    from burnin.rng import Streams
    from burnin.runs import table_for

    console = make_console()
    chosen = _method(method, discrepancies.RANKING_METHODS)
    names = [str(run) for run in runs]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"{', '.join(repeated)} is given more than once; a run is compared with others")
    rows = table_for(runs[0], data)
    models = {name: _load(run, rows) for name, run in zip(names, runs, strict=True)}
    with stages_bar(console) as report:
        result = discrepancies.compare(
            models,
            rows.values,
            chosen,
            level,
            generator=Streams(seed)["compare"],
            critic=_critic(iterations),
            report=report,
        )
    if as_json:
        print(json.dumps(result.as_dict(), ensure_ascii=False, allow_nan=False))
    else:
        print(*result.sentences, sep="\n")


def _method(name: str, known: tuple[Name, ...]) -> Name:
    """The method of this name."""
    for one in known:
        if one == name:
            return one
    raise InputError(f"there is no method {name!r} here; known: {', '.join(known)}")


def _critic(iterations: int) -> CriticSettings:
    """The paper's critic, in time that does not grow with the data: small batches, and an early end."""
    from burnin.discrepancies import CriticSettings

    return CriticSettings(iterations=iterations, batch_size=BATCH_SIZE, patience=PATIENCE)


def _load(run: Path, rows: Table) -> Model:
    """The model of a run's folder, if these rows fit it; torch runs on as many threads as the run says."""
    import torch

    from burnin.assemble import load_model

    config = read_run_config(run)
    if config.run.threads > 0:
        torch.set_num_threads(config.run.threads)
    model = load_model(run)
    if rows.dim != model.data.dim:
        raise InputError(f"the data has {rows.dim} columns; {run} was trained on {model.data.dim}")
    return model
