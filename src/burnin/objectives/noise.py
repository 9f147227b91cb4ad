"""Noise-contrastive estimation, plain and conditional: telling data from noise learns the density."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from burnin.closed_form import energy_of_weights
from burnin.core import Energy, InputError, evaluate
from burnin.objectives.direct import DirectObjective, require_above_zero

START_DRAWS = 10_000
"""Draws of the noise from which the normaliser's start is estimated."""


class NoiseContrast(DirectObjective):
    """Noise-contrastive estimation with Gaussian noise p_n (Gutmann & Hyvärinen 2010; stein, B.5).

    A point is data with log-odds G(x) = -E(x)/T - c - log p_n(x) - log ν; the loss is

        ⟨log(1 + exp(-G))⟩_data + ν ⟨log(1 + exp(G))⟩_noise.

    Its minimum over all energies is the data's density with c the logarithm of the normaliser; c is
    learned along with the energy, by its optimiser. Where data and noise hardly overlap, as in many
    dimensions, the odds are sure and there is little to learn from.

    Arguments:
        mean: of the noise, (dim,).
        covariance: of the noise, (dim, dim).
        temperature: T.
        ratio: ν, points of noise for each data point.

    Example:
        >>> import torch
        >>> objective = NoiseContrast(torch.zeros(2), torch.eye(2), temperature=1.0)
        >>> objective.start(lambda x: 0.5 * x.square().sum(1), torch.Generator().manual_seed(0))
        >>> objective.log_normaliser  # of a standard normal energy: log 2π
        Parameter containing:
        tensor(1.8379, requires_grad=True)
    """

    mean: Tensor
    factor: Tensor

    def __init__(self, mean: Tensor, covariance: Tensor, *, temperature: float, ratio: int = 1) -> None:
        super().__init__(temperature)
        require_above_zero("nce", ratio=ratio)
        self.ratio = ratio
        self.register_buffer("mean", mean.detach().clone())
        factor, failed = torch.linalg.cholesky_ex(covariance)
        if int(failed):
            raise InputError("nce: the noise's covariance is singular; the data has a constant combination")
        self.register_buffer("factor", factor)
        self.log_normaliser = nn.Parameter(torch.zeros((), dtype=mean.dtype))

    @classmethod
    def fitted(
        cls, data: Tensor, *, temperature: float, ratio: int = 1, diagonal: bool = False
    ) -> NoiseContrast:
        """With noise of the data's mean and covariance, or variances only.

        Arguments:
            data: points, (n, dim).
            temperature: T.
            ratio: ν.
            diagonal: whether the noise's dimensions are independent.
        """
        covariance = torch.cov(data.T).reshape(data.shape[1], data.shape[1])
        if diagonal:
            covariance = covariance.diagonal().diag()
        return cls(data.mean(0), covariance, temperature=temperature, ratio=ratio)

    def start(self, energy: Energy, generator: torch.Generator) -> None:
        """Sets c to the importance-sampling estimate of log ∫ exp(-E/T) by the noise.

        From 0 an optimiser of small steps would spend most of a run on this one number.
        """
        with torch.no_grad():
            noise = self.draw(START_DRAWS, generator)
            ratio = evaluate(energy, noise) / -self.temperature - self.log_noise(noise)
            self.log_normaliser.copy_(ratio.logsumexp(0) - math.log(START_DRAWS))

    def companions(self) -> Sequence[nn.Parameter]:
        """c."""
        return (self.log_normaliser,)

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """n points of noise, (n, dim)."""
        shape = (n, len(self.mean))
        normal = torch.randn(shape, generator=generator, dtype=self.mean.dtype, device=self.mean.device)
        return self.mean + normal @ self.factor.T

    def log_noise(self, x: Tensor) -> Tensor:
        """log p_n(x), (n,)."""
        z: Tensor = torch.linalg.solve_triangular(self.factor, (x - self.mean).T, upper=False)
        volume = self.factor.diagonal().log().sum() + 0.5 * len(self.mean) * math.log(2 * math.pi)
        return -0.5 * z.square().sum(0) - volume

    def loss(
        self, energy: Energy, data: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, float]]:
        """The loss, the share of points told apart rightly, and c."""
        noise = self.draw(self.ratio * len(data), generator)
        points = torch.cat([data, noise])
        log_model = evaluate(energy_of_weights(energy), points) / -self.temperature - self.log_normaliser
        odds = log_model - self.log_noise(points) - math.log(self.ratio)
        return _contrasted(odds, len(data), self.ratio, self.log_normaliser)


