"""Noisy curves in the plane: circles, pinwheel, moons and swiss roll, the usual toys for densities.

They are the kind of 2-D density of the stein paper's figure 4 (B.4), which prints no settings; the sizes
here are the customary ones of the normalising-flow literature, all about [-4, 4]². Circles and pinwheel
have an exact log_prob. Moons and swiss roll are an integral over a piece of a curve that has no closed
form, so they have none: they can be drawn from, and judged by samples only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import InputError
from burnin.data.checks import require_at_least, require_points, require_positive
from burnin.data.rings import Rings


def circles() -> Rings:
    """Two circles of radius 1.5 and 3, sd 0.24: `Rings` in 2-D, so the density is exact.

    Example:
        >>> circles().radii
        (1.5, 3.0)
    """
    return Rings((1.5, 3.0), sd=0.24)


@dataclass(frozen=True)
class Pinwheel:
    r"""Curved arms around the origin: Gaussians twisted by an angle that grows with the radius.

    An arm k is picked with equal probability, and a Gaussian point u = (1 + s_r z1, s_t z2) is turned:

        x = scale · R(2πk/K + g(|u|)) u,  g(ρ) = rate · exp(ρ)

    A turn keeps |u|, so u is found back from x, and a turn by a function of the radius keeps areas:
    in polar coordinates (ρ, θ) → (ρ, θ + g(ρ)) has determinant 1. Hence the exact density, with
    ρ = |x| / scale:

        p(x) = 1/K Σ_k N(R(-2πk/K - g(ρ)) x / scale; (1, 0), diag(s_r², s_t²)) / scale²

    The usual code twists by exp(u1), not by exp(|u|). For thin arms both look alike, but that map
    changes areas and folds over in the tails, so its density has no closed form. g stops growing at
    ρ = 10 (beyond every draw with the defaults), which keeps the angle finite and the formula exact.

    Arguments:
        arms: number of arms K.
        radial_sd: s_r, along an arm.
        tangential_sd: s_t, across an arm.
        rate: how fast the twist grows.
        scale: size of the whole.

    Example:
        >>> import torch
        >>> pinwheel = Pinwheel()
        >>> pinwheel.sample(3, torch.Generator().manual_seed(0)).shape
        torch.Size([3, 2])
        >>> pinwheel.log_prob(torch.tensor([[0.0, 0.0]])).round(decimals=3)
        tensor([-5.2730])
    """

    arms: int = 5
    radial_sd: float = 0.3
    tangential_sd: float = 0.1
    rate: float = 0.25
    scale: float = 2.0

    def __post_init__(self) -> None:
        require_at_least("Pinwheel", 1, arms=self.arms)
        require_positive("Pinwheel", radial_sd=self.radial_sd, tangential_sd=self.tangential_sd)
        require_positive("Pinwheel", scale=self.scale)
        if not math.isfinite(self.rate):
            raise InputError(f"Pinwheel: rate is {self.rate}; it must be a finite number")

    @property
    def dim(self) -> int:
        """Number of dimensions: 2."""
        return 2

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n independent draws, (n, 2), on the generator's device."""
        require_at_least("Pinwheel", 0, n=n)
        device = generator.device
        arm = torch.randint(self.arms, (n,), generator=generator, device=device)
        noise = torch.randn(n, 2, generator=generator, device=device)
        u = torch.stack([1 + self.radial_sd * noise[:, 0], self.tangential_sd * noise[:, 1]], dim=1)
        return self.scale * _turn(u, 2 * math.pi / self.arms * arm + self._twist(u))

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalised log-density, (n,), in the precision of x."""
        require_points("Pinwheel", x, 2)
        u = x / self.scale
        twist = self._twist(u)
        log_arms = []
        for arm in range(self.arms):
            straight = _turn(u, -2 * math.pi / self.arms * arm - twist)
            along = (straight[:, 0] - 1) / self.radial_sd
            across = straight[:, 1] / self.tangential_sd
            log_arms.append(-0.5 * (along.square() + across.square()))
        log_constant = math.log(2 * math.pi * self.radial_sd * self.tangential_sd * self.scale**2 * self.arms)
        return torch.logsumexp(torch.stack(log_arms), dim=0) - log_constant

    def _twist(self, u: Tensor) -> Tensor:
        """The angle g(|u|), (n,)."""
        radius: Tensor = torch.linalg.vector_norm(u, dim=1)
        return self.rate * radius.clamp(max=10.0).exp()


@dataclass(frozen=True)
class Moons:
    r"""Two half circles that reach into each other, with isotropic Gaussian noise. No log_prob.

    With t uniform on [0, π], and each moon picked with probability 1/2:

        upper: c(t) = (cos t, sin t)      lower: c(t) = (1 - cos t, 1/2 - sin t)
        x = scale · (c(t) + sd · z) + shift

    A full circle would integrate to a Bessel function (see `Rings`); half of one does not: the
    density is an incomplete Bessel integral without a closed form.

    Arguments:
        sd: standard deviation of the noise before scaling.
        scale: size of the whole.
        shift: added at the end.

    Example:
        >>> import torch
        >>> Moons().sample(3, torch.Generator().manual_seed(0)).shape
        torch.Size([3, 2])
    """

    sd: float = 0.1
    scale: float = 2.0
    shift: tuple[float, float] = (-1.0, -0.2)

    def __post_init__(self) -> None:
        require_positive("Moons", sd=self.sd, scale=self.scale)
        if len(self.shift) != 2 or not all(math.isfinite(value) for value in self.shift):
            raise InputError(f"Moons: shift is {self.shift}; it must be two finite numbers")

    @property
    def dim(self) -> int:
        """Number of dimensions: 2."""
        return 2

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n independent draws, (n, 2), on the generator's device."""
        require_at_least("Moons", 0, n=n)
        device = generator.device
        upper = torch.randint(2, (n,), generator=generator, device=device).bool()
        t = math.pi * torch.rand(n, generator=generator, device=device)
        first = torch.where(upper, t.cos(), 1 - t.cos())
        second = torch.where(upper, t.sin(), 0.5 - t.sin())
        noise = torch.randn(n, 2, generator=generator, device=device)
        curve = torch.stack([first, second], dim=1)
        return self.scale * (curve + self.sd * noise) + torch.tensor(self.shift, device=device)


