"""The command `sweep`: a recipe trained with every combination of some values."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from burnin.core import InputError
from burnin.terminal import Set, make_console, studies_bar


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        epilog='Example: burnin sweep rings-quick --grid "scheme=data,noise,hybrid;seed=0:5" --jobs 2'
    )(sweep)


def sweep(
    recipe: Annotated[str, typer.Argument(help="A recipe's name (see `burnin recipes`) or a .toml file.")],
    grid: Annotated[
        str,
        typer.Option(
            help='Keys and their values, "scheme.name=data,noise;scheme.lam=10,25;run.seed=0:5": every '
            "combination is a row, and means are over seeds. 0:5 are the numbers 0 to 4. A key's last part "
            "will do, where only one has it; scheme is scheme.name."
        ),
    ],
    changes: Set = [],  # noqa: B006
    out: Annotated[
        Path | None, typer.Option(help="Where rows and table go; runs/sweep-RECIPE by default.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the table here.")] = None,
    jobs: Annotated[int, typer.Option(help="Rows at a time.", min=1)] = 2,
    known: Annotated[
        Path | None,
        typer.Option(
            help="A table.json of an earlier sweep; rows that it has with these settings are taken."
        ),
    ] = None,
    on: Annotated[str, typer.Option(help="Where rows are made: here, or slurm.")] = "here",
    slurm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OPTION=VALUE", help="An option of sbatch, such as partition=gpu; may be repeated."
        ),
    ] = None,
) -> None:
    """Train and judge a recipe with every combination of some values: rows that resume, a table, a report."""
    from burnin.studies.cluster import cluster_round
    from burnin.studies.sweep import plan, run_sweep
    from burnin.studies.table import write_json
    from burnin.studies.workers import local_round

    if on not in ("here", "slurm"):
        raise InputError(f"--on {on} is unknown; it is here (this machine) or slurm")
    if slurm and on != "slurm":
        raise InputError("--slurm is for --on slurm")
    options = dict(_option(one) for one in slurm or [])
    console = make_console()
    planned = plan(recipe, grid, changes)
    folder = out or Path("runs") / f"sweep-{Path(recipe).stem}"
    with studies_bar(console) as status:
        make = (
            partial(cluster_round, jobs=jobs, status=status, options=options)
            if on == "slurm"
            else partial(local_round, jobs=jobs, status=status)
        )
        table = run_sweep(planned, folder, make, say=console.print, known=known)
    if json_file is not None:
        write_json(json_file, table)
    print((folder / "table.md").read_text(encoding="utf-8"))
    console.print(f"table: {folder / 'table.md'}, report: {folder / 'report.html'}")


def _option(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip() or not value.strip():
        raise InputError(f"--slurm {text!r} is not of the form option=value, such as partition=gpu")
    return key.strip().replace("-", "_"), value.strip()