class ConditionalNoiseContrast(DirectObjective):
    """Conditional noise-contrastive estimation (Ceylan & Gutmann 2018): data against its own noised copy.

        2 ⟨log(1 + exp(E(x)/T - E(x + σε)/T))⟩,   ε ~ N(0, I)

    The noise is symmetric and the normaliser cancels. For small σ it is score matching; for any σ pairs
    that lie further apart than σ are not compared.

    Arguments:
        temperature: T.
        noise_sd: σ, in units of the data.
        ratio: noised copies of each data point.

    Example:
        >>> import torch
        >>> objective = ConditionalNoiseContrast(temperature=1.0, noise_sd=0.1)
        >>> loss, _ = objective.loss(lambda x: 0 * x.sum(1), torch.zeros(4, 2), torch.Generator())
        >>> round(loss.item(), 4)  # a flat energy cannot tell: 2 log 2
        1.3863
    """

    def __init__(self, temperature: float, noise_sd: float, *, ratio: int = 1) -> None:
        super().__init__(temperature)
        require_above_zero("cnce", noise_sd=noise_sd, ratio=ratio)
        self.noise_sd, self.ratio = noise_sd, ratio

    def loss(
        self, energy: Energy, data: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, float]]:
        """The loss, and the share of pairs told apart rightly."""
        copies = data.repeat(self.ratio, *[1] * (data.dim() - 1))
        noise = torch.randn(copies.shape, generator=generator, dtype=data.dtype, device=data.device)
        points = torch.cat([data, copies + self.noise_sd * noise])
        log_model = evaluate(energy_of_weights(energy), points) / -self.temperature
        lead = log_model[: len(data)].repeat(self.ratio) - log_model[len(data) :]
        return 2 * F.softplus(-lead).mean(), {"accuracy": (lead > 0).double().mean().item()}


@runtime_checkable
class Corrected(Protocol):
    """An energy that is a correction of a law that is known: E(x) = correction(x) - T log q(x)."""

    def correction(self, x: Tensor) -> Tensor:
        """The correction, (n,)."""
        ...


class BaseContrast(DirectObjective):
    """Noise-contrastive estimation of a corrected law, whose noise is the law q itself.

    For E(x) = f(x) - T log q(x) and noise from q the log-odds are G(x) = -f(x)/T - c - log ν: q cancels, so
    that it need not be computed, and data and noise overlap as well as q fits. The loss is that of
    `NoiseContrast`; c starts at 0, right for f = 0.

    Arguments:
        draw: n points of q from a generator.
        temperature: T.
        ratio: ν, points of noise for each data point.

    Example:
        >>> import torch
        >>> objective = BaseContrast(lambda n, stream: torch.randn(n, 2, generator=stream), temperature=1.0)
        >>> len(objective.companions())
        1
    """

    def __init__(
        self, draw: Callable[[int, torch.Generator], Tensor], *, temperature: float, ratio: int = 1
    ) -> None:
        super().__init__(temperature)
        require_above_zero("nce", ratio=ratio)
        self.ratio = ratio
        self._draw = draw
        self.log_normaliser = nn.Parameter(torch.zeros(()))

    def companions(self) -> Sequence[nn.Parameter]:
        """c."""
        return (self.log_normaliser,)

    def loss(
        self, energy: Energy, data: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, float]]:
        """The loss, the share of points told apart rightly, and c."""
        if not isinstance(energy, Corrected):
            raise InputError("nce against a base needs an energy that corrects one (MixtureFactor)")
        points = torch.cat([data, self._draw(self.ratio * len(data), generator).to(data.dtype)])
        odds = energy.correction(points) / -self.temperature - self.log_normaliser - math.log(self.ratio)
        return _contrasted(odds, len(data), self.ratio, self.log_normaliser)


def _contrasted(odds: Tensor, n: int, ratio: int, log_normaliser: Tensor) -> tuple[Tensor, dict[str, float]]:
    """The loss of log-odds, of n data points and then of noise, and what is told of it."""
    of_data, of_noise = odds[:n], odds[n:]
    loss = F.softplus(-of_data).mean() + ratio * F.softplus(of_noise).mean()
    right = 0.5 * ((of_data > 0).double().mean() + (of_noise < 0).double().mean())
    return loss, {"accuracy": right.item(), "log_normaliser": log_normaliser.item()}
