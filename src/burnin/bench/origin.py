"""Where a measurement came from: what `provenance` says, the processor and the peers' versions."""

from __future__ import annotations

import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from burnin.provenance import provenance

PEERS = ("jax", "jaxlib", "torchebm")


def origin() -> dict[str, Any]:
    """What made a measurement, to be written beside it."""
    return provenance() | {"processor": processor(), **{name: installed(name) for name in PEERS}}


def installed(package: str) -> str | None:
    """The version of a package, None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def processor() -> str:
    """The processor's name."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", information.read_text(encoding="utf-8"), re.M)
        if found is not None:
            return found[1].strip()
    return platform.processor() or platform.machine()
