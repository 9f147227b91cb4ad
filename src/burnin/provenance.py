"""Where a number came from: command, commit, time, machine."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import burnin
from burnin.core import InputError
from burnin.limits import read_json
from burnin.storage import write_text_atomically

ORIGIN_FILE = "origin.json"


def provenance() -> dict[str, Any]:
    """What made a result, to be written beside it."""
    return {
        "command": "burnin " + " ".join(sys.argv[1:]),
        "version": burnin.__version__,
        "commit": _commit(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _commit() -> str | None:
    """The commit of the working copy that runs, with a mark if it has changes; None outside of one."""
    here = Path(__file__).parent
    try:
        head = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=here, capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no", "--", "."],
            cwd=here,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return head + ("+changes" if changed else "")


def write_origin(folder: Path) -> None:
    """Writes down in a run's folder what trains it and where, unless a run that is resumed has it."""
    path = folder / ORIGIN_FILE
    if not path.exists():
        write_text_atomically(path, json.dumps(provenance(), indent=1))


def read_origin(folder: Path) -> dict[str, Any]:
    """What `write_origin` wrote; empty where there is none, as in runs of older versions."""
    try:
        content = read_json(folder / ORIGIN_FILE)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise InputError(f"{folder / ORIGIN_FILE} is damaged ({error}); remove it") from error
    return content if isinstance(content, dict) else {}
