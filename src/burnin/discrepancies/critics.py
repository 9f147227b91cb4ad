"""Training critics, many trials at once: one batched network, each trial with its own weights and data."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from burnin.core import DivergedError, InputError, Report
from burnin.discrepancies.models import Points
from burnin.stein import MLPCritic, Trace, combine, l2_penalty, mlp_critic, value_and_trace

Objective = Literal["power", "discrepancy"]
TINY = 1e-6
REPORT_EVERY = 10
WARM = 10
"""A running mean of the weights goes back over a tenth of the updates so far, at most."""


@dataclass(frozen=True)
class CriticSettings:
    """How critics are made and trained; the defaults are the paper's for tests (stein, appendix B.1).

    Attributes:
        width, layers: of the Swish network.
        lam: λ of the penalty λ E f·f.
        learning_rate: of Adam.
        decay: whether it falls along a cosine, to 0 after `iterations`.
        weight_decay: of Adam.
        dropout: the share of hidden units left out in training.
        iterations: updates at most.
        validate_every: updates between two looks at the validation points; the best critic is kept.
        batch_size: points in an update, drawn with replacement; None for all.
        patience: a trial ends after so many looks without a better one; None for never.
        average: memory of the running mean of the weights that looks are taken at, and that is kept; 0 for
            the last weights themselves.
        trace: of the critic's Jacobian in training. The exact one costs a forward pass with up to two
            hidden layers, less than a probe; validation and test use it always.
    """

    width: int = 300
    layers: int = 2
    lam: float = 0.5
    learning_rate: float = 1e-3
    decay: bool = False
    weight_decay: float = 5e-4
    dropout: float = 0.5
    iterations: int = 1000
    validate_every: int = 100
    batch_size: int | None = None
    patience: int | None = None
    average: float = 0.0
    trace: Trace = "exact"

    def __post_init__(self) -> None:
        counts = {
            "iterations": self.iterations,
            "validate_every": self.validate_every,
            "patience": self.patience,
        }
        for name, value in counts.items():
            if value is not None and value < 1:
                raise InputError(f"{name} is {value}; it must be at least 1")
        if self.batch_size is not None and self.batch_size < 2:
            raise InputError(f"batch_size is {self.batch_size}; a standard deviation takes at least 2 points")
        if not 0 <= self.average < 1:
            raise InputError(f"average is {self.average}; it must be at least 0 and below 1")
        if not self.lam > 0:
            raise InputError(f"lam is {self.lam}; without a penalty critics grow without bound")

    def rate(self, update: int) -> float:
        """The learning rate of an update, counted from 1.

        Example:
            >>> settings = CriticSettings(learning_rate=0.1, decay=True, iterations=100)
            >>> settings.rate(1), round(settings.rate(51), 3), CriticSettings().rate(51)
            (0.1, 0.05, 0.001)
        """
        done = (update - 1) / self.iterations if self.decay else 0.0
        return 0.5 * self.learning_rate * (1 + math.cos(math.pi * done))


@dataclass(frozen=True)
class TrainedCritics:
    """The best critic of every trial.

    Attributes:
        critic: a batch of critics, one for each trial.
        validation: what the choice was made by, of the chosen critic on the validation points, (trials,).
        iterations: after how many updates each was best, (trials,).
        updates: how many updates each trial took, (trials,).
    """

    critic: MLPCritic
    validation: Tensor
    iterations: Tensor
    updates: Tensor

    @torch.no_grad()
    def terms(self, points: Points) -> Tensor:
        """The Stein terms of each trial's points, by the exact trace, (trials, n)."""
        return _terms(self.critic, points)


class _Best(NamedTuple):
    """The best weights of every trial so far."""

    weights: list[Tensor]
    validation: Tensor
    iterations: Tensor
    updates: Tensor


def train_critics(
    train: Points,
    validation: Points,
    settings: CriticSettings,
    generator: torch.Generator,
    *,
    objective: Objective,
    shared: bool = False,
    report: Report | None = None,
) -> TrainedCritics:
    """Trains a critic for each trial by Adam and keeps each one's best by the validation points.

    For a test the objective is the power, mean over standard deviation of the Stein terms (stein, equation
    12), and so is the choice. For a discrepancy it is the mean (equation 6, or 11 with probes), and the
    choice is by mean less standard deviation, which an over-fitted critic of large variance does not win
    (appendix A). Both less λ E f·f.

    Arguments:
        train, validation: points of every trial, (trials, n, dim).
        settings: of the critics.
        generator: draws first weights, dropout, mini-batches and probes.
        objective: what the critics maximise.
        shared: the same first weights, dropout and mini-batches for every trial, so that trials differ by
            their data and scores alone.
        report: told how far it is.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> x = torch.randn(3, 200, 2, generator=generator)  # three trials
        >>> points = Points(x, 1 - x)
        >>> settings = CriticSettings(width=16, iterations=60, validate_every=20, learning_rate=1e-2)
        >>> critics = train_critics(points, points, settings, generator, objective="power")
        >>> bool((critics.validation > 0.5).all())
        True
    """
    trials, _, dim = train.x.shape
    critic = mlp_critic(
        dim,
        settings.width,
        settings.layers,
        generator=generator,
        dropout=settings.dropout,
        trials=1 if shared else trials,
    ).to(device=train.x.device, dtype=train.x.dtype)
    if shared:
        _replace(critic, [p.detach().expand(trials, -1, -1).clone() for p in critic.parameters()])
    optimiser = _adam(critic, settings)
    mean = copy.deepcopy(critic)
    alive = torch.arange(trials, device=train.x.device)
    best = _no_best(critic, trials)
    stale = torch.zeros_like(alive)
    for update in range(1, settings.iterations + 1):
        batch = _batch(train, settings.batch_size, generator, shared=shared)
        optimiser.zero_grad(set_to_none=True)
        optimiser.param_groups[0]["lr"] = settings.rate(update)
        loss = -_objective(critic, batch, settings, generator, objective, shared=shared)
        loss.sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        _follow(mean, critic, settings.average, update)
        if report is not None and update % REPORT_EVERY == 0:
            report("critics", update, settings.iterations)
        if update % settings.validate_every == 0 or update == settings.iterations:
            better = _keep_best(best, mean, validation, objective, alive, update)
            stale = torch.where(better, 0, stale + 1)
            going = stale < (settings.patience or settings.iterations + 1)
            if not bool(going.any()):
                break
            if not bool(going.all()):
                train, validation = (Points(p.x[going], p.scores[going]) for p in (train, validation))
                alive, stale = alive[going], stale[going]
                optimiser = _narrow(critic, optimiser, going, settings)
                _replace(mean, [parameter.detach()[going] for parameter in mean.parameters()])
    if report is not None:
        report("critics", settings.iterations, settings.iterations)
    _replace(critic, best.weights)
    return TrainedCritics(critic.requires_grad_(False), best.validation, best.iterations, best.updates)


