"""Writes the reference of everything public to docs/api, a page for each room: python tools/api.py [FOLDER].

By the standard library's inspect alone: docstrings here are plain text with equations and doctests, which no
generator of pages would understand better than a block of text does, so that none is another dependency.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOMS = (
    "burnin",
    "burnin.stein",
    "burnin.data",
    "burnin.energies",
    "burnin.starts",
    "burnin.samplers",
    "burnin.objectives",
    "burnin.diagnostics",
    "burnin.discrepancies",
    "burnin.training",
    "burnin.evaluation",
    "burnin.interop",
    "burnin.report",
    "burnin.studies",
    "burnin.bench",
)
"""All packages that say what of them is public (`__all__`)."""


def public(room: str) -> Iterator[tuple[str, Any]]:
    """The public names of a room and what they are, in the order of `__all__`."""
    module = importlib.import_module(room)
    for name in module.__all__:
        yield name, getattr(module, name)


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class of burnin defines, or inherits from one of burnin."""
    for base in reversed(inspect.getmro(kind)):
        if base.__module__.startswith("burnin"):
            for name, member in vars(base).items():
                if not name.startswith("_") and getattr(kind, name, None) is not None:
                    inner = member.__func__ if isinstance(member, classmethod | staticmethod) else member
                    if isinstance(member, property):
                        yield name, member.fget
                    elif inspect.isfunction(inner) and inner.__module__.startswith("burnin"):
                        yield name, inner


def complaints() -> list[str]:
    """What is public and has no docstring, or an argument or a result without a type."""
    found = []
    for room in ROOMS:
        for name, thing in public(room):
            where = f"{room}.{name}"
            if inspect.isfunction(thing):
                found += _complaints_of(where, thing)
            elif inspect.isclass(thing) and thing.__module__.startswith("burnin"):
                if not thing.__doc__:
                    found.append(f"{where} has no docstring")
                members = dict(methods(thing))
                init = vars(thing).get("__init__")
                if inspect.isfunction(init) and init.__module__.startswith("burnin"):
                    found += [text for text in _complaints_of(where, init) if "docstring" not in text]
                for member, function in members.items():
                    found += _complaints_of(f"{where}.{member}", function)
    return list(dict.fromkeys(found))


def _complaints_of(where: str, function: Any) -> list[str]:
    found = [] if inspect.getdoc(function) else [f"{where} has no docstring"]
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.annotation is parameter.empty and parameter.name not in ("self", "cls"):
            found.append(f"{where}: {parameter.name} has no type")
    if signature.return_annotation is signature.empty and not where.endswith("__init__"):
        found.append(f"{where}: its result has no type")
    return found


def page(room: str) -> str:
    """The page of a room, in Markdown."""
    module = importlib.import_module(room)
    lines = [f"# {room}", "", inspect.getdoc(module) or "", ""]
    for name, thing in public(room):
        lines += [f"## {name}", ""]
        if inspect.isfunction(thing):
            lines += _described(name, thing)
        elif inspect.isclass(thing):
            lines += _described(name, thing)
            for member, function in dict(methods(thing)).items():
                lines += [f"### {name}.{member}", "", *_described(member, function)]
        else:
            lines += ["```text", _short(thing), "```", ""]
    return "\n".join(lines)


def _described(name: str, thing: Any) -> list[str]:
    return ["```text", f"{name}{_signature(thing)}", "", inspect.getdoc(thing) or "", "```", ""]


def _signature(thing: Any) -> str:
    try:
        return str(inspect.signature(thing))
    except (ValueError, TypeError):  # an enumeration, a protocol: they are not called
        return ""


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"


def write(folder: Path) -> list[Path]:
    """Writes every page and one that lists them; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {f"{room}.md": page(room) for room in ROOMS}
    listed = [f"- [{room}]({room}.md): {', '.join(name for name, _ in public(room))}" for room in ROOMS]
    pages["index.md"] = "# Reference\n\n" + "\n".join(listed) + "\n"
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in pages]


def main() -> None:
    """Writes the pages; what is not documented is an error."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "api"
    wrong = complaints()
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(write(folder))} pages in {folder}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
