"""From a configuration to the objects that train, and from a run's folder to the trained model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from burnin.assemble_chains import build_arms, build_noise, build_sampler
from burnin.assemble_data import build_data, build_energy, noised, require_memory_for
from burnin.assemble_direct import build_direct_objective, build_optimizer
from burnin.config import in_folder, read_run_config
from burnin.core import Density, InputError
from burnin.data import (
    held_out,
)
from burnin.data.labelled import labelled_draws
from burnin.energies import joint_of
from burnin.evaluation.bridge import MixtureBase
from burnin.evaluation.model import Chain, Model
from burnin.limits import naming
from burnin.memory import MOMENT_SAMPLES
from burnin.objectives import Classification, contrast
from burnin.ranks import ALONE, Ranks
from burnin.rng import Streams
from burnin.samplers import (
    Engine,
)
from burnin.settings import FROM_NOISE, Config
from burnin.training import FisherScale, GuardSettings, Parts, Trainer, load_checkpoint
from burnin.training.frugal import Frugal
from burnin.training.schedules import rate_factor


def build_engine(
    config: Config, *, threads: int | None = None, say: Callable[[str], None] | None = None
) -> Engine:
    """How the configured chains are computed; those in pieces or in bfloat16 are not compiled."""
    if config.run.frugal and config.run.compile == "always":
        raise InputError("run.compile is always, but run.pieces and run.precision work on plain chains only")
    return Engine("never" if config.run.frugal else config.run.compile, threads=threads, say=say)


def build_base(config: Config) -> MixtureBase | None:
    """The mixture that the energy corrects, where the configuration names one."""
    return None if config.model.base is None else MixtureBase.load(Path(config.model.base))


def build_trainer(
    config: Config,
    engine: Engine | None = None,
    data: Density | None = None,
    base: MixtureBase | None = None,
    ranks: Ranks = ALONE,
) -> Trainer:
    """Everything of a training run, at its start; `data` and `base` where they are in memory already.

    `ranks` are the processes that train together, each with a trainer of its own.
    """
    streams = Streams(config.run.seed)
    base = build_base(config) if base is None else base
    data = build_data(config) if data is None else noised(config, data)
    require_memory_for(config, data)
    moments = data.sample(MOMENT_SAMPLES, streams["moments"])
    mean, std = moments.mean(0), moments.std(0)
    constant = [index + 1 for index in (moments == moments[0]).all(0).nonzero().flatten().tolist()]
    if constant:
        raise InputError(f"the data's columns {constant} are constant (no variance); leave them out")
    energy = build_energy(config, data, mean, std, streams["weights"], base)
    ranks.place(energy, averaged=config.model.average > 0)
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
            **config.optimizer.model_dump(
                include={"decay", "decay_from", "final_rate", "warmup", "rate_steps"}
            ),
        ),
    )
    guard = None
    if config.guard.enabled:
        guard = guard_settings(config)
    parts = Parts(
        energy=energy,
        data=data,
        arms=build_arms(config, data.dim, streams["bank"], ranks) if direct is None else [],
        optimizer=optimizer,
        scheduler=scheduler,
        objective=direct or partial(contrast, temperature=temperature, ranks=ranks),
        scale=scale,
        average=config.model.average,
        clip_norm=config.optimizer.clip_norm,
        guard=guard,
        engine=engine or build_engine(config),
        classification=_classification(config, energy, data, streams, ranks),
        ranks=ranks,
        frugal=Frugal(config.run.pieces, config.run.precision == "bf16") if config.run.frugal else None,
    )
    return Trainer(parts, batch_size=config.run.batch_size, streams=streams)


def guard_settings(config: Config) -> GuardSettings:
    """The guard's, enabled or not."""
    settings = config.guard.model_dump(exclude={"enabled", "beta", "remedy"})
    given = config.guard.remedy
    remedy = (given,) if isinstance(given, str) else tuple(given)
    if "beta" not in remedy:
        return GuardSettings(**settings, remedy=remedy)
    # f = -E/T: a β of T weights by exp(-E) itself, whatever T is.
    return GuardSettings(
        **settings, remedy=remedy, beta=config.guard.beta or min(0.1, config.model.temperature)
    )


def _classification(
    config: Config, energy: nn.Module, data: Density, streams: Streams, ranks: Ranks
) -> Classification | None:
    """What a joint energy learns from labels."""
    joint = config.joint
    if joint is None:
        return None
    return Classification(
        joint_of(energy).logits,
        labelled_draws(data, joint.classes, joint.labels, streams["known labels"]),
        joint.batch_size or config.run.batch_size,
        joint.weight,
        ranks,
    )


def load_model(folder: Path, engine: Engine | None = None) -> Model:
    """The model that a run's newest checkpoint holds."""
    config = in_folder(read_run_config(folder), folder)
    with naming(folder):
        base = build_base(config)
        trainer = build_trainer(config, engine, base=base)
        trainer.restore(load_checkpoint(folder))
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
