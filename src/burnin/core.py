"""What every room shares: the energy contract, chain state and info, outcome codes, errors.

An energy gives each input a number, low where data is, and so an unnormalised density

    p(x) ∝ exp(-E(x) / T)

with one temperature T for everything that reads a density.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

Report = Callable[[str, int, int], None]
"""Told what goes on: what, how much is done, how much there is."""
Energy = Callable[[Tensor], Tensor]
"""Any ``nn.Module`` or callable from a batch (n, ...) to (n,) or (n, 1). Nothing to subclass."""


class BurninError(Exception):
    """Something the user can put right; the message says what was given, wanted and what to change."""

    exit_code = 2


class InputError(BurninError, ValueError):
    """Bad input: data, shapes, names, settings, an output folder already in use."""


class CheckpointError(BurninError):
    """A damaged, foreign or unfitting checkpoint."""


class StorageError(BurninError):
    """What cannot be written: the disk is full, or the folder is read-only."""


class DivergedError(BurninError):
    """Training left the finite numbers or its own history and could not be brought back."""

    exit_code = 3


class Outcome(enum.Enum):
    """How a run of chains or of training ended. The value is the text a user reads."""

    OK = "finished"
    NON_FINITE = (
        "some chains left the finite numbers and were stopped: lower step_size, or use MALA, "
        "which rejects such moves"
    )
    INTERRUPTED = "interrupted; what was done is saved, and --resume goes on from there"
    DIVERGED = "diverged: lower learning_rate or step_size, or raise num_steps"

    @property
    def message(self) -> str:
        """The sentence for the user."""
        return self.value


@dataclass(frozen=True)
class ChainState:
    """A batch of chains: all that the next step needs, so a run can stop and go on.

    Attributes:
        position: where the chains are, (n, ...).
        energy: E at the position, (n,).
        gradient: ∇E at the position, same shape as position.
        step_size: the current step, a 0-d float64 tensor; adaptive samplers change it.
        scale: per-dimension factor of the step (a diagonal preconditioner; the law stays the same).
        alive: False for chains that left the finite numbers; they stay at their last finite position.
        log_weight: logarithm of each chain's importance weight, (n,); annealed samplers change it.
        iteration: steps taken since the start of the chain; schedules read it.
    """

    position: Tensor
    energy: Tensor
    gradient: Tensor
    step_size: Tensor
    scale: Tensor
    alive: Tensor
    log_weight: Tensor
    iteration: int = 0


class StepInfo(NamedTuple):
    """What diagnostics need from one step.

    Attributes:
        acceptance: probability with which each proposal was accepted, (n,); 1 without a Metropolis check.
        gradient_norm: ‖∇E‖ at the position of each chain after the step, (n,).
        non_finite: how many proposals were not finite in this step (a 0-d tensor).
    """

    acceptance: Tensor
    gradient_norm: Tensor
    non_finite: Tensor


Scalar = float | Tensor
"""A number, or a 0-d tensor where the step is part of a compiled graph."""


class Scheduled(NamedTuple):
    """The numbers of one step that follow a schedule, not the chains.

    Attributes:
        temperature: T of the step's noise.
        step_size: the step; None for the state's own.
        gain: how fast the step follows the acceptance; 0 keeps it.
        reweight: c in log_weight + c·E before the step; 0 leaves the weights alone.
        resample_below: the chains are resampled when the weights' effective share is below it.
    """

    temperature: Scalar
    step_size: Scalar | None = None
    gain: Scalar = 0.0
    reweight: float = 0.0
    resample_below: float = 0.0


class Feed(NamedTuple):
    """All that one step needs beside the energy and the state, so that a step is a pure function.

    Attributes:
        normal: standard normal noise of the position's shape.
        spare: n + 1 further standard normal numbers.
        numbers: what the sampler's schedule says for this step.
    """

    normal: Tensor
    spare: Tensor
    numbers: Scheduled

    @property
    def uniform(self) -> Tensor:
        """A uniform number for each chain, (n,)."""
        uniform: Tensor = torch.special.ndtr(self.spare[:-1])
        return uniform

    @property
    def offset(self) -> Tensor:
        """One uniform number for all chains, 0-d."""
        offset: Tensor = torch.special.ndtr(self.spare[-1])
        return offset


class Sampler(Protocol):
    """The sampler contract: ``init``, ``schedule`` and one pure ``step``. See CONTRIBUTING.md for a skeleton.

    A sampler is a frozen dataclass, never an nn.Module; it owns no generator and no chains.
    """

    @property
    def temperature(self) -> float:
        """T of the law exp(-E/T) that the chain follows in the end."""
        ...

    @property
    def independent(self) -> bool:
        """True when no chain's move depends on the others, so that arms may run as one batch."""
        ...

    def init(self, energy: Energy, position: Tensor, *, scale: Tensor | None = None) -> ChainState:
        """The state of chains that start at `position`."""
        ...

    def tempered(self, share: float) -> Sampler:
        """The sampler of p^share, exp(-share·E/T): the same noise, the drift times `share`."""
        ...

    def schedule(self, iteration: int, num_steps: int) -> list[Scheduled]:
        """The numbers of `num_steps` steps from step number `iteration` on."""
        ...

    def step(self, energy: Energy, state: ChainState, feed: Feed) -> tuple[ChainState, StepInfo]:
        """One transition of every chain; no draw, no branch on what the tensors hold, but for speed."""
        ...


