"""The commands `reproduce`, `bench-density`, `recipes` and `bench`: experiments and how fast chains run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from burnin.config import MEASURED, load_head, recipe_names
from burnin.core import InputError
from burnin.terminal import Set, make_console, studies_bar


def register(app: typer.Typer) -> None:
    """Adds the commands to the program."""
    app.command(epilog="Example: burnin reproduce rings --quick --json rings.json")(reproduce)
    app.command("bench-density", epilog="Example: burnin bench-density --quick")(bench_density)
    app.command(epilog="Example: burnin recipes")(recipes)
    app.command(epilog="Example: burnin bench --peers --json bench.json")(bench)


def reproduce(
    name: Annotated[str, typer.Argument(help="The experiment; `rings` is the hybrid paper's Fig. 2.")],
    quick: Annotated[bool, typer.Option("--quick", help="A small variant: minutes, not hours.")] = False,
    out: Annotated[Path | None, typer.Option(help="Where rows, table and figure go.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the table here.")] = None,
    changes: Set = [],  # noqa: B006
    rows: Annotated[str, typer.Option(help="Which rows, separated by commas; all by default.")] = "",
    jobs: Annotated[int, typer.Option(help="Processes at a time.")] = 2,
    dataset: Annotated[str, typer.Option(help="Of `images`: fashion-mnist, cifar10 or flowers.")] = "",
    size: Annotated[str, typer.Option(help="Of `images` and `ica`: small, or the paper's.")] = "",
    known: Annotated[
        Path | None,
        typer.Option(help="A table.json of an earlier run; rows that it has with these settings are taken."),
    ] = None,
) -> None:
    """Reproduce a paper's experiment: rows that resume, a table, a figure, and whether it is as expected."""
    from burnin.checked import nearest
    from burnin.studies import STUDIES, run_study
    from burnin.studies.table import write_json

    console = make_console()
    if name == "images":
        name = f"images-{dataset or 'fashion-mnist'}-{size or 'small'}"
    elif name == "ica" and size in ("small", "paper") and not dataset:
        name = "ica-paper" if size == "paper" else "ica"
    elif dataset or size:
        raise InputError(
            "--dataset is of the experiment `images`, --size (small or paper) of `images` and `ica`"
        )
    if name not in STUDIES:
        names = ", ".join(STUDIES)
        raise InputError(f"there is no experiment {name!r}{nearest(name, list(STUDIES))}; known: {names}")
    chosen = [part.strip() for part in rows.split(",") if part.strip()]
    folder = out or Path("runs") / (f"reproduce-{name}-quick" if quick else f"reproduce-{name}")
    with studies_bar(console) as status:
        table, checks = run_study(
            STUDIES[name],
            folder,
            quick=quick,
            changes=changes,
            rows=chosen,
            jobs=jobs,
            known=known,
            status=status,
            say=console.print,
        )
    if json_file is not None:
        write_json(json_file, table)
    print((folder / "table.md").read_text(encoding="utf-8"))
    for check in checks:
        mark = "as expected" if check.holds else "NOT so (the paper's claim)" if check.claim else "MISSED"
        print(f"{check.text}: {mark}")
    figure = f", figure: {folder / 'figure.png'}" if STUDIES[name].draw is not None else ""
    console.print(f"table: {folder / 'table.md'}{figure}")
    if any(not check.holds and not check.claim for check in checks):
        raise typer.Exit(1)


def bench_density(
    quick: Annotated[bool, typer.Option("--quick", help="Iris only: seconds, not hours.")] = False,
    out: Annotated[Path | None, typer.Option(help="Where rows and table go.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the table here.")] = None,
    rows: Annotated[str, typer.Option(help="Which rows, separated by commas; all by default.")] = "",
    jobs: Annotated[int, typer.Option(help="Processes at a time.")] = 2,
) -> None:
    """Compare EnergyDensity with other densities and outlier detectors: `burnin reproduce bench-density`."""
    reproduce("bench-density", quick=quick, out=out, json_file=json_file, changes=[], rows=rows, jobs=jobs)


