"""From a configuration to its objective without chains, and to the optimiser that learns with it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from burnin.checked import nearest
from burnin.core import Energy, InputError
from burnin.evaluation.bridge import MixtureBase
from burnin.objectives import (
    BaseContrast,
    ConditionalNoiseContrast,
    DenoisingScoreMatching,
    DirectObjective,
    HasNormaliser,
    LearnedStein,
    Likelihood,
    NoiseContrast,
    ScoreMatching,
)
from burnin.rng import Streams
from burnin.settings import Config
from burnin.stein import mlp_critic


def build_direct_objective(
    config: Config, energy: Energy, data: Tensor, streams: Streams, base: MixtureBase | None = None
) -> DirectObjective:
    """The objective that the configuration names, at its start.

    Arguments:
        config: its `objective` is not the contrast.
        energy: what is to be trained; nce starts its constant from it.
        data: points that nce fits its noise to, (n, dim).
        streams: "critic" draws the critic's first weights, "objective" the noise of nce's start.
        base: the mixture that the energy corrects: nce takes it for its noise.
    """
    settings, temperature = config.objective, config.model.temperature
    if settings.name == "score-matching":
        return ScoreMatching(temperature)
    if settings.name == "sliced-score-matching":
        return ScoreMatching(temperature, settings.probes)
    if settings.name == "likelihood":
        if not isinstance(energy, HasNormaliser):
            raise InputError(
                f"the likelihood of model.kind {config.model.kind!r} is not known, for it has no normaliser "
                "in closed form; choose another objective.name, or model.kind ica"
            )
        return Likelihood(temperature)
    if settings.name == "nce" and base is not None:
        return BaseContrast(base.sample, temperature=temperature, ratio=settings.noise_ratio)
    if settings.name == "nce":
        noise = NoiseContrast.fitted(
            data, temperature=temperature, ratio=settings.noise_ratio, diagonal=settings.noise_diagonal
        )
        noise.start(energy, streams["objective"])
        return noise
    if settings.name == "lsd":
        critic = mlp_critic(
            data.shape[1],
            settings.critic_width,
            settings.critic_layers,
            generator=streams["critic"],
            activation=settings.critic_activation,
            centre=data.mean(0) if settings.critic_standardise else None,
            spread=data.std(0) if settings.critic_standardise else None,
        )
        return LearnedStein(
            critic,
            temperature=temperature,
            lam=settings.lam,
            critic_steps=settings.critic_steps,
            learning_rate=settings.critic_rate or config.optimizer.learning_rate,
            betas=settings.critic_betas,
            trace=settings.trace,
        )
    assert settings.noise_sd is not None, "the configuration was checked"
    if settings.name == "cnce":
        return ConditionalNoiseContrast(temperature, settings.noise_sd, ratio=settings.noise_ratio)
    return DenoisingScoreMatching(temperature, settings.noise_sd)


def build_optimizer(
    config: Config, energy: nn.Module, direct: DirectObjective | None = None
) -> torch.optim.Optimizer:
    """The optimiser of the energy, and in a second group of what the objective learns along with it."""
    settings = config.optimizer
    kinds: dict[str, Any] = {
        name: kind
        for name, kind in vars(torch.optim).items()
        if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer) and name != "Optimizer"
    }
    if settings.name not in kinds:
        hint = nearest(settings.name, sorted(kinds))
        raise InputError(f"torch.optim has no optimiser {settings.name!r}{hint}")
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.options.items()}
    trained: Any = energy.parameters()
    if direct is not None and direct.companions():
        rate = config.objective.normaliser_rate * settings.learning_rate
        trained = [{"params": list(trained)}, {"params": list(direct.companions()), "lr": rate}]
    try:
        optimizer: torch.optim.Optimizer = kinds[settings.name](trained, lr=settings.learning_rate, **options)
        return optimizer
    except (TypeError, ValueError) as error:
        raise InputError(f"the optimiser {settings.name} does not take these options: {error}") from error
