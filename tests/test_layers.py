"""Who may import whom (DESIGN.md), read from the source, and what `import burnin` must not load."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import burnin

SOURCE = Path(burnin.__file__).parent

LAYERS = {
    0: {"core", "rng", "closed_form", "stein", "sources", "limits", "storage", "extras", "ranks"},
    1: {"data", "energies", "starts", "samplers", "objectives", "diagnostics", "discrepancies"},
    2: {"training"},
    3: {"evaluation", "report"},
}
ON_CORE = {"stein", "sources", "limits", "storage", "extras", "ranks"}
"""Of layer 0, what stands on core: on its gradient of energies, on its errors."""
LAYER = {room: layer for layer, rooms in LAYERS.items() for room in rooms}
TOP = 4
HEAVY = (
    *("pyarrow", "matplotlib", "typer", "rich", "sklearn", "jinja2", "tensorboard", "pandas", "burnin.cli"),
    *("lightning_fabric", "torch.distributed.fsdp"),
)


def layer_of(room: str) -> int:
    """The layer of a room; what has no layer of its own (config, cli, the front door "") is on top."""
    return LAYER.get(room, TOP)


def imported(source: str, package: tuple[str, ...]) -> Iterator[str]:
    """Dotted names of all that `source`, a module of `package`, imports, wherever in the file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [] if node.level == 0 else list(package[: len(package) - node.level + 1])
            base += node.module.split(".") if node.module else []
            if base == ["burnin"]:  # from burnin import x: x may be a room
                yield from (f"burnin.{alias.name}" for alias in node.names)
            else:
                yield ".".join(base)


def room_of(name: str, rooms: set[str]) -> str | None:
    """The room of burnin that an imported name belongs to, "" for the front door, None for others."""
    parts = name.split(".")
    if parts[0] != "burnin":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in rooms else ""


def breaches(source: str, path: str, rooms: set[str]) -> list[str]:
    """What `source`, as the file burnin/`path`, imports against the rules."""
    parts = Path(path).with_suffix("").parts
    package = ("burnin", *parts[:-1])
    here = "" if parts[0] == "__init__" else parts[0]
    found = []
    for name in imported(source, package):
        room = room_of(name, rooms)
        if room is None:
            known = name.split(".")[0] in sys.stdlib_module_names | {"torch"}
            if layer_of(here) == 0 and not known:
                found.append(f"{path}: layer 0 imports {name}")
        elif room == "cli" and here not in ("cli", "__main__"):
            found.append(f"{path}: nobody imports cli")
        elif room == "bench" and here not in ("bench", "cli", "study_commands"):
            found.append(f"{path}: only the shell imports bench")
        elif room != here and not _may(here, room):
            found.append(f"{path}: {here} (layer {layer_of(here)}) imports {name} (layer {layer_of(room)})")
    return found


def _may(here: str, room: str) -> bool:
    if here in ON_CORE and room == "core":
        return True
    if layer_of(here) >= 3:
        return layer_of(room) <= layer_of(here)
    return layer_of(room) < layer_of(here)


def all_rooms() -> set[str]:
    here = {path.stem for path in SOURCE.iterdir() if path.is_dir() or path.suffix == ".py"}
    return here | set(LAYER) | {"cli"}


FILES = sorted(str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES)
def test_imports_keep_the_layers(path: str) -> None:
    assert breaches((SOURCE / path).read_text(encoding="utf-8"), path, all_rooms()) == []


def test_the_walk_sees_the_library() -> None:
    assert {"core.py", "rng.py", "samplers/langevin.py", "training/trainer.py"} <= set(FILES)
    seen = set(imported((SOURCE / "samplers/mala.py").read_text(encoding="utf-8"), ("burnin", "samplers")))
    assert {"torch", "burnin.core", "burnin.samplers.langevin"} <= seen


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("core.py", "from burnin.rng import Streams"),
        ("core.py", "import numpy"),
        ("rng.py", "import burnin.samplers.run"),
        ("rng.py", "from . import core"),
        ("core.py", "from burnin.stein import score_of"),
        ("stein.py", "from burnin.rng import Streams"),
        ("sources.py", "from burnin.stein import score_of"),
        ("discrepancies/kernel.py", "from burnin.energies import MLP"),
        ("samplers/run.py", "from burnin.starts import Bank"),
        ("samplers/run.py", "from burnin.starts.bank import Bank"),
        ("samplers/run.py", "from burnin import energies"),
        ("samplers/run.py", "from ..energies import MLP"),
        ("samplers/run.py", "from .. import energies"),
        ("samplers/run.py", "import burnin"),
        ("samplers/run.py", "def f():\n    from burnin.data import Rings"),
        ("samplers/run.py", "if TYPE_CHECKING:\n    import burnin.data.rings as rings"),
        ("energies/known.py", "from burnin.training import Trainer"),
        ("objectives/__init__.py", "from burnin.samplers import run"),
        ("training/trainer.py", "from burnin.evaluation import judge"),
        ("training/trainer.py", "from burnin.settings import Config"),
        ("evaluation/grid.py", "from burnin.assemble import build"),
        ("report/page.py", "from burnin import Model"),
        ("config.py", "from burnin.cli import main"),
        ("__init__.py", "from burnin.cli import main"),
        ("studies/rings.py", "from burnin import cli"),
        ("assemble.py", "from burnin.bench import measure"),
    ],
)
def test_a_planted_breach_is_found(path: str, source: str) -> None:
    assert len(breaches(source, path, all_rooms())) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("core.py", "import enum\nfrom torch import Tensor"),
        ("stein.py", "from burnin.core import evaluate"),
        ("discrepancies/kernel.py", "from burnin.stein import stein_terms"),
        ("samplers/run.py", "from burnin.core import Energy\nfrom burnin.rng import Streams"),
        (
            "samplers/run.py",
            "from burnin.samplers.mala import MALA\nfrom . import hmc\nfrom .langevin import x",
        ),
        ("training/trainer.py", "from burnin.samplers import run\nfrom burnin.objectives import contrast"),
        ("evaluation/grid.py", "from burnin.report import Page\nfrom burnin.training import Trainer"),
        ("report/page.py", "from burnin.evaluation import judge\nimport matplotlib"),
        ("config.py", "import burnin.assemble\nfrom burnin import estimator"),
        ("cli.py", "from burnin.report import Page\nfrom burnin.settings import Config"),
    ],
)
def test_what_is_allowed_passes(path: str, source: str) -> None:
    assert breaches(source, path, all_rooms()) == []


def test_imports_are_light() -> None:
    """A sampler needs no plots, no command line, no page templates: neither the package nor a low room."""
    rooms = [room for layer in (0, 1, 2) for room in sorted(LAYERS[layer])]
    names = ["burnin", *(f"burnin.{room}" for room in rooms if _exists(room))]
    code = (
        "import importlib, json, sys\n"
        "loaded = {}\n"
        f"for name in {names!r}:\n"
        "    importlib.import_module(name)\n"
        f"    loaded[name] = [heavy for heavy in {HEAVY!r} if heavy in sys.modules]\n"
        "print(json.dumps(loaded))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded: dict[str, list[str]] = json.loads(done.stdout)
    assert list(loaded) == names
    assert {name: heavy for name, heavy in loaded.items() if heavy} == {}


def _exists(room: str) -> bool:
    return (SOURCE / room / "__init__.py").exists() or (SOURCE / f"{room}.py").exists()