def recipes(as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """List the recipes: what each does, what it costs, what it is expected to show."""
    listed = {name: load_head(name) for name in [*recipe_names(), *recipe_names(MEASURED)]}
    if as_json:
        content = {
            name: {
                "title": config.title,
                "about": config.about,
                "cost": config.cost,
                "expected": [e.model_dump(exclude_none=True) for e in config.expected],
            }
            for name, config in listed.items()
        }
        print(json.dumps(content, ensure_ascii=False))
        return
    for name, config in listed.items():
        print(f"{name}: {config.title}\n    {config.about}\n    cost: {config.cost}")
        for expected in config.expected:
            print(f"    expects {expected.describe()}")


def bench(
    peers: Annotated[bool, typer.Option("--peers", help="Also measure torchebm and JAX.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write everything here.")] = None,
    sizes: Annotated[str, typer.Option(help="Which cases, separated by commas; all by default.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="Short turns: rough numbers soon.")] = False,
    repeats: Annotated[int | None, typer.Option(help="Turns of each contestant.", min=1)] = None,
    threads: Annotated[
        int | None, typer.Option(help="Cores of the second table; all by default, 1 leaves it out.", min=1)
    ] = None,
    docs: Annotated[
        bool, typer.Option("--docs", help="Write docs/benchmarks.md and results/bench/table.json.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
    images: Annotated[
        bool, typer.Option("--images", help="Only ConvNets, against their bare convolutions and in memory.")
    ] = False,
    beta: Annotated[bool, typer.Option("--beta", help="Only what β-weights cost an update.")] = False,
    processes: Annotated[
        int, typer.Option(help="Only training shared by so many processes, against one.", min=1)
    ] = 1,
) -> None:
    """Measure how fast chains run, here and in other libraries, on one core and on all."""
    from burnin.bench import (
        choose_cases,
        measure,
        measure_beta,
        measure_images,
        settings_for,
        write_beta,
        write_docs,
        write_images,
        write_summary,
    )
    from burnin.studies.table import write_json

    console = make_console()
    cases = choose_cases([part.strip() for part in sizes.split(",") if part.strip()])
    settings = settings_for(cases, peers=peers, quick=quick, repeats=repeats, threads=threads)
    if json_file is not None:
        if json_file.exists() and not force:
            raise InputError(f"{json_file} exists; choose another --json, or add --force to write over it")
        if not json_file.parent.is_dir():
            raise InputError(f"there is no folder {json_file.parent} for {json_file.name}; make it first")
    if processes > 1:
        _bench_processes(processes, settings.repeats, settings.seconds, json_file)
        return
    if images or beta:
        option = "images" if images else "beta"
        if docs or peers or sizes or images == beta:
            others = "--beta" if images else "--images"
            raise InputError(
                f"--{option} measures two cases of its own; leave out --docs, --peers, --sizes and {others}"
            )
        own = measure_images if images else measure_beta
        with studies_bar(console) as status:
            of_its_own = own(
                settings.repeats,
                settings.seconds,
                lambda what, done, total: status(option, what, done, total),
            )
        if json_file is not None:
            write_json(json_file, of_its_own)
        print((write_images if images else write_beta)(of_its_own))
        return
    if docs and not Path("docs").is_dir():
        raise InputError("there is no folder docs here; --docs is for a working copy of burnin")
    with studies_bar(console) as status:
        result = measure(settings, status)
    if json_file is not None:
        write_json(json_file, result)
    print(write_summary(result))
    if docs:
        page, table = write_docs(Path(), result)
        console.print(f"page: {page}, numbers: {table}")


def _bench_processes(processes: int, rounds: int, seconds: float, json_file: Path | None) -> None:
    from burnin.bench.together import measure_together, write_together
    from burnin.launching import take_part
    from burnin.studies.table import write_json

    ranks = take_part(processes, 1)
    with studies_bar(make_console(quiet=ranks.rank > 0)) as status:
        result = measure_together(
            ranks, rounds, seconds, lambda what, done, total: status("processes", what, done, total)
        )
    if ranks.rank == 0:
        if json_file is not None:
            write_json(json_file, result)
        print(write_together(result))