def power_of(terms: Tensor) -> Tensor:
    """Mean over standard deviation of the terms of each trial (stein, equation 12).

    Example:
        >>> power_of(torch.tensor([0.0, 1.0, 2.0]))
        tensor(1.0000)
    """
    std, mean = torch.std_mean(terms, dim=-1)
    return mean / (std + TINY)


def _terms(critic: MLPCritic, points: Points) -> Tensor:
    values, trace = value_and_trace(critic, points.x, batch_dims=2)
    return combine(points.scores, values, trace)


def _objective(
    critic: MLPCritic,
    points: Points,
    settings: CriticSettings,
    generator: torch.Generator,
    objective: Objective,
    *,
    shared: bool,
) -> Tensor:
    """What each trial's critic maximises, (trials,)."""
    thinned = critic.thinned(points.x.shape[1], generator, shared=shared) if settings.dropout else critic
    values, trace = value_and_trace(
        thinned, points.x, trace=settings.trace, generator=generator, batch_dims=2
    )
    terms = combine(points.scores, values, trace)
    aim = power_of(terms) if objective == "power" else terms.mean(-1)
    return aim - l2_penalty(values, settings.lam, batch_dims=2)


def _batch(points: Points, size: int | None, generator: torch.Generator, *, shared: bool) -> Points:
    """Points drawn for one update, of every trial for itself unless shared."""
    trials, n, dim = points.x.shape
    if size is None or size >= n:
        return points
    rows = torch.randint(n, (1 if shared else trials, size, 1), generator=generator, device=generator.device)
    rows = rows.to(points.x.device).expand(trials, size, dim)
    return Points(points.x.gather(1, rows), points.scores.gather(1, rows))


def _no_best(critic: MLPCritic, trials: int) -> _Best:
    weights = [parameter.detach().clone() for parameter in critic.parameters()]
    worst = weights[0].new_full((trials,), -torch.inf)
    counts = torch.zeros(trials, dtype=torch.long, device=worst.device)
    return _Best(weights, worst, counts, counts.clone())


@torch.no_grad()
def _follow(mean: MLPCritic, critic: MLPCritic, memory: float, update: int) -> None:
    """Moves the running mean of the weights towards the last ones; it forgets its start sooner than that."""
    memory = min(memory, update / (update + WARM))
    for kept, parameter in zip(mean.parameters(), critic.parameters(), strict=True):
        kept.lerp_(parameter, 1 - memory)


@torch.no_grad()
def _keep_best(
    best: _Best, critic: MLPCritic, points: Points, objective: Objective, alive: Tensor, update: int
) -> Tensor:
    """Looks at the validation points; says which of the trials alive are better than ever, and keeps them."""
    terms = _terms(critic, points)
    if not bool(terms.isfinite().all()):
        raise DivergedError(f"a critic diverged within {update} updates; lower its learning rate")
    value = power_of(terms) if objective == "power" else terms.mean(-1) - terms.std(-1)
    better = value > best.validation[alive]
    for kept, parameter in zip(best.weights, critic.parameters(), strict=True):
        kept[alive[better]] = parameter[better]
    best.validation[alive[better]] = value[better]
    best.iterations[alive[better]] = update
    best.updates[alive] = update
    return better


def _adam(critic: MLPCritic, settings: CriticSettings) -> torch.optim.Adam:
    return torch.optim.Adam(
        critic.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )


def _narrow(
    critic: MLPCritic, optimiser: torch.optim.Adam, going: Tensor, settings: CriticSettings
) -> torch.optim.Adam:
    """Goes on with some of the trials only: their weights, and Adam's memory of them."""
    memory = [optimiser.state[parameter] for parameter in critic.parameters()]
    _replace(critic, [parameter.detach()[going] for parameter in critic.parameters()])
    narrowed = _adam(critic, settings)
    for parameter, state in zip(critic.parameters(), memory, strict=True):
        narrowed.state[parameter] = {
            name: value[going] if value.dim() == parameter.dim() else value for name, value in state.items()
        }
    return narrowed


def _replace(critic: MLPCritic, weights: list[Tensor]) -> None:
    """Gives a batch of critics other weights, for as many trials as these have."""
    half = len(weights) // 2
    critic.weights = nn.ParameterList(nn.Parameter(weight) for weight in weights[:half])
    critic.biases = nn.ParameterList(nn.Parameter(bias) for bias in weights[half:])
