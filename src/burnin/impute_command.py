"""The command `impute`: the gaps of a table, or pixels of pictures, filled by a fitted model."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from burnin.core import InputError
from burnin.table_commands import AsJson, BoundList, parse_bound, require_free
from burnin.terminal import make_console, stages_bar

if TYPE_CHECKING:
    from burnin.imputing import Imputed

ENDINGS = (".csv", ".parquet", ".npy")


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("impute", epilog="Example: burnin impute runs/people gaps.csv -o filled.csv --draws 5")(
        fill_gaps
    )


def fill_gaps(
    run: Annotated[Path, typer.Argument(help="A folder that burnin fit made.")],
    data: Annotated[
        Path,
        typer.Argument(help="Rows with gaps: empty cells, NA, NaN, whole columns; or a folder of pictures."),
    ],
    output: Annotated[
        Path,
        typer.Option("-o", help="Where to: .csv, .parquet or .npy; of pictures a folder, or a .png for all."),
    ] = Path("filled.csv"),
    mask: Annotated[
        Path | None,
        typer.Option(help="Pictures: what is white here is filled; else what is transparent in each."),
    ] = None,
    draws: Annotated[
        int, typer.Option(help="Completed tables, one below the other, numbered in a column draw.", min=1)
    ] = 1,
    mean: Annotated[
        bool, typer.Option("--mean", help="The conditional mean, or likeliest word, instead of a draw.")
    ] = False,
    bounds: BoundList = None,
    rounds: Annotated[int, typer.Option(help="Length of the chains: rounds of 10 steps.", min=2)] = 40,
    seed: Annotated[int, typer.Option(help="Seed of the chains.", min=0)] = 0,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fill missing cells with draws from their law given the cells that are known, which stay as they are.

    Of pictures, missing pixels.
    """
    import torch

    from burnin.data import load_frame
    from burnin.data.writing import save_filled
    from burnin.evaluation.conditional import Effort
    from burnin.imputing import impute
    from burnin.interop.sources import load_table
    from burnin.rng import Streams

    console = make_console()
    torch.set_num_threads(1)
    if data.is_dir():
        from burnin.picture_imputing import fill_folder

        if draws > 1 or bounds:
            raise InputError(f"{data} is a folder of pictures; --draws and --bounds are for tables")
        fill_folder(
            run, data, output, mask, mean=mean, rounds=rounds, seed=seed, force=force, as_json=as_json
        )
        return
    if mask is not None:
        raise InputError("--mask is for a folder of pictures")
    require_free(output, force, ENDINGS)
    fitted = load_table(run)
    frame = load_frame(data)
    with stages_bar(console) as report:
        try:
            result = impute(
                fitted,
                frame,
                generator=Streams(seed)["impute"],
                draws=draws,
                mean=mean,
                bounds=dict(map(parse_bound, bounds or [])),
                effort=Effort(rounds=rounds),
                progress=lambda done, total: report("chains", done, total),
            )
            save_filled(data, frame, result.frames, output)
        except InputError as error:
            raise InputError(f"{data}: {error}") from None
    for note in [*frame.notes, *result.notes]:
        console.print(f"{data}: {note}", markup=False)
    if as_json:
        print(json.dumps(_summary(result, len(frame), output), ensure_ascii=False, allow_nan=False))
    else:
        print(*_sentences(result, len(frame)), sep="\n")
    console.print(f"filled: {output}", markup=False)


def _sentences(result: Imputed, rows: int) -> list[str]:
    if not result.cells:
        return [f"nothing to fill: none of the {rows} rows has a gap"]
    cells = ", ".join(f"{name} {count}" for name, count in result.cells.items())
    lines = [f"filled {sum(result.cells.values())} cells in {result.rows} of {rows} rows: {cells}"]
    if not math.isnan(result.acceptance):
        leaps = "" if math.isnan(result.leapt) else f", leaps taken {result.leapt:.2f}"
        lines.append(f"chains: acceptance {result.acceptance:.2f}{leaps}")
    return lines


def _summary(result: Imputed, rows: int, output: Path) -> dict[str, object]:
    numbers = {"acceptance": result.acceptance, "leapt": result.leapt}
    return {
        "rows": rows,
        "rows_filled": result.rows,
        "cells": dict(result.cells),
        "draws": len(result.frames),
        **{name: None if math.isnan(value) else value for name, value in numbers.items()},
        "notes": list(result.notes),
        "file": str(output),
    }
