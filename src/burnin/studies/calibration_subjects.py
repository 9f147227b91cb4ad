"""What `burnin reproduce calibration` tests: densities with exact draws, and samplers of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from burnin.core import Sampler
from burnin.data import Funnel, Gaussian, GaussianMixture
from burnin.energies import FromLogProb, GaussianBernoulliRBM
from burnin.rng import Streams
from burnin.samplers import HMC, MALA, Annealed, Engine, Knots, Langevin, run

T = 0.5
"""Temperature of every target: not 1, so that one that is forgotten shows."""
Target = Literal["gaussian", "mixture", "funnel", "machine", "wide-machine", "modes"]
Chain = Literal["langevin", "langevin-coarse", "mala", "hmc", "gibbs"]
Population = Literal["annealed-mala", "annealed-hmc", "cooled-mala"]
HEAT = Knots(((40, 16.0), (140, 1.0)))
"""Forty steps at sixteen times the temperature, then a hundred of cooling."""


@dataclass(frozen=True)
class Known:
    """A density with exact draws, its energy at the temperature T, and where chains of it start.

    Attributes:
        draw: n independent exact draws.
        energy: E, whose density at T it is.
        spread: standard deviation of the noise that chains start from.
        dim: number of dimensions.
        scale: factor of the step in each dimension; None for none.
        machine: where it is one, for its Gibbs chains.
    """

    draw: Callable[[int, torch.Generator], Tensor]
    energy: Callable[[Tensor], Tensor]
    spread: float
    dim: int
    scale: Tensor | None = None
    machine: GaussianBernoulliRBM | None = None


def known(target: Target) -> Known:
    """A target, always the same."""
    stream = Streams(0)["calibration"]
    if target in ("machine", "wide-machine"):
        visible, hidden = (6, 4) if target == "machine" else (4, 6)
        return _machine(visible, hidden, stream)
    densities: dict[str, Callable[[], Gaussian | GaussianMixture | Funnel]] = {
        "gaussian": lambda: Gaussian.conditioned(10, 10.0, stream),
        "mixture": lambda: GaussianMixture(((-1.5, 0.0), (1.5, 0.5)), (1.0, 0.6), (2, 1)),
        "funnel": lambda: Funnel(5),
        "modes": lambda: GaussianMixture(((-4.0, 0.0), (4.0, 1.0)), (0.5, 0.5), (1, 4)),
    }
    density = densities[target]()
    return Known(
        lambda n, generator: density.sample(n, generator).double(),
        FromLogProb(density.log_prob, T),
        spread=3.0 if target == "modes" else 2.0,
        dim=density.dim,
        # The law stays the same: a scale that were only half applied would change it.
        scale=torch.linspace(0.5, 1.5, 10, dtype=torch.float64) if target == "gaussian" else None,
    )


def _machine(visible: int, hidden: int, stream: torch.Generator) -> Known:
    one = GaussianBernoulliRBM.random(visible, hidden, stream, temperature=T).double()

    def draw(n: int, generator: torch.Generator) -> Tensor:
        return exact_draws(one, n, generator)

    return Known(draw, one, spread=2.0, dim=visible, machine=one)


def exact_draws(machine: GaussianBernoulliRBM, n: int, generator: torch.Generator) -> Tensor:
    """Independent draws without a chain: the hidden units by their own law, all states of which are listed.

    P(h) ∝ exp(cᵀh + ½‖b + κ B h‖²), and x given h is N(b + κ B h, I).

    Example:
        >>> machine = GaussianBernoulliRBM.random(3, 2, torch.Generator().manual_seed(0))
        >>> exact_draws(machine, 5, torch.Generator().manual_seed(0)).shape
        torch.Size([5, 3])
    """
    weights, hidden = machine.weights, machine.weights.shape[-1]
    states = torch.cartesian_prod(*[weights.new_tensor([-1.0, 1.0])] * hidden).reshape(-1, hidden)
    centres = machine.visible_bias + machine.coupling * states @ weights.mT
    law = torch.softmax(states @ machine.hidden_bias + 0.5 * centres.square().sum(1), 0)
    chosen = torch.multinomial(law, n, replacement=True, generator=generator)
    return centres[chosen] + torch.randn(n, machine.dim, generator=generator, dtype=weights.dtype)


def sampler_of(chain: Chain | Population, target: Target) -> Sampler:
    """The sampler by its name, with a step that suits the target: about the target's narrowest width."""
    width = {"gaussian": 0.3, "mixture": 0.6, "funnel": 0.5, "modes": 0.5}[target]
    mala, hmc = MALA(width**2 / T, T), HMC(0.8 * width / T**0.5, 5, T)
    samplers: dict[str, Sampler] = {
        "mala": mala,
        "hmc": hmc,
        "langevin": Langevin(0.05 * width**2 / T, T),
        "langevin-coarse": Langevin(width**2 / T, T),
        "annealed-mala": Annealed(mala, HEAT, resample_below=0.5),
        "annealed-hmc": Annealed(HMC(hmc.step_size, 2, T), HEAT, resample_below=0.5),
        "cooled-mala": Annealed(mala, HEAT, resample_below=None),
    }
    return samplers[chain]


def walk(
    chain: Chain | Population,
    target: Target,
    x: Tensor,
    generator: torch.Generator,
    *,
    records: int,
    thin: int,
) -> tuple[Tensor, float]:
    """Positions after every `thin` steps from x, (records, n, dim), and the mean acceptance."""
    law = known(target)
    if chain == "gibbs":
        assert law.machine is not None, target
        kept = []
        for _ in range(records):
            x = law.machine.gibbs(x, thin, generator)
            kept.append(x)
        return torch.stack(kept), 1.0
    sampler = sampler_of(chain, target)
    state = sampler.init(law.energy, x, scale=law.scale)
    result = run(
        sampler,
        law.energy,
        state,
        num_steps=records * thin,
        generator=generator,
        keep_every=thin,
        engine=Engine("never"),
    )
    assert result.kept is not None
    return result.kept, result.acceptance


STATISTICS: dict[str, str] = {"first": "x₁", "product": "x₁x₂", "energy": "E"}
"""What is ranked, in words."""


def statistics_of(x: Tensor, energy: Callable[[Tensor], Tensor]) -> dict[str, Tensor]:
    """x₁, x₁x₂ and E of every point of (..., dim)."""
    with torch.no_grad():
        flat = x.reshape(-1, x.shape[-1])
        return {
            "first": x[..., 0],
            "product": x[..., 0] * x[..., 1],
            "energy": energy(flat).reshape(x.shape[:-1]),
        }
