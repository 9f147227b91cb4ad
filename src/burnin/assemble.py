"""From a configuration to the objects that train, and from a run's folder to the trained model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from burnin.assemble_direct import build_direct_objective, build_optimizer
from burnin.config import in_folder, read_run_config
from burnin.core import Density, InputError, Sampler, Start
from burnin.data import (
    AbsentData,
    EncodedRows,
    LinearICA,
    NoisyDensity,
    Pictures,
    clean,
    held_out,
    load_table,
    make_density,
)
from burnin.energies import (
    MLP,
    ConvNet,
    FourierFeatures,
    GaussianBernoulliRBM,
    GaussianFactor,
    ICAEnergy,
    MixtureFactor,
    Standardised,
)
from burnin.evaluation.bridge import MixtureBase
from burnin.evaluation.model import Chain, Model
from burnin.objectives import contrast
from burnin.rng import Streams
from burnin.samplers import (
    HMC,
    MALA,
    Annealed,
    Engine,
    Knots,
    Langevin,
    OverEnergyNorm,
    OverGradientNorm,
    TargetAcceptance,
)
from burnin.settings import FROM_NOISE, Config, DataSettings, ModelSettings, SamplerSettings, SchemeSettings
from burnin.starts import Bank, FromData, FromNoise
from burnin.training import Arm, FisherScale, GuardSettings, Parts, Trainer, load_checkpoint
from burnin.training.schedules import Ramp, rate_factor

MOMENT_SAMPLES = 20_000
DEPTH = 3


def build_data(config: Config) -> Density:
    """The data that the configuration names, with its noise: what is learned and what is judged on.

    Noise also gives a constant column some variance.
    """
    settings = config.data
    sources = (settings.name, settings.file, settings.rows, settings.pictures)
    if sum(given is not None for given in sources) != 1:
        raise InputError("data needs either a name (data.name) or a file (data.file)")
    data: Density
    if settings.name == "ica":
        if settings.dim is None:
            raise InputError("data.dim is missing: linear ICA needs to know how many sources there are")
        matrix = Streams(config.run.seed)["mixing"]
        data = LinearICA.random(settings.dim, settings.source, matrix, gaussian=settings.gaussian)
    elif settings.dim is not None:
        raise InputError("data.dim is for the name ica; other data has its own number of dimensions")
    elif settings.rows is not None:
        data = EncodedRows.load(Path(settings.rows))
    elif settings.pictures is not None:
        data = Pictures.load(Path(settings.pictures))
    elif settings.file is not None:
        data = load_table(Path(settings.file))
    else:
        data = make_density(settings.name or "")
    return _noised(config, _pictured(settings, data))


def _pictured(settings: DataSettings, data: Density) -> Density:
    """Pictures at the size and in the space that the settings say; other data as it is."""
    if settings.side is None and not settings.logit:
        return data
    if not isinstance(data, Pictures):
        key = "data.logit" if settings.side is None else "data.side"
        raise InputError(f"{key} is for pictures; this data has none: leave it out")
    if settings.side is not None:
        data = data.resized(settings.side)
    return data.in_logits() if settings.logit else data


def _noised(config: Config, data: Density) -> Density:
    return NoisyDensity(data, config.data.noise) if config.data.noise > 0 else data


def build_energy(
    config: Config,
    data: Density,
    mean: Tensor,
    std: Tensor,
    generator: torch.Generator,
    base: MixtureBase | None = None,
) -> nn.Module:
    """The network, its view of the coordinates, its Gaussian factor or its base; or linear ICA, or an RBM."""
    model, dim = config.model, data.dim
    if base is not None and (model.kind in ("ica", "rbm") or model.gaussian_factor != "none"):
        raise InputError("model.base is for networks without a gaussian_factor")
    if model.kind in ("ica", "rbm") and (model.gaussian_factor != "none" or model.frequencies):
        raise InputError(f"model.kind {model.kind!r} takes no gaussian_factor and no frequencies")
    if model.kind == "ica":
        return ICAEnergy.random(dim, model.source, generator, temperature=model.temperature)
    if model.kind == "rbm":
        # Small weights, so that it starts near the Gaussian around the data's mean.
        weights = torch.randn(dim, model.hidden, generator=generator) / model.hidden
        biases = mean, torch.zeros(model.hidden)
        return GaussianBernoulliRBM(weights, *biases, temperature=model.temperature, learned=True)
    if model.kind == "convnet":
        net = _build_convnet(model, data, generator)
    else:
        net = _build_mlp(model, dim, generator)
    if model.standardise:
        net = Standardised(net, mean, std)
    if model.gaussian_factor != "none":
        learned = model.gaussian_factor == "learned"
        net = GaussianFactor(net, mean, std, temperature=model.temperature, learned=learned)
    if base is not None:
        parts = (part.to(mean.dtype) for part in (base.log_weights, base.means, base.factors))
        net = MixtureFactor(net, *parts, temperature=model.temperature)
    return net


def _build_mlp(model: ModelSettings, dim: int, generator: torch.Generator) -> nn.Module:
    if isinstance(model.width, list) and model.depth is not None:
        raise InputError("model.width lists every layer; leave model.depth out")
    net = MLP(
        FourierFeatures.size(dim, model.frequencies) if model.frequencies else dim,
        width=model.width if isinstance(model.width, list) else [model.width] * (model.depth or DEPTH),
        generator=generator,
        activation=model.activation,
        first_scale=model.first_scale,
    )
    return FourierFeatures(net, model.frequencies) if model.frequencies else net


def _build_convnet(model: ModelSettings, data: Density, generator: torch.Generator) -> nn.Module:
    pictures = clean(data)
    if not isinstance(pictures, Pictures | AbsentData) or pictures.shape is None:
        raise InputError('model.kind = "convnet" is for pictures; for this data it must be another')
    if isinstance(model.width, list) or model.depth is not None or model.frequencies:
        raise InputError("a convnet takes model.width, a number; leave out model.depth and model.frequencies")
    return ConvNet(pictures.shape, width=model.width, generator=generator, activation=model.activation)


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


def build_engine(
    config: Config, *, threads: int | None = None, say: Callable[[str], None] | None = None
) -> Engine:
    """How the configured chains are computed."""
    return Engine(config.run.compile, threads=threads, say=say)


def build_base(config: Config) -> MixtureBase | None:
    """The mixture that the energy corrects, where the configuration names one."""
    return None if config.model.base is None else MixtureBase.load(Path(config.model.base))


def build_trainer(
    config: Config,
    engine: Engine | None = None,
    data: Density | None = None,
    base: MixtureBase | None = None,
) -> Trainer:
    """Everything of a training run, at its start; `data` and `base` where they are in memory already."""
    streams = Streams(config.run.seed)
    base = build_base(config) if base is None else base
    data = build_data(config) if data is None else _noised(config, data)
    moments = data.sample(MOMENT_SAMPLES, streams["moments"])
    mean, std = moments.mean(0), moments.std(0)
    constant = [index + 1 for index in (moments == moments[0]).all(0).nonzero().flatten().tolist()]
    if constant:
        raise InputError(f"the data's columns {constant} are constant (no variance); leave them out")
    energy = build_energy(config, data, mean, std, streams["weights"], base)
    temperature = config.model.temperature
    scale = None
    if config.sampler.scale == "fisher":
        scale = FisherScale(
            std.square() / temperature,
            temperature,
            decay=config.sampler.scale_decay,
            floor=config.sampler.scale_floor,
        )
    direct = None
    if config.without_chains:
        direct = build_direct_objective(config, energy, moments, streams, base)
    optimizer = build_optimizer(config, energy, direct)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        rate_factor(
            config.run.updates,
            **config.optimizer.model_dump(include={"decay", "decay_from", "final_rate", "warmup"}),
        ),
    )
    guard = None
    if config.guard.enabled:
        guard = GuardSettings(**config.guard.model_dump(exclude={"enabled"}))
    parts = Parts(
        energy=energy,
        data=data,
        arms=build_arms(config, data.dim, streams["bank"]) if direct is None else [],
        optimizer=optimizer,
        scheduler=scheduler,
        objective=direct or partial(contrast, temperature=temperature),
        scale=scale,
        average=config.model.average,
        clip_norm=config.optimizer.clip_norm,
        guard=guard,
        engine=engine or build_engine(config),
    )
    return Trainer(parts, batch_size=config.run.batch_size, streams=streams)


def build_arms(config: Config, dim: int, generator: torch.Generator) -> list[Arm]:
    """The arms of the configured scheme."""
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
    bank = Bank(scheme.bank_size, (dim,), noise, generator, refresh=refresh)
    return [arm("bank", bank, plain, 1.0)]


def build_noise(config: Config) -> FromNoise:
    """The noise that chains start from."""
    return FromNoise(config.noise.kind, _numbers(config.noise.scale), _numbers(config.noise.shift))


def _numbers(value: float | list[float]) -> float | tuple[float, ...]:
    return tuple(value) if isinstance(value, list) else value


def _beta(scheme: SchemeSettings) -> float | Ramp:
    return Ramp(tuple(scheme.beta)) if isinstance(scheme.beta, list) else scheme.beta


def load_model(folder: Path, engine: Engine | None = None) -> Model:
    """The model that a run's newest checkpoint holds."""
    config = in_folder(read_run_config(folder), folder)
    base = build_base(config)
    trainer = build_trainer(config, engine, base=base)
    snapshot = load_checkpoint(folder)
    trainer.restore(snapshot)
    return model_of(trainer, config, base)


