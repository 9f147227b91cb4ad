"""Packages that not everybody needs: which extra brings each, told in one line where one is missing."""

from __future__ import annotations

import importlib.util

from burnin.core import InputError

EXTRAS: dict[str, tuple[str, str]] = {
    "typer": ("cli", "is the command line"),
    "rich": ("cli", "draws the command line's bars"),
    "matplotlib": ("report", "draws figures"),
    "jinja2": ("report", "writes the report"),
    "tensorboard": ("report", "keeps live curves, unless run.tensorboard=false"),
    "PIL": ("images", "reads and writes pictures"),
    "pyarrow": ("tables", "reads and writes .parquet files"),
}
"""By what is imported: the extra, and what the package does."""


class MissingExtraError(InputError, ImportError):
    """A package is missing that an extra of burnin brings."""


def require_extra(module: str) -> None:
    """Raises MissingExtraError where a package is not there, saying what to install.

    Example:
        >>> require_extra("typer")
    """
    extra, does = EXTRAS[module]
    if importlib.util.find_spec(module) is None:
        raise MissingExtraError(f"{module} is not installed; it {does}: pip install 'burnin[{extra}]'")
