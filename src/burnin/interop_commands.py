"""The command `export`: a trained model as model.safetensors and config.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from burnin.terminal import make_console


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("export", epilog="Example: burnin export runs/people exported/people")(export)


def export(
    run: Annotated[Path, typer.Argument(help="A run's folder, of burnin train or burnin fit.")],
    folder: Annotated[Path, typer.Argument(help="Where to: a folder that is new or empty.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Write a trained model as model.safetensors and config.json, without its data, to load elsewhere."""
    from burnin.interop.pretrained import CONFIG_FILE, WEIGHTS_FILE, save_pretrained

    written = save_pretrained(run, folder)
    if as_json:
        print(json.dumps({"folder": str(written), "files": [WEIGHTS_FILE, CONFIG_FILE]}))
    make_console().print(
        f"exported: {written} ({WEIGHTS_FILE}, {CONFIG_FILE}). In Python: "
        f"burnin.interop.from_pretrained({str(written)!r})",
        markup=False,
    )
