"""The checks of input that every density of this room makes, so that all say the same in the same words."""

from __future__ import annotations

import math

from torch import Tensor

from burnin.core import InputError


def require_positive(owner: str, **values: float) -> None:
    """Raises InputError unless every value is a finite number above 0.

    Example:
        >>> require_positive("Rings", sd=0.1)
        >>> require_positive("Rings", sd=-1.0)
        Traceback (most recent call last):
        burnin.core.InputError: Rings: sd is -1.0; it must be a finite number above 0
    """
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise InputError(f"{owner}: {name} is {value}; it must be a finite number above 0")


def require_at_least(owner: str, least: int, **values: int) -> None:
    """Raises InputError unless every value is a whole number of at least `least`.

    Example:
        >>> require_at_least("Rings", 0, thin_dims=-1)
        Traceback (most recent call last):
        burnin.core.InputError: Rings: thin_dims is -1; it must be a whole number of at least 0
    """
    for name, value in values.items():
        if not isinstance(value, int) or value < least:
            raise InputError(f"{owner}: {name} is {value}; it must be a whole number of at least {least}")


def require_points(owner: str, x: Tensor, dim: int) -> None:
    """Raises InputError unless x is a floating-point batch of points, (n, dim).

    Example:
        >>> import torch
        >>> require_points("Funnel", torch.zeros(5, 3), dim=2)
        Traceback (most recent call last):
        burnin.core.InputError: Funnel: got points of shape (5, 3); wanted (n, 2)
    """
    if x.dim() != 2 or x.shape[1] != dim:
        raise InputError(f"{owner}: got points of shape {tuple(x.shape)}; wanted (n, {dim})")
    if not x.is_floating_point():
        raise InputError(f"{owner}: got points of {x.dtype}; wanted floating-point numbers, use x.float()")
