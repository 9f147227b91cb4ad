"""From a configuration to its data and its energy at the start."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from burnin.core import Density, InputError, Report
from burnin.data import (
    AbsentData,
    EncodedRows,
    LinearICA,
    NoisyDensity,
    Pictures,
    clean,
    is_picture_name,
    load_pictures,
    load_table,
    make_density,
    require_files,
)
from burnin.data.folders import read_folder
from burnin.data.picture_sets import SETS
from burnin.energies import (
    MLP,
    ConvNet,
    FourierFeatures,
    GaussianBernoulliRBM,
    GaussianFactor,
    ICAEnergy,
    JointEnergy,
    MixtureFactor,
    RBMInUnits,
    Standardised,
    WideResNet,
)
from burnin.evaluation.bridge import MixtureBase
from burnin.memory import require_memory, widths_of
from burnin.rng import Streams
from burnin.settings import Config, DataSettings, ModelSettings

HELD_OUT = 0.1
"""The share of a folder's pictures that a model is judged on."""
CLASSES_HELD_OUT = 0.2
"""Likewise of the pictures of a joint energy, where they come in one part."""
LARGEST_PICTURE = 512
"""Pixels along a side of a folder's pictures."""


def build_data(config: Config) -> Density:
    """The data that the configuration names, with its noise: what is learned and what is judged on.

    Noise also gives a constant column some variance.
    """
    settings = config.data
    sources = (settings.name, settings.file, settings.rows, settings.pictures, settings.folder)
    if sum(given is not None for given in sources) != 1:
        raise InputError(
            "data needs either a name (data.name), or a file (data.file), or a folder (data.folder)"
        )
    data: Density
    if settings.name == "ica":
        if settings.dim is None:
            raise InputError("data.dim is missing: linear ICA needs to know how many sources there are")
        matrix = Streams(config.run.seed)["mixing"]
        ica = LinearICA.random(settings.dim, settings.source, matrix, gaussian=settings.gaussian)
        data = ica.whitened(matrix) if settings.whiten else ica
    elif settings.dim is not None or settings.whiten:
        raise InputError("data.dim and data.whiten are for the name ica; other data has its own dimensions")
    elif settings.rows is not None:
        data = EncodedRows.load(Path(settings.rows))
    elif settings.pictures is not None:
        data = Pictures.load(Path(settings.pictures))
    elif settings.file is not None:
        data = load_table(Path(settings.file))
    elif settings.folder is not None:
        data = _read_folder(Path(settings.folder), settings.side)
    elif settings.name is not None and is_picture_name(settings.name):
        data = load_pictures(settings.name, side=settings.side, labelled=config.joint is not None)
    else:
        data = make_density(settings.name or "")
    if config.joint is not None and isinstance(data, Pictures) and data.held_out is None:
        data = data.apart(CLASSES_HELD_OUT, seed=0)  # a classifier is judged on what it has not seen
    return noised(config, _pictured(settings, data))


def fetch_data(config: Config, report: Report) -> None:
    """Downloads the files of a named set of pictures where some are missing, telling how that goes."""
    name = config.data.name
    if name is not None and name in SETS:
        require_files(name, report=report)


def _read_folder(path: Path, side: int | None) -> Pictures:
    """A folder's pictures, a tenth of them held out: the same whatever the run's seed."""
    found = read_folder(path, side=side, largest=LARGEST_PICTURE)
    pictures = Pictures(found.pixels, low=0.0, high=1.0, labels=found.labels, classes=found.classes)
    return pictures.apart(HELD_OUT, seed=0)


def _pictured(settings: DataSettings, data: Density) -> Density:
    """Pictures as the settings say: their size, range or logits, flips; other data as it is."""
    given = {
        "data.side": settings.side is not None,
        "data.range": settings.range is not None,
        "data.logit": settings.logit,
        "data.flip": settings.flip,
    }
    if not any(given.values()):
        return data
    if not isinstance(data, Pictures):
        key = next(key for key, said in given.items() if said)
        raise InputError(f"{key} is for pictures; this data has none: leave it out")
    if settings.range is not None and settings.logit:
        raise InputError("data.logit puts pictures on all numbers; leave out data.range")
    if settings.side is not None:
        data = data.resized(settings.side)
    if settings.range is not None:
        data = data.in_range(*settings.range)
    if settings.flip:
        data = data.flipped()
    return data.in_logits() if settings.logit else data


def require_memory_for(config: Config, data: Density) -> None:
    """Raises InputError when what is configured would take more memory than is allowed of this data."""
    known = clean(data)
    require_memory(config, data.dim, known.shape if isinstance(known, Pictures | AbsentData) else None)


