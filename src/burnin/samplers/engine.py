"""How the steps of a chain are computed: natively, as a compiled graph, or one operation at a time.

The numbers are the same up to rounding; only the time differs. `Engine` decides, once for each kind of
run, and says in one line what it decided and why.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from burnin.closed_form import ClosedForm, closed_form
from burnin.core import ChainState, Energy, InputError, Sampler, energy_and_gradient
from burnin.samplers import compiled, native
from burnin.samplers.blocks import Advance
from burnin.samplers.build import Built, library
from burnin.samplers.plain import Plain
from burnin.samplers.prepared import Prepared

Compile = Literal["auto", "never", "always"]
Path = Literal["native", "compiled", "plain"]

COMPILE_SECONDS = 30.0
"""What compiling an energy's graph costs at first."""
COMPILED_SAVES = 0.3
"""The share of a plain step's time that a compiled graph is sure to save."""


class Engine:
    """Chooses how chains are computed, and keeps what was compiled for the next run.

    Arguments:
        compile: "never" computes plainly; "always" natively or as a compiled graph wherever it is
            possible; "auto" only where the time to build it is sure to be won back.
        expected_steps: how many steps are to come in all, for "auto"; a run's own number if larger.
        threads: of native code, whose numbers do not depend on it; None for as many as torch has.
        say: gets one line for each decision.

    Attributes:
        path: how the last run was computed.

    Example:
        >>> Engine("never").path
        'plain'
    """

    def __init__(
        self,
        compile: Compile = "auto",
        *,
        expected_steps: int = 0,
        threads: int | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        if compile not in get_args(Compile):
            raise InputError(f"compile is {compile!r}; it must be one of {', '.join(get_args(Compile))}")
        self.compile = compile
        self.expected_steps = expected_steps
        self.threads = threads
        self.path: Path = "plain"
        self._say = say
        self._said: set[str] = set()
        self._graphs = compiled.Graphs()
        self._built: Built | None = None

    def __getstate__(self) -> dict[str, object]:
        """Its settings: what was compiled, and who is told, stays in this process."""
        return {"compile": self.compile, "expected_steps": self.expected_steps, "threads": self.threads}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The inverse of `__getstate__`."""
        self.__init__(**state)  # type: ignore[misc]

    def open(self, sampler: Sampler, energy: Energy, state: ChainState, num_steps: int) -> Advance:
        """What takes these chains forward."""
        form = closed_form(energy)
        steps = max(num_steps, self.expected_steps)
        reason = "compile is never"
        if self.compile != "never":
            if form is not None and native.fits(sampler, form, state):
                # What was prepared without native code stays without: one run, one way.
                prepared = energy if isinstance(energy, Prepared) else None
                built = (
                    prepared.built if prepared is not None else self._native(form, len(state.position), steps)
                )
                if built.library is not None:
                    dim, threads = state.position.shape[1], self.threads or torch.get_num_threads()
                    packed = prepared.packed(dim) if prepared is not None else None
                    chain = native.bind(
                        sampler, packed or native.PackedForm(built.library, form, dim), threads
                    )
                    return self._take("native", f"native code, up to {threads} threads", chain)
                reason = f"no native code: {built.reason}"
            elif self.compile == "always" or self._pays(energy, state, steps):
                graph = self._graphs.of(sampler, energy, state, self._fall_back)
                if graph is not None:
                    return self._take("compiled", "a compiled graph", graph)
                reason = "the energy could not be compiled"
            else:
                reason = "too few to compile for"
        return self._take("plain", f"plain steps ({reason})", Plain(sampler, form or energy))

    def prepare(self, energy: Energy, batch: Tensor, native_code: bool | None = None) -> Energy:
        """The energy with its short ways, for chains and losses until its weights change.

        Arguments:
            energy: any; one without a closed form is returned as it is.
            batch: positions like those to come.
            native_code: whether to use native code, as was decided before: a run that goes on must round as
                it did when it began. None decides now.
        """
        form = closed_form(energy)
        if form is None:
            return energy
        built = Built(None, "compile is never")
        if native_code is False:
            built = Built(None, "the run began without it")
        elif self.compile != "never" and native.computes(form, batch):
            steps = self.expected_steps if native_code is None else sys.maxsize
            built = self._native(form, len(batch), steps)
        return Prepared(energy, form, built)

    def take_updates(self) -> None:
        """Notes that whole updates are computed natively, their chains among them."""
        self.path = "native"
        self._tell("chains: native code, several updates a call")

    def _native(self, form: ClosedForm, rows: int, steps: int) -> Built:
        if self._built is None:
            built = library(build=self.compile == "always" or native.pays(form, rows, steps))
            if built.library is None:
                return built
            self._built = built
        return self._built

    def _take(self, path: Path, line: str, advance: Advance) -> Advance:
        self.path = path
        self._tell(f"chains: {line}")
        return advance

    def _fall_back(self, reason: str) -> None:
        self.path = "plain"
        self._tell(f"chains: plain steps (the energy could not be compiled: {reason})")

    def _tell(self, line: str) -> None:
        if self._say is not None and line not in self._said:
            self._said.add(line)
            self._say(line)

    def _pays(self, energy: Energy, state: ChainState, steps: int) -> bool:
        if steps * COMPILED_SAVES < COMPILE_SECONDS:  # not even with a second a step
            return False
        before = time.perf_counter()
        energy_and_gradient(energy, state.position)
        return steps * COMPILED_SAVES * (time.perf_counter() - before) > COMPILE_SECONDS