@dataclass(frozen=True)
class SwissRoll:
    r"""A spiral, uniform in its angle, with isotropic Gaussian noise. No log_prob.

    With t uniform on [3π/2, 9π/2]:

        x = scale · (t cos t, t sin t) + sd · z

    The density is an integral along the spiral without a closed form. The defaults are the first and
    third coordinate of the usual 3-D roll with noise 1, divided by 5.

    Arguments:
        sd: standard deviation of the noise, after scaling.
        scale: size of the spiral.

    Example:
        >>> import torch
        >>> SwissRoll().sample(3, torch.Generator().manual_seed(0)).shape
        torch.Size([3, 2])
    """

    sd: float = 0.2
    scale: float = 0.2

    def __post_init__(self) -> None:
        require_positive("SwissRoll", sd=self.sd, scale=self.scale)

    @property
    def dim(self) -> int:
        """Number of dimensions: 2."""
        return 2

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n independent draws, (n, 2), on the generator's device."""
        require_at_least("SwissRoll", 0, n=n)
        device = generator.device
        t = 1.5 * math.pi * (1 + 2 * torch.rand(n, generator=generator, device=device))
        curve = torch.stack([t * t.cos(), t * t.sin()], dim=1)
        return self.scale * curve + self.sd * torch.randn(n, 2, generator=generator, device=device)


def _turn(x: Tensor, angle: Tensor) -> Tensor:
    """Each point turned counter-clockwise by its angle, (n, 2)."""
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([cos * x[:, 0] - sin * x[:, 1], sin * x[:, 0] + cos * x[:, 1]], dim=1)
