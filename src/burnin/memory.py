"""What a configuration will take in memory, told before it is taken: a recipe may ask for anything."""

from __future__ import annotations

from itertools import pairwise

import torch

from burnin.energies import FourierFeatures
from burnin.energies.convnet import feature_maps
from burnin.limits import require_room
from burnin.settings import Config

DEPTH = 3
"""Layers of a perceptron, where the configuration does not say."""
MOMENT_SAMPLES = 20_000
"""Draws of the data that its mean and its standard deviations are taken from."""
COPIES = 4
"""Of the weights: themselves, their gradients and Adam's two moments."""
KERNEL = 16
"""Numbers of a convolution's kernel, at most."""


def require_memory(config: Config, dim: int, shape: tuple[int, int, int] | None = None) -> None:
    """Raises InputError when training or judging would take more memory than is allowed, naming the setting.

    Arguments:
        config: what is asked for.
        dim: numbers in a row of the data.
        shape: (channels, height, width), where a row is a picture.
    """
    run, study, sampler = config.run, config.study, config.sampler
    rows = {
        "the data's columns": MOMENT_SAMPLES,
        "run.batch_size": run.batch_size * (1 + config.objective.noise_ratio),
        "scheme.bank_size": config.scheme.bank_size if config.scheme.name in ("persistent", "refresh") else 0,
        "sampler.num_chains": sampler.num_chains or 0,
        "study.samples": study.samples,
        "study.long_chains": study.long_chains,
        "study.data_chains": study.data_chains,
        "study.likelihood_particles": study.likelihood_particles,
    }
    numbers = {what: count * dim for what, count in rows.items()}
    numbers["study.grid_points"] = study.grid_points**2
    numbers |= _network(config, dim, shape)
    each = torch.get_default_dtype().itemsize
    for what, count in numbers.items():
        require_room(each * count, f"{what}: with {dim} columns, it")


def widths_of(config: Config) -> list[int]:
    """The layers of a perceptron."""
    model = config.model
    return list(model.width) if isinstance(model.width, list) else [model.width] * (model.depth or DEPTH)


def _network(config: Config, dim: int, shape: tuple[int, int, int] | None) -> dict[str, int]:
    """Numbers of the weights and of a batch's activations, by the setting that decides them."""
    model, objective = config.model, config.objective
    critic = objective.critic_width * (dim + objective.critic_width * objective.critic_layers)
    found = {"objective.critic_width": COPIES * critic}
    if model.kind == "ica":
        return found | {"model.kind": COPIES * dim * dim}
    if model.kind == "rbm":
        return found | {"model.hidden": COPIES * dim * model.hidden}
    if model.kind == "convnet" and shape is not None and isinstance(model.width, int):
        maps = [shape, *feature_maps(shape, model.width)]
        weights = sum(KERNEL * before[0] * after[0] + after[0] ** 2 for before, after in pairwise(maps))
        places = sum(channels * height * width for channels, height, width in maps)
        return found | {"model.width": COPIES * weights + config.run.batch_size * places}
    if model.kind == "wide-resnet" and shape is not None and isinstance(model.width, int):
        blocks = (model.depth or DEPTH) // 6 + 1
        stages = [16 * model.width * 2**stage for stage in range(3)]
        weights = sum(2 * 9 * blocks * channels**2 for channels in stages)
        places = sum(2 * blocks * channels * shape[1] * shape[2] // 4**i for i, channels in enumerate(stages))
        return found | {"model.width": COPIES * weights + config.run.batch_size * places}
    widths = widths_of(config)
    first = FourierFeatures.size(dim, model.frequencies) if model.frequencies else dim
    weights = sum(before * after for before, after in pairwise([first, *widths]))
    return found | {"model.width": COPIES * weights + config.run.batch_size * (first + sum(widths))}
