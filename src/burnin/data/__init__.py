"""Toy densities known exactly, tables of rows, pictures, and a registry of densities by name.

Every density draws with `sample(n, generator)`; those whose normalised logarithm is known in closed
form also have `log_prob(x)`. Nothing here seeds a global generator.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial

from burnin.core import Density, InputError, KnownDensity
from burnin.data.absent import AbsentData
from burnin.data.corruption import NoisyDensity, clean, held_out
from burnin.data.curves import Moons, Pinwheel, SwissRoll, circles
from burnin.data.digits import digits8
from burnin.data.elliptical import Gaussian, StudentT
from burnin.data.encoding import Encoding
from burnin.data.frames import Frame, load_frame
from burnin.data.ica import LinearICA
from burnin.data.mixtures import (
    Checkerboard,
    Funnel,
    GaussianMixture,
    eight_gaussians,
    two_scales,
    unequal_gaussians,
)
from burnin.data.named_pictures import data_folder, is_picture_name, load_pictures, require_files
from burnin.data.picture_sets import SETS
from burnin.data.pictures import Pictures
from burnin.data.rings import Rings
from burnin.data.rows import EncodedRows
from burnin.data.tables import Table, load_table
from burnin.data.writing import save_frame

__all__ = [
    "AbsentData",
    "Checkerboard",
    "EncodedRows",
    "Encoding",
    "Frame",
    "Funnel",
    "Gaussian",
    "GaussianMixture",
    "LinearICA",
    "Moons",
    "NoisyDensity",
    "Pictures",
    "Pinwheel",
    "Rings",
    "StudentT",
    "SwissRoll",
    "Table",
    "circles",
    "clean",
    "data_folder",
    "density_names",
    "digits8",
    "eight_gaussians",
    "held_out",
    "is_picture_name",
    "load_frame",
    "load_pictures",
    "load_table",
    "make_density",
    "make_known_density",
    "require_files",
    "save_frame",
    "two_scales",
    "unequal_gaussians",
]

_KNOWN: dict[str, Callable[[], KnownDensity]] = {
    "rings10": Rings.paper,
    "rings4": Rings.four,
    "mixture8": eight_gaussians,
    "mixture8-unequal": unequal_gaussians,
    "two-scales": two_scales,
    "circles": circles,
    "pinwheel": Pinwheel,
    "checkerboard": Checkerboard,
    "funnel": Funnel,
}
_DRAWS_ONLY: dict[str, Callable[[], Density]] = {
    "moons": Moons,
    "swissroll": SwissRoll,
    "digits8": digits8,
    **{name: partial(load_pictures, name) for name in SETS},
}


def density_names(*, known: bool = False) -> tuple[str, ...]:
    """The names that `make_density` takes, sorted; with `known`, only those that have a log_prob.

    Example:
        >>> sorted(set(density_names()) - set(density_names(known=True)))
        ['cifar10', 'digits8', 'fashion-mnist', 'flowers', 'mnist', 'moons', 'svhn', 'swissroll']
    """
    return tuple(sorted(_KNOWN if known else _KNOWN | _DRAWS_ONLY))


def make_density(name: str) -> Density:
    """The density of this name, with the settings of its paper; or the pictures of "hf:owner/name".

    Raises:
        InputError: for an unknown name, with the nearest known one and all of them.

    Example:
        >>> make_density("rings10").dim
        10
        >>> make_density("moon")
        Traceback (most recent call last):
        burnin.core.InputError: unknown density 'moon'; did you mean 'moons'? Known: checkerboard, \
cifar10, circles, digits8, fashion-mnist, flowers, funnel, mixture8, mixture8-unequal, mnist, moons, \
pinwheel, rings10, rings4, svhn, swissroll, two-scales
    """
    if is_picture_name(name):
        return load_pictures(name)
    if name in _DRAWS_ONLY:
        return _DRAWS_ONLY[name]()
    if name in _KNOWN:
        return _KNOWN[name]()
    raise _unknown(name, density_names())


def make_known_density(name: str) -> KnownDensity:
    """The density of this name, for a caller that needs its log_prob.

    Raises:
        InputError: for an unknown name, or one that can only be drawn from.

    Example:
        >>> import torch
        >>> make_known_density("funnel").log_prob(torch.zeros(1, 2)).shape
        torch.Size([1])
    """
    if name in _DRAWS_ONLY:
        known = ", ".join(density_names(known=True))
        raise InputError(f"the density {name!r} has no closed form, so no log_prob; these have: {known}")
    if name in _KNOWN:
        return _KNOWN[name]()
    raise _unknown(name, density_names(known=True))


def _unknown(name: str, names: tuple[str, ...]) -> InputError:
    """The error for a name that is none of `names`."""
    near = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return InputError(f"unknown density {name!r}{hint} Known: {', '.join(names)}")
