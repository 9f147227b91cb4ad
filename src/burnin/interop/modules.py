"""Any torch module as a model that burnin samples, tests and judges."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from burnin.core import Energy, InputError, Report, Sampler, evaluate
from burnin.data import Table
from burnin.evaluation.assess import Assessment, Effort
from burnin.evaluation.model import Chain, Model
from burnin.rng import Streams
from burnin.runs import assess_model, effort_of
from burnin.samplers import Annealed, Engine
from burnin.settings import StudySettings
from burnin.starts import FromNoise

TRIED = 4
"""Rows that the energy is tried on."""


class EnergyOf(nn.Module):
    """E(x) = f(x), or -T · f(x) where f is a log-density; f may be any callable, its weights stay its own."""

    def __init__(self, function: Energy, factor: float = 1.0) -> None:
        super().__init__()
        self.function: Any = function  # a module becomes a part of this one
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        """E(x), (n,)."""
        return self.factor * evaluate(self.function, x)


def as_model(
    function: Energy,
    data: Tensor | NDArray[np.floating] | Table,
    *,
    sampler: Sampler,
    num_steps: int,
    log_density: bool = False,
    noise: FromNoise | None = None,
    engine: Engine | None = None,
) -> Model:
    """A model of an energy that was made elsewhere: for chains, the verdict, tests and a likelihood.

    Arguments:
        function: any torch module or callable from (n, dim) to (n,) or (n, 1): E, low where data is.
        data: rows that it is to be judged on, (n, dim), best those that it was not trained on.
        sampler: of its chains; its temperature is T of exp(-E/T). No step size suits all energies.
        num_steps: steps of a chain from noise.
        log_density: whether `function` is log p, normalised or not, instead of E.
        noise: what chains start from; Gaussian noise with the data's mean and spread by default.
        engine: how chains are computed.

    Raises:
        InputError: when it does not give one finite number for each row.

    Example:
        >>> import torch
        >>> from burnin import MALA
        >>> rows = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
        >>> normal = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
        >>> model = as_model(normal.log_prob, rows, sampler=MALA(0.5, 1.0), num_steps=20, log_density=True)
        >>> model.energy(torch.zeros(1, 2))  # log 2π
        tensor([1.8379])
    """
    if num_steps < 1:
        raise InputError(f"num_steps is {num_steps}; it must be at least 1")
    table = data if isinstance(data, Table) else _table(data)
    temperature = sampler.temperature
    energy = EnergyOf(function, -temperature if log_density else 1.0).eval()
    with torch.no_grad():
        value = evaluate(energy, table.values[:TRIED])
    if not bool(value.isfinite().all()):
        raise InputError(f"the energy of the first rows is {value.tolist()}; it must be finite")
    plain = Chain(sampler.inner if isinstance(sampler, Annealed) else sampler, num_steps)
    return Model(
        energy=energy,
        temperature=temperature,
        data=table,
        noise=noise or FromNoise.matched(table.values),
        plain=plain,
        annealed=Chain(sampler, num_steps),
        trained_from_noise=True,
        scale=None,
        scheme="none (made elsewhere)",
        num_updates=0,
        engine=engine or Engine(),
    )


def check_model(
    model: Model, *, seed: int = 0, effort: Effort | None = None, report: Report | None = None
) -> Assessment:
    """Judges a model as `burnin check` judges a run; the outcome's `verdict.lines` are its sentences.

    Arguments:
        model: from `as_model` or `from_pretrained`, with data.
        seed: of everything drawn.
        effort: how many samples, chains and steps; as in recipes by default.
        report: told what goes on.
    """
    spent = effort or effort_of(StudySettings())
    return assess_model(model, spent, Streams(seed), report or (lambda *_: None))


def _table(data: Tensor | NDArray[np.floating]) -> Table:
    rows = torch.as_tensor(data).detach().cpu()
    dim = rows.shape[1] if rows.dim() == 2 else 0
    return Table(rows.to(torch.get_default_dtype()), tuple(f"x{index + 1}" for index in range(dim)))
