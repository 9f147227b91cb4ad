"""Recipes and run configurations: TOML in, checked settings out.

A recipe is a short difference from the defaults of `settings`, or from another recipe that its `base` names.
The complete configuration is written to a run's config.toml.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import tomli_w

from burnin.checked import Section, nearest, validated
from burnin.core import InputError
from burnin.limits import brief, naming, parse_toml, read_toml
from burnin.settings import Config, Recipe

DEEPEST = 20
"""Bases below bases."""
MEASURED = "measured"
"""The folder of the recipes that train no model: what they say is measured by `burnin reproduce`."""


def recipe_names(folder: str = "") -> list[str]:
    """The names of the recipes that come with burnin, of those that train a model or of another folder's.

    Example:
        >>> "rings" in recipe_names(), "measured/rbm-power" in recipe_names(MEASURED)
        (True, True)
    """
    place = resources.files("burnin.recipes").joinpath(folder)
    names = sorted(p.name.removesuffix(".toml") for p in place.iterdir() if p.name.endswith(".toml"))
    return [f"{folder}/{name}" if folder else name for name in names]


def load_recipe(kind: type[Section], recipe: str, changes: Sequence[str] = ()) -> Section:
    """A recipe of any kind by name or path, with ``key=value`` changes.

    Arguments:
        kind: what it is read as.
        recipe: its name, or the path of a .toml file.
        changes: such as ``run.seed=1``.
    """
    with naming(recipe):
        table = _read(recipe)
        _require_near(table.get("data"), {change.partition("=")[0].strip() for change in changes})
    for change in changes:
        _set(table, change)
    return validated(kind, table, recipe)


def load_head(recipe: str) -> Recipe:
    """What a recipe of any kind says of itself.

    Example:
        >>> load_head("rings").title
        '10-D rings'
    """
    table = _read(recipe)
    return validated(Recipe, {key: table[key] for key in Recipe.model_fields if key in table}, recipe)


def load_config(recipe: str, changes: Sequence[str] = ()) -> Config:
    """A recipe by name or path, with ``key=value`` changes such as ``run.updates=100``.

    Example:
        >>> load_config("rings", ["run.seed=7"]).run.seed
        7
    """
    if recipe in recipe_names(MEASURED):
        raise InputError(f"{recipe} trains no model; `burnin reproduce` measures what it says")
    config = load_recipe(Config, recipe, changes)
    if config.data.file is None:
        return config
    # Absolute, so that the run can be resumed and judged from any folder.
    data = config.data.model_copy(update={"file": str(Path(config.data.file).resolve())})
    return config.model_copy(update={"data": data})


def dump_config(config: Config) -> str:
    """The complete configuration as TOML."""
    return tomli_w.dumps(config.model_dump(exclude_none=True, mode="json"))


def read_run_config(folder: Path) -> Config:
    """The configuration of a run's folder."""
    path = folder / "config.toml"
    if not path.is_file():
        raise InputError(f"{folder} is no run: it has no config.toml")
    _require_own_files(folder)
    return validated(Config, read_toml(path), str(path))


def _require_own_files(folder: Path) -> None:
    """Raises InputError when a run's folder has a link that leads out of it: runs are written to as well."""
    home = folder.resolve()
    for path in folder.iterdir():
        if path.is_symlink() and not path.resolve().is_relative_to(home):
            raise InputError(f"{path} is a link out of the run's folder; put the file itself there")


def in_folder(config: Config, folder: Path) -> Config:
    """The configuration with the files that it names looked for in the run's folder, wherever that is now."""

    def here(settings: Section, *keys: str) -> Section:
        named = {key: getattr(settings, key) for key in keys}
        found = {key: str(folder / Path(name).name) for key, name in named.items() if name is not None}
        return settings.model_copy(update=found)

    data, model = here(config.data, "rows", "pictures"), here(config.model, "base")
    return config.model_copy(update={"data": data, "model": model})


def _read(recipe: str, above: tuple[str, ...] = ()) -> dict[str, Any]:
    if recipe in above or len(above) > DEEPEST:
        raise InputError(
            f"the recipe {recipe} is its own base, or has too many: {' → '.join([*above, recipe])}"
        )
    table = _read_one(recipe)
    base = table.pop("base", None)
    if base is None:
        return table
    below = _read(_base_of(recipe, base), (*above, recipe))
    below.pop("expected", None)  # what is expected of the base was measured with its settings
    return _merged(below, table)


def _require_near(data: object, told: set[str]) -> None:
    """Raises InputError when a recipe names data outside of the folder where it is used.

    A recipe may be a stranger's; that other files are to be read is for its user to say, by naming them
    (`told`).
    """
    for key in ("file", "folder"):
        name = data.get(key) if isinstance(data, dict) else None
        if not isinstance(name, str) or told & {"data", f"data.{key}"}:
            continue
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise InputError(
                f"data.{key} is {brief(name)}, outside of this folder, and a recipe may not read there; "
                f"if you want it to, say so: --set data.{key}={brief(name)}"
            )


def _base_of(recipe: str, base: object) -> str:
    """The base that a recipe names: one that comes with burnin, or a file beside the recipe or below it."""
    if not isinstance(base, str):
        raise InputError(f"{recipe}: base = {str(base)[:60]!r} is no name of a recipe")
    if not (recipe.endswith(".toml") and base.endswith(".toml")):
        return base
    folder = Path(recipe).resolve().parent
    path = (folder / base).resolve()
    if not path.is_relative_to(folder):
        raise InputError(
            f"{recipe}: its base {base} lies outside of its folder, and a recipe may not read there; "
            "put the base beside it"
        )
    return str(path)


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _read_one(recipe: str) -> dict[str, Any]:
    if recipe.endswith(".toml"):
        path = Path(recipe)
        if not path.is_file():
            raise InputError(f"there is no recipe file {recipe}")
        return read_toml(path)
    names = recipe_names()
    if recipe not in [*names, *recipe_names(MEASURED)]:
        raise InputError(
            f"there is no recipe {recipe!r}{nearest(recipe, names)}; `burnin recipes` lists them, "
            "and a file of your own ends in .toml"
        )
    text = resources.files("burnin.recipes").joinpath(f"{recipe}.toml").read_text(encoding="utf-8")
    return parse_toml(text, recipe)


def _set(table: dict[str, Any], change: str) -> None:
    key, equals, value = change.partition("=")
    if not equals or not key.strip():
        raise InputError(f"--set {change!r} is not of the form key=value, such as run.updates=100")
    try:
        parsed = parse_toml(f"value = {value}", change)["value"]
    except InputError:
        parsed = value.strip()
    *parents, last = key.strip().split(".")
    for parent in parents:
        inner = table.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise InputError(f"--set {change!r}: {parent!r} is no section")
        table = inner
    table[last] = parsed
