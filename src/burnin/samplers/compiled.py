"""Chains as a compiled graph: several steps of any sampler on any energy that torch.compile can trace.

The weights are inputs of the graph, so training does not recompile; the noise is one too, so the numbers
are those of the plain steps up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from burnin.core import ChainState, Energy, Feed, Sampler, Scheduled, StepInfo
from burnin.samplers.annealed import Annealed
from burnin.samplers.blocks import Advanced, Block, Sums
from burnin.samplers.plain import Plain

BACKEND = "inductor"
GRAPH_STEPS = 10
"""Steps in one graph. More save little and take longer to compile."""

Tensors = tuple[Tensor, ...]


class Graphs:
    """The graphs that were compiled so far: one for each sampler, energy and shape."""

    def __init__(self) -> None:
        self._graphs: dict[tuple[object, ...], Graph] = {}

    def of(
        self, sampler: Sampler, energy: Energy, state: ChainState, on_failure: Callable[[str], None]
    ) -> Graph | None:
        """The graph of this kind of run; None where one was tried and could not be made."""
        position, scale = state.position, state.scale
        key = (sampler, id(energy), position.shape, scale.shape, position.dtype, position.device)
        if key not in self._graphs:
            # The graph holds the energy, so no other gets its id.
            self._graphs[key] = Graph(sampler, energy, on_failure)
        graph = self._graphs[key]
        return None if graph.failed else graph


class Graph:
    """Takes chains through blocks, `GRAPH_STEPS` at a time; the first call compiles.

    Resampling looks at the weights and so stays outside the graph. What cannot be compiled is told to
    `on_failure` and computed plainly from then on.
    """

    def __init__(self, sampler: Sampler, energy: Energy, on_failure: Callable[[str], None]) -> None:
        self.failed = False
        self._annealed = sampler if isinstance(sampler, Annealed) else None
        self._inner: Sampler = sampler.inner if isinstance(sampler, Annealed) else sampler
        self._plain = Plain(sampler, energy)
        self._on_failure = on_failure
        self._compiled = {
            steps: torch.compile(
                _stepper(self._inner, energy, steps), fullgraph=True, dynamic=False, backend=BACKEND
            )
            for steps in (GRAPH_STEPS, 1)
        }

    def __call__(self, state: ChainState, block: Block) -> Advanced:
        """The chains after the block."""
        if self.failed:
            return self._plain(state, block)
        try:
            return self._advance(state, block)
        except Exception as error:  # whatever the tracer, the compiler or the C++ compiler may raise
            self.failed = True
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            self._on_failure(" ".join([f"{type(error).__name__}:", *lines[:2]])[:200])
            return self._plain(state, block)  # an error of the energy itself comes up again here

    def _advance(self, state: ChainState, block: Block) -> Advanced:
        done, sums = 0, Sums(0.0, 0.0, 0)
        info: StepInfo | None = None
        while done < len(block):
            if self._annealed is not None:
                state = self._annealed.reweighted(state, block.step(done))
            ahead = block.schedule[done + 1 : done + GRAPH_STEPS]
            whole = len(ahead) == GRAPH_STEPS - 1 and all(numbers.reweight == 0 for numbers in ahead)
            steps = GRAPH_STEPS if whole else 1
            state, info, more = self._call(state, block.part(done, done + steps))
            sums = sums.plus(more)
            done += steps
        assert info is not None
        return Advanced(state, info, sums)

    def _call(self, state: ChainState, block: Block) -> Advanced:
        own_step = block.schedule[0].step_size is None
        numbers = torch.tensor(
            [[n.temperature, 0.0 if own_step else n.step_size, n.gain] for n in block.schedule],
            dtype=torch.float64,
        )
        with torch.no_grad():
            out = self._compiled[len(block)](
                (state.position, state.energy, state.gradient, state.step_size, state.alive),
                state.scale,
                state.log_weight,
                block.normal,
                block.spare,
                numbers,
                own_step,
            )
        position, energy, gradient, step_size, alive, acceptance, norm, sums, non_finite = out
        new = ChainState(
            position,
            energy,
            gradient,
            step_size,
            state.scale,
            alive,
            state.log_weight,
            state.iteration + len(block),
        )
        norm_sum, acceptance_sum = sums.tolist()
        count = int(non_finite)
        return Advanced(new, StepInfo(acceptance, norm, non_finite), Sums(norm_sum, acceptance_sum, count))


def _stepper(sampler: Sampler, energy: Energy, steps: int) -> Callable[..., Tensors]:
    def advance(
        moving: Tensors,
        scale: Tensor,
        log_weight: Tensor,
        normal: Tensor,
        spare: Tensor,
        numbers: Tensor,
        own_step: bool,
    ) -> Tensors:
        position, value, gradient, step_size, alive = moving
        state = ChainState(position, value, gradient, step_size, scale, alive, log_weight)
        norms, acceptances, bad = [], [], []
        for i in range(steps):
            scheduled = Scheduled(numbers[i, 0], None if own_step else numbers[i, 1], numbers[i, 2])
            state, info = sampler.step(energy, state, Feed(normal[i], spare[i], scheduled))
            norms.append(info.gradient_norm.nanmean())
            acceptances.append(info.acceptance.mean())
            bad.append(info.non_finite)
        sums = torch.stack([torch.stack(norms).sum(), torch.stack(acceptances).sum()])
        return (
            state.position,
            state.energy,
            state.gradient,
            state.step_size,
            state.alive,
            info.acceptance,
            info.gradient_norm,
            sums,
            torch.stack(bad).sum(),
        )

    return advance
