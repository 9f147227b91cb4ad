"""The commands `data list` and `data get`: which named sets of pictures are there, and their download."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from burnin.terminal import make_console, stages_bar


def register(app: typer.Typer) -> None:
    """Adds the commands to the program."""
    group = typer.Typer(
        help="Say which named sets of pictures are there, and download them.",
        epilog="Example: burnin data list, burnin data get mnist cifar10",
        no_args_is_help=True,
    )
    group.command("list", epilog="Example: burnin data list")(list_sets)
    group.command("get", epilog="Example: burnin data get mnist cifar10")(get_sets)
    app.add_typer(group, name="data")


def list_sets(
    as_json: Annotated[bool, typer.Option("--json", help="Print the sets as JSON.")] = False,
) -> None:
    """Say which named sets of pictures there are, and where their files are."""
    from burnin.data.named_pictures import FOLDER_VARIABLE, data_folder
    from burnin.data.picture_sets import SETS

    found = [_described(name) for name in SETS]
    if as_json:
        print(json.dumps({"folder": str(data_folder()), "sets": found}, ensure_ascii=False))
        return
    for one in found:
        state = f"in {one['place']}" if one["there"] else f"not there, {one['megabytes']} MB to download"
        if one["there"] and not one["labels"]:
            state += ", without labels"
        print(f"{one['name']:<14} {one['about']}: {state}")
    make_console().print(f"looked in {data_folder()} ({FOLDER_VARIABLE} changes it)", markup=False)


def get_sets(
    names: Annotated[list[str], typer.Argument(help="Sets by name, as `burnin data list` shows them.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print where they are as JSON.")] = False,
) -> None:
    """Download named sets of pictures, with their labels, where they are not there yet."""
    from burnin.data.named_pictures import picture_set, require_files

    for name in names:
        picture_set(name)  # a misspelt name is refused before anything is downloaded
    with stages_bar(make_console()) as report:
        for name in names:
            require_files(name, labelled=True, report=report)
    found = [_described(name) for name in names]
    if as_json:
        print(json.dumps({"sets": found}, ensure_ascii=False))
        return
    for one in found:
        print(f"{one['name']}: in {one['place']}")


def _described(name: str) -> dict[str, Any]:
    """What is known of a set's files."""
    from burnin.data.named_pictures import find_files, picture_set

    known, found = picture_set(name), find_files(name)
    return {
        "name": name,
        "about": known.about,
        "there": found is not None,
        "labels": find_files(name, labelled=True) is not None,
        "place": None if found is None else str(found[1]),
        "megabytes": round(known.size / 1e6),
        "files": {file.name: file.address for file in known.layouts[0].downloads},
    }
