"""Linear ICA: independent sources mixed by a matrix, with its exact density (stein, section 8.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from burnin.core import InputError
from burnin.data.checks import require_at_least, require_points
from burnin.sources import Source, draw_sources, require_source, source_log_prob, well_conditioned_matrix


@dataclass(frozen=True, eq=False)
class LinearICA:
    r"""x = W z with independent Laplace or logistic sources z.

        log p(x) = Σᵢ log p_z((B x)ᵢ) + log |det B|,   B = W⁻¹        (stein, equation 14)

    Arguments:
        unmixing: B, (dim, dim), invertible; kept in double precision.
        source: the law of each source.
        log_stretch: log |det A| where x are the coordinates x = A x₀ of another such law (`whitened`);
            log p(x) plus this is the log-density of x₀.

    Example:
        >>> import torch
        >>> ica = LinearICA(2 * torch.eye(3), "laplace")
        >>> ica.log_prob(torch.zeros(1, 3))  # nothing but 3·(log ½ + log 2)
        tensor([0.])
        >>> LinearICA.random(10, "logistic", torch.Generator().manual_seed(0)).dim
        10
    """

    unmixing: Tensor
    source: Source
    log_stretch: float = 0.0

    def __post_init__(self) -> None:
        require_source(self.source)
        shape = tuple(self.unmixing.shape)
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
            raise InputError(f"LinearICA: the unmixing matrix has shape {shape}; it must be square")
        matrix = self.unmixing.detach().double()
        if not bool(torch.linalg.slogdet(matrix).logabsdet.isfinite()):
            raise InputError("LinearICA: the unmixing matrix is singular or not finite")
        object.__setattr__(self, "unmixing", matrix)

    @classmethod
    def random(
        cls,
        dim: int,
        source: Source,
        generator: torch.Generator,
        *,
        gaussian: Literal["unmixing", "mixing"] = "unmixing",
    ) -> LinearICA:
        """Sources mixed by a random Gaussian matrix whose condition number is below `dim` (stein, B.5).

        The paper's text makes the mixing matrix W Gaussian. Its likelihoods (-25.5 in 50 dimensions) are
        those of a Gaussian unmixing matrix B and logistic sources, as in its published program: a
        Gaussian W would give about -170. Both are offered.

        Arguments:
            dim: number of sources and of dimensions.
            source: the law of each source.
            generator: draws the matrix.
            gaussian: which of the two matrices has the Gaussian entries.
        """
        matrix = well_conditioned_matrix(dim, generator)
        return cls(matrix if gaussian == "unmixing" else torch.linalg.inv(matrix), source)

    def whitened(self, generator: torch.Generator, *, points: int = 100_000) -> LinearICA:
        """The same law in coordinates A x in which it has about the covariance 1.

        Arguments:
            generator: draws the points.
            points: from whose covariance C the matrix A = C^(-1/2) is found.
        """
        values, vectors = torch.linalg.eigh(torch.cov(self.sample(points, generator).double().T))
        matrix = vectors @ torch.diag(values.rsqrt()) @ vectors.T
        stretch = -0.5 * values.log().sum().item()
        return LinearICA(self.unmixing @ torch.linalg.inv(matrix), self.source, self.log_stretch + stretch)

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return self.unmixing.shape[0]

    @property
    def mixing(self) -> Tensor:
        """W = B⁻¹, float64."""
        inverse: Tensor = torch.linalg.inv(self.unmixing)
        return inverse

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n independent draws, (n, dim), on the generator's device."""
        require_at_least("LinearICA", 0, n=n)
        z = draw_sources(self.source, (n, self.dim), generator)
        return z @ self.mixing.to(z).T

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalised log-density, (n,), in the precision of x."""
        require_points("LinearICA", x, self.dim)
        unmixing = self.unmixing.to(x)
        volume: Tensor = torch.linalg.slogdet(self.unmixing).logabsdet.to(x)
        return source_log_prob(self.source, x @ unmixing.T).sum(1) + volume
