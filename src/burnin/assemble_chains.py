"""From a configuration to its chains: samplers, starts and the arms of a scheme."""

from __future__ import annotations

import torch

from burnin.core import InputError, Sampler, Start
from burnin.ranks import ALONE, Ranks
from burnin.samplers import (
    HMC,
    MALA,
    Annealed,
    Knots,
    Langevin,
    OverEnergyNorm,
    OverGradientNorm,
    TargetAcceptance,
)
from burnin.settings import Config, SamplerSettings, SchemeSettings
from burnin.starts import Bank, FromData, FromNoise
from burnin.training import Arm
from burnin.training.schedules import Ramp


def build_sampler(settings: SamplerSettings, temperature: float) -> Sampler:
    """The sampler that the settings describe."""
    inner: Langevin | MALA | HMC
    if settings.kind == "langevin":
        inner = Langevin(_step_size(settings), temperature)
    else:
        if not isinstance(settings.step_size, float):
            raise InputError(f"the step_size of {settings.kind} must be one number")
        adaptation = None
        if settings.target_acceptance is not None:
            adaptation = TargetAcceptance(settings.target_acceptance, until=settings.adapt_until)
        if settings.kind == "mala":
            inner = MALA(settings.step_size, temperature, adaptation)
        else:
            inner = HMC(settings.step_size, settings.num_leapfrog, temperature, adaptation)
    if settings.heat is None:
        return inner
    return Annealed(inner, _knots(settings.heat), settings.resample_below or None)


def build_arms(config: Config, dim: int, generator: torch.Generator, ranks: Ranks = ALONE) -> list[Arm]:
    """The arms of the configured scheme; of several processes, each holds its part of a bank."""
    scheme, temperature = config.scheme, config.model.temperature
    noise = build_noise(config)
    if scheme.name == "none":
        raise InputError(
            "scheme.name is none; chains need a start: data, noise, persistent, refresh or hybrid"
        )

    def arm(name: str, start: Start, settings: SamplerSettings, weight: float) -> Arm:
        if settings.num_chains is not None and settings.num_chains > config.run.batch_size:
            raise InputError(
                f"num_chains is {settings.num_chains} for a batch_size of {config.run.batch_size}; "
                "an arm has at most as many chains as there are data points in a batch"
            )
        sampler = build_sampler(settings, temperature)
        weighted = scheme.beta_on == "both" or name.startswith(scheme.beta_on)
        return Arm(
            name,
            start,
            sampler,
            settings.num_steps,
            weight,
            settings.num_chains,
            beta=_beta(scheme) if weighted else 0.0,
            variant=scheme.variant,
            pool="all" if scheme.pooled or config.more_samplers else None,
        )

    def arms(name: str, start: Start, settings: SamplerSettings) -> list[Arm]:
        """One arm, and one for each further sampler from the same start."""
        further = config.further_samplers()
        return [
            arm(name, start, settings, 1.0),
            *(arm(f"{name}{i}", start, more, 1.0) for i, more in enumerate(further, 2)),
        ]

    from_noise, plain = config.noise_sampler(), config.sampler
    if scheme.name == "data":
        return arms("data", FromData(), plain)
    if scheme.name == "noise":
        return arms("noise", noise, from_noise)
    if config.more_samplers:
        raise InputError(f"more_samplers go with the schemes data and noise, not with {scheme.name}")
    if scheme.name == "hybrid":
        if scheme.pooled and scheme.beta_on != "both":
            raise InputError("a pooled contrast has one beta: set scheme.beta_on to both")
        lam = 1.0 if scheme.pooled else scheme.lam
        return [arm("noise", noise, from_noise, 1.0), arm("data", FromData(), plain, lam)]
    if config.run.batch_size > scheme.bank_size:
        raise InputError(
            f"scheme.bank_size is {scheme.bank_size} for a batch_size of {config.run.batch_size}; "
            "a bank has at least as many chains as a batch"
        )
    refresh = scheme.refresh if scheme.name == "refresh" else 0.0
    bank = Bank(
        scheme.bank_size,
        (dim,),
        noise,
        generator,
        refresh=refresh,
        ranks=ranks,
        exchange=scheme.exchange,
    )
    return [arm("bank", bank, plain, 1.0)]


def build_noise(config: Config) -> FromNoise:
    """The noise that chains start from."""
    return FromNoise(config.noise.kind, _numbers(config.noise.scale), _numbers(config.noise.shift))


def _numbers(value: float | list[float]) -> float | tuple[float, ...]:
    return tuple(value) if isinstance(value, list) else value


def _beta(scheme: SchemeSettings) -> float | Ramp:
    return Ramp(tuple(scheme.beta)) if isinstance(scheme.beta, list) else scheme.beta


def _step_size(settings: SamplerSettings) -> float | Knots | OverGradientNorm | OverEnergyNorm:
    if settings.displacement is not None and settings.energy_norm is not None:
        raise InputError("sampler.displacement and sampler.energy_norm exclude each other; give one")
    if isinstance(settings.step_size, list):
        return _knots(settings.step_size)
    if settings.displacement is not None:
        return OverGradientNorm(settings.displacement, largest=settings.step_size)
    if settings.energy_norm is not None:
        return OverEnergyNorm(settings.energy_norm, largest=settings.step_size)
    return settings.step_size


def _knots(points: list[tuple[int, float]]) -> Knots:
    return Knots(tuple((int(iteration), float(value)) for iteration, value in points))