def model_of(trainer: Trainer, config: Config, base: MixtureBase | None = None) -> Model:
    """The model of a trainer as it is now, with the mixture that it corrects where there is one."""
    scale = trainer.parts.scale.value() if trainer.parts.scale is not None else None
    data = held_out(trainer.parts.data)
    return finish_model(config, trainer.model, data, scale, trainer.step, trainer.engine, base)


def finish_model(
    config: Config,
    energy: nn.Module,
    data: Density,
    scale: Tensor | None,
    num_updates: int,
    engine: Engine,
    base: MixtureBase | None = None,
) -> Model:
    """A trained energy with the chains that its configuration names."""
    from_noise, at_test, temperature = config.noise_sampler(), config.test_sampler(), config.model.temperature
    return Model(
        energy=energy.eval().requires_grad_(False),
        temperature=temperature,
        data=data,
        noise=build_noise(config),
        plain=Chain(build_sampler(config.sampler, temperature), config.sampler.num_steps),
        annealed=Chain(build_sampler(from_noise, temperature), from_noise.num_steps),
        trained_from_noise=config.scheme.name in FROM_NOISE or config.without_chains,
        at_test=None if at_test is None else Chain(build_sampler(at_test, temperature), at_test.num_steps),
        scale=scale,
        scheme=f"none (objective {config.objective.name})" if config.without_chains else config.scheme.name,
        num_updates=num_updates,
        engine=engine,
        base=base,
    )


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