class Density(Protocol):
    """A data source that knows itself: draws, and where it exists in closed form its log-density."""

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        ...

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n independent draws, (n, dim)."""
        ...


@runtime_checkable
class KnownDensity(Density, Protocol):
    """A density whose normalised logarithm is known in closed form."""

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalised log-density, (n,)."""
        ...


class HasGradient(Protocol):
    """An energy that computes its input gradient itself, faster than a tape could."""

    def energy_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """E(x), (n,), and ∇E(x), both without a graph."""
        ...


def evaluate(energy: Energy, x: Tensor) -> Tensor:
    """E(x) as (n,), whatever of (n,) or (n, 1) the energy returns.

    Raises:
        InputError: for any other shape, naming it.

    Example:
        >>> import torch
        >>> evaluate(lambda x: x.square().sum(1, keepdim=True), torch.ones(3, 2))
        tensor([2., 2., 2.])
    """
    value = energy(x)
    n = x.shape[0]
    if value.shape == (n, 1):
        return value.squeeze(1)
    if value.shape != (n,):
        raise InputError(
            f"the energy gave shape {tuple(value.shape)} for a batch of {n}; "
            f"it must return ({n},) or ({n}, 1): one number for each input"
        )
    return value


def energy_and_gradient(energy: Energy, x: Tensor) -> tuple[Tensor, Tensor]:
    """E(x) and ∇E(x), detached. Gradients of weights are not computed.

    Chains in a batch do not interact, so one backward pass of the sum gives every gradient. An energy
    that knows its own gradient (`HasGradient`) is asked for it.

    Example:
        >>> import torch
        >>> value, gradient = energy_and_gradient(lambda x: 0.5 * x.square().sum(1), torch.tensor([[3.0]]))
        >>> value.item(), gradient.item()
        (4.5, 3.0)
    """
    own: Callable[[Tensor], tuple[Tensor, Tensor]] | None = getattr(energy, "energy_and_gradient", None)
    return own(x) if own is not None else tape_gradient(energy, x)


def tape_gradient(energy: Energy, x: Tensor) -> tuple[Tensor, Tensor]:
    """E(x) and ∇E(x) by differentiating what the energy does."""
    if torch.compiler.is_compiling():  # the tracer knows torch.func, not a tape inside the graph
        gradient, value = torch.func.grad(lambda y: _summed(energy, y), has_aux=True)(x)
        return value, gradient
    with torch.enable_grad():
        x = x.detach().requires_grad_(True)
        value = evaluate(energy, x)
        if not value.requires_grad:
            raise InputError(
                "the energy's output does not depend on its input through torch operations, "
                "so it has no gradient; avoid .detach(), .item() and numpy inside the energy"
            )
        gradient = torch.autograd.grad(value.sum(), x)[0]
    return value.detach(), gradient


def _summed(energy: Energy, x: Tensor) -> tuple[Tensor, Tensor]:
    value = evaluate(energy, x)
    return value.sum(), value.detach()


def per_chain(value: Tensor, like: Tensor) -> Tensor:
    """Reshapes a per-chain vector (n,) so that it broadcasts against positions (n, ...)."""
    return value.reshape(-1, *([1] * (like.dim() - 1)))


def flat_norm(x: Tensor) -> Tensor:
    """Euclidean norm of each item of a batch, (n,)."""
    norm: Tensor = torch.linalg.vector_norm(x.flatten(1), dim=1)
    return norm


@dataclass(frozen=True)
class Drawn:
    """Where a batch of chains starts, and the places they came from, for the start to store them back."""

    position: Tensor
    places: Tensor | None = None


class Start(Protocol):
    """The start contract: ``draw`` before the chains, ``store`` after them, ``state`` for checkpoints.

    Stateless starts store nothing and have an empty state.
    """

    def draw(self, data: Tensor, generator: torch.Generator) -> Drawn:
        """Starting points for as many chains as `data` has rows."""
        ...

    def store(self, drawn: Drawn, position: Tensor) -> None:
        """Takes the chains' ends back."""
        ...

    def state(self) -> dict[str, Tensor]:
        """The tensors a checkpoint must keep."""
        ...

    def restore(self, state: dict[str, Tensor]) -> None:
        """The inverse of `state`."""
        ...
