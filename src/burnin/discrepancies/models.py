"""What can be tested, seen as a score; its values at data, and the data's own units."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from burnin.core import Energy, InputError
from burnin.stein import Score, score_of

SCORE_BLOCK = 8192


@runtime_checkable
class HasEnergy(Protocol):
    """A model that carries its energy and its temperature, like a trained run."""

    @property
    def energy(self) -> Energy:
        """E."""
        ...

    @property
    def temperature(self) -> float:
        """T of exp(-E/T)."""
        ...


@runtime_checkable
class HasLogProb(Protocol):
    """A distribution of torch, a flow of zuko or normflows, a known density."""

    def log_prob(self, value: Tensor, /) -> Tensor:
        """Logarithm of the density up to a constant, (n,)."""
        ...


Model = HasEnergy | HasLogProb | Energy | Score
"""Anything with a score: see `as_score`."""


class Points(NamedTuple):
    """Data and a model's score at each point: all that a discrepancy ever sees of a model.

    Attributes:
        x: (n, dim), or (trials, n, dim) for many trials at once.
        scores: of the same shape.
    """

    x: Tensor
    scores: Tensor

    def rows(self, first: int, last: int) -> Points:
        """The points numbered from `first` up to `last`, of every trial."""
        return Points(self.x[..., first:last, :], self.scores[..., first:last, :])


def as_score(model: Model, temperature: float | None = None) -> Score:
    """The score x ↦ ∇ log p(x) of a model in any of its forms.

    Arguments:
        model: with a `temperature`, an energy; without, something that has an energy and a temperature,
            something that has a log_prob, or a function that is the score itself.
        temperature: T of exp(-E/T), where `model` is an energy.

    Example:
        >>> normal = torch.distributions.MultivariateNormal(torch.zeros(2), 4 * torch.eye(2))
        >>> as_score(normal)(torch.tensor([[4.0, 8.0]]))
        tensor([[-1., -2.]])
        >>> as_score(lambda x: x.square().sum(1), temperature=2.0)(torch.tensor([[4.0, 8.0]]))
        tensor([[-4., -8.]])
    """
    if temperature is not None:
        if isinstance(model, HasEnergy):
            raise InputError(
                f"the model has a temperature, {model.temperature}, and was given another; leave one out"
            )
        if not callable(model):
            raise InputError("a temperature goes with an energy, and this model is not a function")
        return score_of(model, temperature)
    if isinstance(model, HasEnergy):
        return score_of(model.energy, model.temperature)
    if isinstance(model, HasLogProb):
        log_prob = model.log_prob
        return score_of(lambda x: -log_prob(x), 1.0)
    if callable(model):
        return model
    raise InputError(
        f"cannot take the score of a {type(model).__name__}; give an energy with its temperature, "
        "a function x -> score, or an object with log_prob"
    )


def evaluate_scores(model: Model, x: Tensor, temperature: float | None = None) -> Tensor:
    """The model's score at each row of x, block by block, checked.

    Raises:
        InputError: for a wrong shape or values that are not finite, naming the first rows.

    Example:
        >>> evaluate_scores(lambda x: -x, torch.tensor([[1.0, 2.0]]))
        tensor([[-1., -2.]])
    """
    score = as_score(model, temperature)
    parts = []
    for block in torch.split(x, SCORE_BLOCK):
        part = score(block).detach()
        if part.shape != block.shape:
            raise InputError(
                f"the score has shape {tuple(part.shape)} for points of shape {tuple(block.shape)}; it must "
                "be the same. If the function is an energy, give its temperature"
            )
        parts.append(part)
    scores = torch.cat(parts)
    bad = (~scores.isfinite().all(1)).nonzero().flatten().tolist()
    if bad:
        rows = ", ".join(str(row + 1) for row in bad[:5])
        raise InputError(
            f"the model's score is not finite at {len(bad)} of {len(x)} points (row {rows}): "
            "the density vanishes or breaks there, so no Stein discrepancy exists"
        )
    return scores


def check_data(data: Tensor, smallest: int) -> Tensor:
    """The data, if it can be tested: (n, dim), finite, at least `smallest` rows."""
    if data.dim() != 2 or data.shape[1] < 1 or not data.is_floating_point():
        raise InputError(
            f"the data has shape {tuple(data.shape)} and type {data.dtype}; wanted rows by columns of floats"
        )
    if len(data) < smallest:
        raise InputError(f"the data has {len(data)} rows; this needs at least {smallest}")
    if not bool(data.isfinite().all()):
        raise InputError("the data holds NaN or infinity; remove those rows or fill the gaps")
    return data.detach()


def standardised(points: Points, by: Tensor) -> Points:
    """The same model and data with every column in units of its own spread.

    With z = (x - mean) / std, the density of z has the score std · s(x). One bandwidth and one penalty then
    mean the same in every column. A constant column keeps its unit.

    Arguments:
        points: data and scores, (..., n, dim).
        by: the rows that mean and std are taken of, (..., m, dim); a test that learns has only those.

    Example:
        >>> x = torch.tensor([[0.0], [4.0]])
        >>> points = standardised(Points(x, torch.tensor([[1.0], [-1.0]])), by=x)
        >>> points.x.std(0), points.scores.flatten()
        (tensor([1.]), tensor([ 2.8284, -2.8284]))
    """
    std, mean = torch.std_mean(by, dim=-2, keepdim=True)
    std = torch.where(std > 0, std, torch.ones_like(std))
    return Points((points.x - mean) / std, points.scores * std)
