"""Concentric rings in a plane, embedded in more dimensions, with their exact density (hybrid, A.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import InputError
from burnin.data.checks import require_at_least, require_points, require_positive


@dataclass(frozen=True)
class Rings:
    r"""Concentric rings in the first two coordinates, with Gaussian noise in all of them.

    A ring z is picked with equal probability and a point on it at a uniform angle φ. Noise of
    standard deviation σ = `sd` is added in the plane and in `thick_dims` more coordinates, and of
    `thin_sd` in the last `thin_dims` (hybrid, A.1):

        p(x | z, φ) = N(x; r_z [cos φ, sin φ, 0, ..., 0], D)

    With ℓ the length of (x1, x2), and i0e(u) = exp(-|u|) I0(u) the scaled Bessel function, the
    integral over φ is known in closed form. A.1 gives it up to a constant; with the constant it is

        p(x1, x2) = 1/K Σ_z 1/(2πσ²) exp(-(ℓ - r_z)² / (2σ²)) i0e(r_z ℓ / σ²)

    The other coordinates are independent Gaussians. Every term is computed in the log domain and
    i0e falls only as 1/sqrt(u), so log_prob is right in float32 however far away x is.

    The "rings" of the ebm-anatomy code differ a little: their noise is on the radius only, and the
    density they plot as the truth leaves out the factor r/ℓ. Here the noise is that of A.1.

    Arguments:
        radii: the radius of each ring.
        sd: standard deviation in the plane and in the `thick_dims` coordinates after it.
        thin_sd: standard deviation in the last `thin_dims` coordinates.
        thin_dims: how many thin coordinates.
        thick_dims: how many coordinates of noise `sd` next to the plane.

    Example:
        >>> import torch
        >>> rings = Rings.paper()
        >>> rings.dim, rings.radii
        (10, (1.0, 2.0, 3.0))
        >>> x = rings.sample(4, torch.Generator().manual_seed(0))
        >>> x.shape
        torch.Size([4, 10])
        >>> rings.plane().log_prob(torch.tensor([[2.0, 0.0], [1.5, 0.0]])).round(decimals=3)
        tensor([ -2.2460, -13.7200])
    """

    radii: tuple[float, ...]
    sd: float
    thin_sd: float = 0.01
    thin_dims: int = 0
    thick_dims: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "radii", tuple(float(radius) for radius in self.radii))
        if not self.radii:
            raise InputError("Rings: radii is empty; give at least one radius")
        for radius in self.radii:
            require_positive("Rings", radius=radius)
        require_positive("Rings", sd=self.sd, thin_sd=self.thin_sd)
        require_at_least("Rings", 0, thin_dims=self.thin_dims, thick_dims=self.thick_dims)

    @classmethod
    def paper(cls) -> Rings:
        """The 10-D rings of hybrid, A.1: radii 1, 2, 3; sd 0.1 in three dimensions and 0.01 in seven."""
        return cls((1.0, 2.0, 3.0), sd=0.1, thin_sd=0.01, thin_dims=7, thick_dims=1)

    @classmethod
    def four(cls) -> Rings:
        """The 2-D toy of the convergent and robust papers: four rings of radius 1 to 4, sd 0.15."""
        return cls((1.0, 2.0, 3.0, 4.0), sd=0.15)

    @property
    def dim(self) -> int:
        """Number of dimensions: the plane, the thick ones, the thin ones."""
        return 2 + self.thick_dims + self.thin_dims

    def plane(self) -> Rings:
        """The law of the first two coordinates alone: 2-D, so a grid can hold it.

        Example:
            >>> Rings.paper().plane()
            Rings(radii=(1.0, 2.0, 3.0), sd=0.1, thin_sd=0.01, thin_dims=0, thick_dims=0)
        """
        return Rings(self.radii, self.sd, self.thin_sd)

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n independent draws, (n, dim), on the generator's device."""
        require_at_least("Rings", 0, n=n)
        device = generator.device
        ring = torch.randint(len(self.radii), (n,), generator=generator, device=device)
        radius = torch.tensor(self.radii, device=device)[ring]
        angle = 2 * math.pi * torch.rand(n, generator=generator, device=device)
        x = self._scales(device) * torch.randn(n, self.dim, generator=generator, device=device)
        x[:, 0] += radius * angle.cos()
        x[:, 1] += radius * angle.sin()
        return x

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalised log-density, (n,), in the precision of x."""
        require_points("Rings", x, self.dim)
        rest = x[:, 2:] / self._scales(x.device, x.dtype)[2:]
        log_volume = self.thick_dims * math.log(self.sd) + self.thin_dims * math.log(self.thin_sd)
        log_constant = log_volume + 0.5 * (self.dim - 2) * math.log(2 * math.pi)
        return self._plane_log_prob(x[:, :2]) - 0.5 * rest.square().sum(1) - log_constant

    def _plane_log_prob(self, xy: Tensor) -> Tensor:
        length = torch.linalg.vector_norm(xy, dim=1, keepdim=True)
        radii = torch.tensor(self.radii, device=xy.device, dtype=xy.dtype)
        variance = self.sd**2
        bessel = torch.special.i0e(radii * length / variance)
        log_rings = -0.5 * ((length - radii) / self.sd).square() + bessel.log()
        return torch.logsumexp(log_rings, dim=1) - math.log(2 * math.pi * variance * len(self.radii))

    def _scales(self, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
        """Standard deviation of the noise in each coordinate, (dim,)."""
        scales = [self.sd] * (2 + self.thick_dims) + [self.thin_sd] * self.thin_dims
        return torch.tensor(scales, device=device, dtype=dtype)
