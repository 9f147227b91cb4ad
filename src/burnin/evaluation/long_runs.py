"""Long runs of chains that can stop and go on: saved every so often, and resumed to the bit.

The run is taken in pieces, one for each point of its trace. Noise is drawn so that pieces give the numbers of
the whole (`burnin.samplers.blocks`), and what is saved is all that the next piece needs: the chains, their
stream, and the sums so far. The files are checkpoints as those of training (`burnin.training.checkpoint`).
"""

from __future__ import annotations

import hashlib
import math
import time
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from burnin.core import ChainState, CheckpointError, Energy, InputError, Outcome, Sampler, StepInfo
from burnin.samplers import Engine, RunResult, run
from burnin.samplers.run import Progress, Trace
from burnin.training.checkpoint import Snapshot, checkpoint_steps, load_checkpoint, save_checkpoint
from burnin.training.interrupt import ctrl_c

SAVE_SECONDS = 60.0
"""How long at most a killed run has to do again, if a piece takes no longer."""
TENSORS = tuple(one.name for one in fields(ChainState) if one.name != "iteration")


@dataclass
class _Progressed:
    """How far a run has come: its chains, their trace, and sums over the steps."""

    state: ChainState
    done: int = 0
    norm: float = 0.0
    acceptance: float = 0.0
    non_finite: int = 0
    trace: Trace = field(default_factory=Trace)

    def add(self, made: RunResult, steps: int) -> None:
        """Takes a piece in."""
        self.state, self.done = made.state, self.done + steps
        self.norm += made.gradient_norm * steps
        self.acceptance += made.acceptance * steps
        self.non_finite += made.non_finite
        for one in fields(Trace):
            getattr(self.trace, one.name).extend(getattr(made.trace, one.name))

    def result(self) -> RunResult:
        """The run as if it had been taken in one go."""
        steps = max(1, self.done)
        return RunResult(
            state=self.state,
            kept=None,
            trace=self.trace,
            gradient_norm=self.norm / steps,
            acceptance=self.acceptance / steps,
            non_finite=self.non_finite,
            outcome=Outcome.OK if bool(self.state.alive.all()) else Outcome.NON_FINITE,
        )

    def snapshot(self, identity: str, generator: torch.Generator) -> Snapshot:
        """What a file keeps of it."""
        tensors = {f"state.{name}": getattr(self.state, name) for name in TENSORS}
        # Not in the JSON: an energy may be infinite.
        for one in fields(Trace):
            tensors[f"trace.{one.name}"] = torch.tensor(getattr(self.trace, one.name), dtype=torch.float64)
        tensors["sums"] = torch.tensor([self.norm, self.acceptance], dtype=torch.float64)
        tensors["stream"] = generator.get_state()
        state: dict[str, Any] = {"identity": identity, "done": self.done, "non_finite": self.non_finite}
        return Snapshot(tensors, state | {"iteration": self.state.iteration})

    @classmethod
    def of(cls, snapshot: Snapshot, start: ChainState) -> _Progressed:
        """The inverse of `snapshot`, but for the stream; tensors go where they were at the start."""
        held, state = snapshot.tensors, snapshot.state
        chains: dict[str, Any] = {
            name: held[f"state.{name}"].to(getattr(start, name).device) for name in TENSORS
        }
        norm, acceptance = held["sums"].tolist()
        trace = Trace(**{one.name: held[f"trace.{one.name}"].tolist() for one in fields(Trace)})
        trace.iteration = [int(iteration) for iteration in trace.iteration]
        return cls(
            ChainState(**chains, iteration=state["iteration"]),
            state["done"],
            norm,
            acceptance,
            state["non_finite"],
            trace,
        )


