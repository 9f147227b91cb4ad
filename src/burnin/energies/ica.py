"""Linear ICA as an energy that is trained, whose normaliser is known."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from burnin.core import InputError
from burnin.sources import Source, require_source, source_log_prob, well_conditioned_matrix


class ICAEnergy(nn.Module):
    """E(x) = -T Σᵢ log p_z((B x)ᵢ): at temperature T the density of linear ICA, up to |det B|.

    The unmixing matrix B is learned. Since ∫ exp(-E/T) = 1/|det B|, the normaliser is known exactly, for
    maximum likelihood and for judging models that were trained without it (stein, equation 14).

    Arguments:
        unmixing: where B starts, (dim, dim), invertible.
        source: the law of each source.
        temperature: T.

    Example:
        >>> import torch
        >>> energy = ICAEnergy(2 * torch.eye(2), "laplace", temperature=0.5)
        >>> energy(torch.ones(1, 2)), energy.log_normaliser()  # ½·(2 + log 2) twice; -log 4
        (tensor([2.6931], grad_fn=<MulBackward0>), tensor(-1.3863, grad_fn=<NegBackward0>))
    """

    def __init__(self, unmixing: Tensor, source: Source, *, temperature: float = 1.0) -> None:
        super().__init__()
        require_source(source)
        if not temperature > 0:
            raise InputError(f"the temperature is {temperature}; it must be positive")
        if unmixing.dim() != 2 or unmixing.shape[0] != unmixing.shape[1]:
            raise InputError(f"the unmixing matrix has shape {tuple(unmixing.shape)}; it must be square")
        self.source: Source = source
        self.temperature = temperature
        self.unmixing = nn.Parameter(unmixing.detach().clone())

    @classmethod
    def random(
        cls, dim: int, source: Source, generator: torch.Generator, *, temperature: float = 1.0
    ) -> ICAEnergy:
        """An energy that starts at a random matrix, of the same law as that of the paper's data (B.5)."""
        start = well_conditioned_matrix(dim, generator).to(torch.get_default_dtype())
        return cls(start, source, temperature=temperature)

    def forward(self, x: Tensor) -> Tensor:
        """E(x), (n,)."""
        return -self.temperature * source_log_prob(self.source, x @ self.unmixing.T).sum(1)

    def log_normaliser(self) -> Tensor:
        """log ∫ exp(-E/T) = -log |det B|, 0-d; gradients flow to B."""
        volume: Tensor = torch.linalg.slogdet(self.unmixing).logabsdet
        return -volume
