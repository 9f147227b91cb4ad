"""Score matching: exact, sliced and denoising. The normaliser drops out; so does the mass of far modes.

Each makes the Fisher divergence E ‖s_data - s‖² small, s = -∇E/T, without knowing the data's score
s_data. Two modes with nothing between them have the same scores whatever their relative mass, so none
of these can learn that mass.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from burnin.core import Energy
from burnin.objectives.direct import DirectObjective, require_above_zero
from burnin.stein import Trace, score_of, value_and_trace

Probes = Literal["gaussian", "rademacher"]


def score_matching_terms(
    energy: Energy,
    x: Tensor,
    temperature: float,
    *,
    trace: Trace = "exact",
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """½‖s(x)‖² and Tr ∇s(x) of each point, whose sum is the loss (stein, equation 16; Hyvärinen 2005).

    Arguments:
        energy: E, twice differentiable.
        x: points, (n, ...).
        temperature: T.
        trace: "exact" takes a pass back for each dimension; the others estimate it by one probe εᵀ ∇s ε,
            which is sliced score matching (Song et al. 2019).
        generator: draws the probes.

    Example:
        >>> energy = lambda x: 0.5 * 3.0 * x.square().sum(1)  # a Gaussian of precision 3
        >>> [part.item() for part in score_matching_terms(energy, torch.ones(1, 2), 1.0)]
        [9.0, -6.0]
    """
    score = score_of(energy, temperature, create_graph=True)
    value, divergence = value_and_trace(score, x, trace=trace, generator=generator)
    return 0.5 * value.square().flatten(1).sum(1), divergence


class ScoreMatching(DirectObjective):
    """⟨½‖s‖² + Tr ∇s⟩ over the data, with the exact trace or a random slice of it (stein, equation 16).

    Its mean is ½ E ‖s - s_data‖² less a constant of the data. The exact trace costs as many passes as
    there are dimensions; a slice costs one and is unbiased.

    Arguments:
        temperature: T.
        trace: "exact", or the kind of probes: "gaussian" as in the paper, "rademacher" with less variance.

    Example:
        >>> objective, energy = ScoreMatching(temperature=1.0), lambda x: 0.5 * x.square().sum(1)
        >>> loss, numbers = objective.loss(energy, torch.ones(4, 2), torch.Generator())
        >>> loss.item(), numbers["trace"]
        (-1.0, -2.0)
    """

    def __init__(self, temperature: float, trace: Trace = "exact") -> None:
        super().__init__(temperature)
        self.trace: Trace = trace

    def loss(
        self, energy: Energy, data: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, float]]:
        """The loss, the score's root mean square over the batch, and the mean trace."""
        half_square, trace = score_matching_terms(
            energy, data, self.temperature, trace=self.trace, generator=generator
        )
        mean, slope = half_square.mean(), trace.mean()
        return mean + slope, {"score": (2 * mean.item()) ** 0.5, "trace": slope.item()}


class DenoisingScoreMatching(DirectObjective):
    """⟨½‖s(x + σε) + ε/σ‖²⟩, ε ~ N(0, I): the score of the data with noise added (Vincent 2011).

    No second derivative is needed. What is learned is the density of noised data, p * N(0, σ²): a small σ
    is near the data and has a large variance.

    Arguments:
        temperature: T.
        noise_sd: σ, in units of the data.

    Example:
        >>> objective = DenoisingScoreMatching(temperature=1.0, noise_sd=1.0)
        >>> generator = torch.Generator().manual_seed(0)
        >>> loss, _ = objective.loss(lambda x: 0.5 * x.square().sum(1), torch.zeros(4, 2), generator)
        >>> loss.item()  # x = 0: the score -ε of N(0, 1) is the noised data's own
        0.0
    """

    def __init__(self, temperature: float, noise_sd: float) -> None:
        super().__init__(temperature)
        require_above_zero("denoising-score-matching", noise_sd=noise_sd)
        self.noise_sd = noise_sd

    def loss(
        self, energy: Energy, data: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, float]]:
        """The loss, and the score's root mean square at the noised points."""
        noise = torch.randn(data.shape, generator=generator, dtype=data.dtype, device=data.device)
        noised = data + self.noise_sd * noise
        score = score_of(energy, self.temperature, create_graph=True)(noised)
        loss = 0.5 * (score + noise / self.noise_sd).square().flatten(1).sum(1).mean()
        return loss, {"score": score.detach().square().flatten(1).sum(1).mean().sqrt().item()}
