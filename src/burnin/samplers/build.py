"""Builds the native chains with the machine's own C++ compiler, once, and keeps the result on disk."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

SOURCES = ("chain.cpp", "energy.h", "gemm.h", "learn.h", "memory.h", "steps.h", "team.h", "vecmath.h")
FLAGS = (
    "-O3",
    "-march=native",
    "-std=c++20",
    "-shared",
    "-fPIC",
    "-pthread",
    "-fno-math-errno",
    "-fno-trapping-math",
)
BUILD_TIMEOUT = 300.0


@dataclass(frozen=True)
class Built:
    """The library, or the reason why there is none."""

    library: ctypes.CDLL | None
    reason: str = ""


def cache_folder() -> Path:
    """Where compiled code is kept between runs: $XDG_CACHE_HOME/burnin, ~/.cache/burnin by default."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "burnin"


def find_compiler() -> str | None:
    """$CXX, or the first C++ compiler on the path."""
    candidates = (os.environ.get("CXX"), "c++", "g++", "clang++")
    return next((found for name in candidates if name and (found := shutil.which(name))), None)


def library(*, build: bool) -> Built:
    """The native chains; compiled now if they were not before and `build` says so."""
    compiler = find_compiler()
    if compiler is None:
        return Built(None, "no C++ compiler on the path; install g++ or clang++")
    try:
        target = cache_folder() / f"chain-{_fingerprint(compiler)}.so"
        if not target.exists():
            if not build:
                return Built(None, "too few steps to build it for")
            _compile(compiler, target)
        return Built(_load(str(target)))
    except subprocess.CalledProcessError as error:
        lines = str(error.stderr).strip().splitlines()
        return Built(None, f"{Path(compiler).name} failed: {lines[0] if lines else 'no message'}")
    except (OSError, subprocess.TimeoutExpired) as error:
        return Built(None, str(error))


def _sources() -> dict[str, bytes]:
    folder = resources.files("burnin.samplers") / "kernel"
    return {name: (folder / name).read_bytes() for name in SOURCES}


@functools.cache
def _fingerprint(compiler: str) -> str:
    """Changes with the sources, the flags, the compiler and the processor that "native" stands for."""
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True, timeout=60)
    known = [*FLAGS, compiler, version.stdout, _processor()]
    return hashlib.sha256("\n".join(known).encode() + b"".join(_sources().values())).hexdigest()[:16]


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    if described.exists():
        lines = described.read_text(encoding="utf-8", errors="replace").splitlines()
        return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
    return f"{platform.machine()} {platform.processor()}"


def _compile(compiler: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        for name, content in _sources().items():
            (Path(folder) / name).write_bytes(content)
        made = Path(folder) / target.name
        command = [compiler, *FLAGS, "-o", str(made), str(Path(folder) / SOURCES[0])]
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=BUILD_TIMEOUT)
        made.replace(target)  # whole or not at all: several processes may build at once


@functools.cache
def _load(path: str) -> ctypes.CDLL:
    loaded = ctypes.CDLL(path)
    loaded.burnin_chain.argtypes = [ctypes.c_void_p]
    loaded.burnin_pack.argtypes = [ctypes.c_void_p]
    loaded.burnin_pack.restype = ctypes.c_void_p
    loaded.burnin_unpack.argtypes = [ctypes.c_void_p]
    loaded.burnin_unpack.restype = None
    pointer, count = ctypes.c_void_p, ctypes.c_int64
    loaded.burnin_evaluate.argtypes = [pointer, pointer, count, pointer, pointer]
    loaded.burnin_learn.argtypes = [pointer, pointer, count, pointer]
    loaded.burnin_learn.restype = pointer
    loaded.burnin_weight_gradients.argtypes = [pointer, count, pointer, pointer, pointer]
    loaded.burnin_update.argtypes = [pointer]
    loaded.burnin_train.argtypes = [pointer]
    loaded.burnin_forget.argtypes = [pointer]
    loaded.burnin_forget.restype = None
    return loaded