def noised(config: Config, data: Density) -> Density:
    """The data with the noise that is added at every use."""
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
    if base is not None and base.means.shape[1] != dim:
        raise InputError(f"the base has {base.means.shape[1]} columns, the data {dim}: one is of another run")
    if model.kind in ("ica", "rbm") and (model.gaussian_factor != "none" or model.frequencies):
        raise InputError(f"model.kind {model.kind!r} takes no gaussian_factor and no frequencies")
    if model.kind in ("ica", "rbm") and model.spectral_norm:
        raise InputError(f"model.spectral_norm is for networks; leave it out for model.kind {model.kind!r}")
    if model.kind in ("ica", "rbm") and config.joint is not None:
        raise InputError(f"[joint] makes a classifier an energy; model.kind {model.kind!r} is none")
    if model.kind == "wide-resnet" and (model.spectral_norm or model.frequencies):
        raise InputError("a wide-resnet takes no spectral_norm and no frequencies; leave them out")
    if model.kind != "convnet" and model.attention:
        raise InputError(f'model.attention is for model.kind "convnet"; this one is {model.kind!r}')
    if model.kind == "ica":
        return ICAEnergy.random(dim, model.source, generator, temperature=model.temperature)
    if model.kind == "rbm":
        # Small weights, so that it starts near the Gaussian around the data's mean.
        weights = torch.randn(dim, model.hidden, generator=generator) / model.hidden
        biases = torch.zeros_like(mean) if model.standardise else mean, torch.zeros(model.hidden)
        machine = GaussianBernoulliRBM(weights, *biases, temperature=model.temperature, learned=True)
        return RBMInUnits(machine, mean, std) if model.standardise else machine
    outputs = 1 if config.joint is None else config.joint.classes
    if model.kind == "convnet":
        net = _build_convnet(model, data, generator, outputs)
    elif model.kind == "wide-resnet":
        net = _build_wide_resnet(model, data, generator, outputs)
    else:
        net = _build_mlp(config, dim, generator, outputs)
    if model.standardise:
        net = Standardised(net, mean, std)
    if config.joint is not None:
        net = JointEnergy(net)
    if model.gaussian_factor != "none":
        learned = model.gaussian_factor == "learned"
        net = GaussianFactor(net, mean, std, temperature=model.temperature, learned=learned)
    if base is not None:
        parts = (part.to(mean.dtype) for part in (base.log_weights, base.means, base.factors))
        net = MixtureFactor(net, *parts, temperature=model.temperature)
    return net


def _build_mlp(config: Config, dim: int, generator: torch.Generator, outputs: int) -> nn.Module:
    model = config.model
    if isinstance(model.width, list) and model.depth is not None:
        raise InputError("model.width lists every layer; leave model.depth out")
    net = MLP(
        FourierFeatures.size(dim, model.frequencies) if model.frequencies else dim,
        width=widths_of(config),
        generator=generator,
        activation=model.activation,
        first_scale=model.first_scale,
        slope=model.slope,
        spectral_norm=model.spectral_norm,
        outputs=outputs,
    )
    return FourierFeatures(net, model.frequencies) if model.frequencies else net


def _build_convnet(
    model: ModelSettings, data: Density, generator: torch.Generator, outputs: int
) -> nn.Module:
    if isinstance(model.width, list) or model.depth is not None or model.frequencies:
        raise InputError("a convnet takes model.width, a number; leave out model.depth and model.frequencies")
    return ConvNet(
        _picture_shape(model, data),
        width=model.width,
        generator=generator,
        activation=model.activation,
        slope=model.slope,
        attention=model.attention,
        spectral_norm=model.spectral_norm,
        first_scale=model.first_scale,
        outputs=outputs,
    )


def _build_wide_resnet(
    model: ModelSettings, data: Density, generator: torch.Generator, outputs: int
) -> nn.Module:
    if isinstance(model.width, list) or model.depth is None:
        raise InputError("a wide-resnet takes model.depth (10, 16, 22, 28, …) and model.width, one number")
    return WideResNet(
        _picture_shape(model, data),
        depth=model.depth,
        width=model.width,
        outputs=outputs,
        generator=generator,
        activation=model.activation,
        slope=model.slope,
    )


def _picture_shape(model: ModelSettings, data: Density) -> tuple[int, int, int]:
    pictures = clean(data)
    if not isinstance(pictures, Pictures | AbsentData) or pictures.shape is None:
        raise InputError(f'model.kind = "{model.kind}" is for pictures; for this data it must be another')
    return pictures.shape
