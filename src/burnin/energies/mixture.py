"""A mixture of Gaussians as the law that an energy corrects."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from burnin.core import evaluate


class MixtureFactor(nn.Module):
    """E(x) = net(x) - T log q(x), that is p(x) ∝ exp(-net(x)/T) · q(x), with a mixture q that is fixed.

    Where the network is 0 the density is q, normalised; all that is to be learned is what q lacks.

    Arguments:
        net: the correction.
        log_weights: of q's components, (k,).
        means: (k, dim).
        factors: lower Cholesky factors of the covariances, (k, dim, dim), or standard deviations, (k, dim).
        temperature: T.

    Example:
        >>> import torch
        >>> class Nothing(torch.nn.Module):
        ...     def forward(self, x): return 0 * x.sum(1)
        >>> one = torch.zeros(1), torch.zeros(1, 2), torch.ones(1, 2)
        >>> standard = MixtureFactor(Nothing(), *one, temperature=1.0)
        >>> round(standard(torch.zeros(1, 2)).item(), 3)  # log 2π
        1.838
    """

    log_weights: Tensor
    means: Tensor
    inverse: Tensor

    def __init__(
        self, net: nn.Module, log_weights: Tensor, means: Tensor, factors: Tensor, *, temperature: float
    ) -> None:
        super().__init__()
        self.net = net
        self.temperature = temperature
        self.register_buffer("log_weights", log_weights.clone())
        self.register_buffer("means", means.clone())
        self.register_buffer("inverse", inverted(factors))

    def forward(self, x: Tensor) -> Tensor:
        """The network's energy less T times q's log-density."""
        each, _ = component_terms(x, self.log_weights, self.means, self.inverse)
        return self.correction(x) - self.temperature * each.logsumexp(1)

    def correction(self, x: Tensor) -> Tensor:
        """The network's energy alone, (n,)."""
        return evaluate(self.net, x)


def inverted(factors: Tensor) -> Tensor:
    """Inverses of lower factors, (k, dim, dim), or of standard deviations, (k, dim)."""
    if factors.dim() == 2:
        return 1 / factors
    eye = torch.eye(factors.shape[-1], dtype=factors.dtype).expand_as(factors)
    solved: Tensor = torch.linalg.solve_triangular(factors, eye, upper=False)
    return solved


def component_terms(
    x: Tensor, log_weights: Tensor, means: Tensor, inverse: Tensor
) -> tuple[Tensor, Tensor | None]:
    """log(wⱼ N(x; μⱼ, Σⱼ)), (n, k), and the whitened L⁻¹(x - μ), (n, k, dim), where there are full factors.

    By matrix products throughout: with many components nothing else is fast.
    """
    constant = log_weights - 0.5 * x.shape[1] * math.log(2 * math.pi)
    if inverse.dim() == 2:
        precision = inverse.square()
        square = (
            x.square() @ precision.T - 2 * x @ (means * precision).T + (means.square() * precision).sum(1)
        )
        return constant + inverse.log().sum(1) - 0.5 * square, None
    k, dim, _ = inverse.shape
    centres = (inverse @ means[:, :, None]).reshape(k * dim)
    white = (x @ inverse.reshape(k * dim, dim).T - centres).reshape(len(x), k, dim)
    half_log_det = inverse.diagonal(dim1=1, dim2=2).log().sum(1)
    return constant + half_log_det - 0.5 * white.square().sum(2), white
