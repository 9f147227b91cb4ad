"""Who is measured, and what each needs to be installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec

from burnin.bench.cases import Case, Kind

LANGEVIN: tuple[Kind, ...] = ("langevin",)
EVERY: tuple[Kind, ...] = ("langevin", "mala", "hmc", "training")


@dataclass(frozen=True)
class Work:
    """A contestant that stands ready.

    Attributes:
        run: takes so many steps (or updates) from the case's start and returns when they are done.
        path: which way the steps went, for those that have several.
    """

    run: Callable[[int], None]
    path: Callable[[], str] = field(default=lambda: "")


@dataclass(frozen=True)
class Contestant:
    """One way to do the steps.

    Attributes:
        name: what tables call it.
        maker: "module:function" that makes a `Work` of a `Case`, called in the contestant's own process.
        kinds: the cases it takes part in.
        requires: packages it imports, which must be installed; they count as imports in its memory.
        peer: another library, which runs only when asked for.
    """

    name: str
    maker: str
    kinds: tuple[Kind, ...] = EVERY
    requires: tuple[str, ...] = ("torch",)
    peer: bool = False

    def missing(self) -> list[str]:
        """Which of the packages it requires are not installed."""
        return [package for package in self.requires if find_spec(package) is None]

    def takes(self, case: Case) -> bool:
        """Whether it takes part in a case."""
        return case.kind in self.kinds


OURS = "burnin compiled"
BASELINE = "autograd.grad loop"
TORCHEBM = "torchebm"
JAX = "JAX"
FLOOR = "floor"

CONTESTANTS = (
    Contestant(OURS, "burnin.bench.ours:compiled"),
    Contestant("burnin plain", "burnin.bench.ours:plain"),
    Contestant(BASELINE, "burnin.bench.loops:grad_loop"),
    Contestant(".backward() loop", "burnin.bench.loops:backward_loop", ("langevin", "training")),
    Contestant(TORCHEBM, "burnin.bench.torchebm_peer:make", LANGEVIN, ("torch", "torchebm"), peer=True),
    Contestant(JAX, "burnin.bench.jax_peer:make", LANGEVIN, ("torch", "jax"), peer=True),
    Contestant(FLOOR, "burnin.bench.floor:make", LANGEVIN),
)


def how_to_install(package: str) -> str:
    """The line for a peer that is not there.

    Example:
        >>> how_to_install("jax")
        "jax is not installed; to compare with it: pip install -c constraints.txt 'burnin[peers]'"
    """
    return f"{package} is not installed; to compare with it: pip install -c constraints.txt 'burnin[peers]'"
