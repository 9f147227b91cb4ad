"""Spectral norm whose power iteration moves when it is told to, not whenever the energy is computed.

torch's spectral norm divides a weight W by uᵀWv, an estimate of its largest singular value, and in training
mode improves u and v at every forward pass. The chains of one update would then walk hundreds of different
energies, and the loss see another still. Here u and v rest, so that the energy is one function, and `advance`
takes one power iteration for every update of the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize
from torch.nn.utils.parametrizations import _SpectralNorm

FIRST_ITERATIONS = 15
"""Power iterations from the random vectors at the start."""


class Resting(nn.Module):
    """A network whose spectral norms, if it has any, rest in training mode too."""

    def train(self, mode: bool = True) -> Self:
        """Sets the mode of everything but the spectral norms."""
        super().train(mode)
        rest(self)
        return self


def spectral_norm(layer: nn.Module, generator: torch.Generator) -> nn.Module:
    """The layer with its weight divided by its largest singular value, the vectors at rest.

    Arguments:
        layer: one with a `weight`: as a matrix, its first dimension against the others.
        generator: draws the first u and v.

    Example:
        >>> import torch
        >>> layer = spectral_norm(nn.Linear(5, 3), torch.Generator().manual_seed(0))
        >>> round(torch.linalg.matrix_norm(layer.weight, 2).item(), 2)
        1.0
    """
    with torch.random.fork_rng(devices=[]):  # torch draws its first vectors from the global generator
        parametrizations.spectral_norm(layer)
    for _, _, norm in _norms(layer):
        for vector in (norm._u, norm._v):
            vector.normal_(generator=generator)
            vector.div_(torch.linalg.vector_norm(vector))
    advance(layer, FIRST_ITERATIONS)
    return layer


def has_norms(module: nn.Module) -> bool:
    """Whether there is a spectral norm in a module."""
    return next(_norms(module), None) is not None


def rest(module: nn.Module) -> None:
    """Lets every spectral norm in a module, of training mode or not, keep its vectors as they are."""
    for _, _, norm in _norms(module):
        norm.eval()


def advance(module: nn.Module, iterations: int = 1) -> None:
    """Power iterations of every spectral norm in a module, as its weights are now; then they rest."""
    with torch.no_grad():
        for layer, name, norm in _norms(module):
            norm.train()
            for _ in range(iterations):
                getattr(layer, name)
            norm.eval()


@contextmanager
def own_vectors(module: nn.Module) -> Iterator[None]:
    """Gives a module its own vectors back after others were copied into it, as an average of weights does."""
    vectors = [vector for _, _, norm in _norms(module) for vector in (norm._u, norm._v)]
    kept = [vector.clone() for vector in vectors]
    yield
    for vector, value in zip(vectors, kept, strict=True):
        vector.copy_(value)


def _norms(module: nn.Module) -> Iterator[tuple[nn.Module, str, _SpectralNorm]]:
    for layer in module.modules():
        if not parametrize.is_parametrized(layer):
            continue
        known = layer.parametrizations
        assert isinstance(known, nn.ModuleDict)
        for name, chain in known.items():
            assert isinstance(chain, parametrize.ParametrizationList)
            for norm in chain:
                if isinstance(norm, _SpectralNorm):
                    yield layer, name, norm
