"""What the density and the energy of linear ICA share: sources, and random matrices to mix them.

Linear independent component analysis has x = W z with independent sources z; with the unmixing matrix
B = W⁻¹ its density is p(x) = |det B| Π p_z((B x)ᵢ) (stein, equation 14).
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from burnin.core import InputError

Source = Literal["laplace", "logistic"]
"""The law of a source, of location 0 and scale 1: exp(-|z|)/2, or exp(-z)/(1 + exp(-z))²."""
SOURCES = get_args(Source)


def source_log_prob(source: Source, z: Tensor) -> Tensor:
    """log p_z of each number.

    The Laplace density has a kink at 0, so its second derivative is 0 wherever autograd looks: what needs
    that derivative (score matching) learns nothing right from it. The logistic density is smooth.

    Example:
        >>> import torch
        >>> [round(source_log_prob(source, torch.zeros(1)).item(), 4) for source in ("laplace", "logistic")]
        [-0.6931, -1.3863]
    """
    require_source(source)
    if source == "laplace":
        return -z.abs() - math.log(2)
    return F.logsigmoid(z) + F.logsigmoid(-z)


def draw_sources(source: Source, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Independent draws by the inverse of the distribution function, in torch's default precision.

    Example:
        >>> draw_sources("logistic", (2, 3), torch.Generator().manual_seed(0)).shape
        torch.Size([2, 3])
    """
    require_source(source)
    # In double precision: a uniform number of single precision is 0 once in 16 million draws.
    uniform = torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64)
    uniform = uniform.clamp(min=2.0**-54)
    if source == "logistic":
        z = uniform.log() - torch.log1p(-uniform)
    else:
        away = 2 * uniform - 1
        z = -away.sign() * torch.log1p(-away.abs())
    return z.to(torch.get_default_dtype())


def well_conditioned_matrix(dim: int, generator: torch.Generator) -> Tensor:
    """A standard normal dim × dim matrix whose condition number is below dim (stein, B.5), float64.

    Drawn anew until it is so; of large matrices about one in fifty is.

    Example:
        >>> matrix = well_conditioned_matrix(5, torch.Generator().manual_seed(0))
        >>> bool(torch.linalg.cond(matrix) < 5)
        True
    """
    if dim < 2:
        raise InputError(f"dim is {dim}; a condition number below it needs at least 2 dimensions")
    while True:
        matrix = torch.randn(dim, dim, generator=generator, device=generator.device, dtype=torch.float64)
        if float(torch.linalg.cond(matrix)) < dim:
            return matrix


def require_source(source: str) -> None:
    """Refuses a law that is not known."""
    if source not in SOURCES:
        raise InputError(f"the source is {source!r}; known are {', '.join(SOURCES)}")