def run_resumable(
    sampler: Sampler,
    energy: Energy,
    state: ChainState,
    *,
    num_steps: int,
    generator: torch.Generator,
    folder: Path,
    trace_points: int = 200,
    save_seconds: float = SAVE_SECONDS,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> RunResult:
    """`burnin.samplers.run`, which goes on where it was stopped when it is called again with the same chains.

    Ctrl-C saves after the current piece and interrupts; a second one interrupts at once. A run that takes
    less than `save_seconds` leaves no file.

    Arguments:
        sampler, energy, state, num_steps, generator: as in `run`.
        folder: where it is saved, and looked for: its files are of these chains alone. Chains of another
            model, start, sampler, length or stream are not taken on; the run then starts from `state`.
        trace_points: how many times, at most, to record along the way.
        save_seconds: how often it is saved.
        progress: called after every piece.
        engine: how the steps are computed.

    Raises:
        CheckpointError: when the newest file is damaged; it says which to remove.
        KeyboardInterrupt: after Ctrl-C, when everything is saved.

    Example:
        >>> import tempfile, torch
        >>> from burnin.samplers import Langevin
        >>> energy, sampler = (lambda x: 0.5 * x.square().sum(1)), Langevin(0.1, temperature=1.0)
        >>> state, folder = sampler.init(energy, torch.zeros(10, 2)), Path(tempfile.mkdtemp())
        >>> stream = torch.Generator().manual_seed(0)
        >>> ended = run_resumable(sampler, energy, state, num_steps=50, generator=stream, folder=folder)
        >>> ended.state.iteration
        50
    """
    if num_steps < 0:
        raise InputError(f"num_steps is {num_steps}; it must not be negative")
    if trace_points < 1:
        raise InputError(f"trace_points is {trace_points}; it must be at least 1")
    identity = _identity(sampler, state, num_steps, generator)
    so_far = _found(folder, identity, generator, state) or _Progressed(state)
    stride = max(1, math.ceil(num_steps / trace_points))
    engine = engine or Engine()
    expected, saved = engine.expected_steps, time.monotonic()

    def save() -> None:
        save_checkpoint(folder, so_far.done, so_far.snapshot(identity, generator))

    def tell(steps: int, now: ChainState, info: StepInfo) -> None:
        if progress is not None:
            progress(so_far.done + steps, now, info)

    try:
        with ctrl_c() as interrupted:
            while so_far.done < num_steps:
                engine.expected_steps = num_steps - so_far.done
                steps = min(stride, num_steps - so_far.done)
                made = run(
                    sampler,
                    energy,
                    so_far.state,
                    num_steps=steps,
                    generator=generator,
                    trace_points=1,
                    progress=tell,
                    progress_every=steps,
                    engine=engine,
                )
                so_far.add(made, steps)
                if interrupted():
                    save()
                    raise KeyboardInterrupt
                # The end is worth a file where the way was: what comes after it may be interrupted too.
                ended = so_far.done == num_steps and bool(checkpoint_steps(folder))
                if ended or time.monotonic() - saved >= save_seconds:
                    save()
                    saved = time.monotonic()
    finally:
        engine.expected_steps = expected
    return so_far.result()


def forget(folder: Path) -> None:
    """Removes what `run_resumable` saved, once it is not needed any more."""
    for pattern in ("checkpoint-*.json", "checkpoint-*.safetensors", ".checkpoint-*.tmp"):
        for file in folder.glob(pattern):
            file.unlink()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _found(folder: Path, identity: str, generator: torch.Generator, start: ChainState) -> _Progressed | None:
    """What was saved of these very chains; the stream is then where it was."""
    if not checkpoint_steps(folder):
        return None
    snapshot = load_checkpoint(folder)
    if snapshot.state.get("identity") != identity:
        forget(folder)
        return None
    try:
        so_far = _Progressed.of(snapshot, start)
        generator.set_state(snapshot.tensors["stream"].cpu())
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{folder} lacks {error} of its chains; remove it to run them anew") from error
    return so_far


def _identity(sampler: Sampler, state: ChainState, num_steps: int, generator: torch.Generator) -> str:
    """A hash of all that decides the run; the energy by its values and gradients at the start."""
    digest = hashlib.sha256(repr((sampler, num_steps, state.iteration)).encode())
    tensors: list[Tensor] = [getattr(state, name) for name in TENSORS]
    for value in (*tensors, generator.get_state()):
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
