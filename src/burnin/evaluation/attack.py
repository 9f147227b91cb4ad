"""How a classifier holds out against pictures that were changed to mislead it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor

from burnin.core import InputError, flat_norm, per_chain

Norm = Literal["linf", "l2"]
Logits = Callable[[Tensor], Tensor]
STEPS = 20
REACH = 2.5
"""The steps together may go 2.5 times as far as the edge, so that the last ones can move along it."""


def attacked(
    logits: Logits,
    x: Tensor,
    labels: Tensor,
    radius: float,
    generator: torch.Generator,
    *,
    norm: Norm = "linf",
    steps: int = STEPS,
    bounds: tuple[float, float] | None = None,
) -> Tensor:
    """x changed within a ball to raise the cross-entropy: projected gradient ascent (Madry et al. 2018).

    From a random point of the ball, x ← project(x + 2.5·radius/steps · direction); the direction is the
    gradient's sign (linf) or the gradient over its length (l2).

    Arguments:
        logits: the classifier.
        x: what is right so far, (n, dim).
        labels: the true classes.
        radius: of the ball, in the units of x.
        generator: draws the starts.
        norm: the ball's shape.
        steps: how many.
        bounds: what pictures may hold; None for any number.

    Example:
        >>> import torch
        >>> logits = lambda x: torch.cat([x, -x], 1)
        >>> zeros = torch.zeros(2, dtype=torch.long)
        >>> attacked(logits, torch.ones(2, 1), zeros, 0.5, torch.Generator().manual_seed(0)).tolist()
        [[0.5], [0.5]]
    """
    if not radius >= 0 or steps < 1:
        raise InputError(f"the attack's radius is {radius} and steps {steps}; wanted ≥ 0 and ≥ 1")
    moved = _project(
        x + radius * (2 * torch.rand(x.shape, generator=generator, dtype=x.dtype) - 1), x, radius, norm
    )
    for _ in range(steps):
        moved = moved.detach().requires_grad_(True)
        loss = torch.nn.functional.cross_entropy(logits(moved), labels, reduction="sum")
        gradient = torch.autograd.grad(loss, moved)[0]
        if norm == "linf":
            direction = gradient.sign()
        else:
            direction = gradient / per_chain(flat_norm(gradient).clamp(min=1e-30), gradient)
        moved = _project(moved.detach() + REACH * radius / steps * direction, x, radius, norm)
        if bounds is not None:
            moved = moved.clamp(*bounds)
    return moved.detach()


def robust_accuracy(
    logits: Logits,
    x: Tensor,
    labels: Tensor,
    radii: Sequence[float],
    generator: torch.Generator,
    *,
    norm: Norm = "linf",
    steps: int = STEPS,
    bounds: tuple[float, float] | None = None,
) -> list[float]:
    """The share of points still classified right after the attack, for each radius.

    What one radius has misled counts as misled at larger ones: a larger ball holds the smaller.
    """
    if list(radii) != sorted(radii):
        raise InputError(f"the attack's radii are {list(radii)}; they must rise")
    with torch.no_grad():
        right = logits(x).argmax(1) == labels
    shares = []
    for radius in radii:
        if radius > 0 and bool(right.any()):
            left = right.nonzero().flatten()
            worse = attacked(
                logits, x[left], labels[left], radius, generator, norm=norm, steps=steps, bounds=bounds
            )
            with torch.no_grad():
                right[left] = logits(worse).argmax(1) == labels[left]
        shares.append(float(right.double().mean()))
    return shares


def _project(moved: Tensor, x: Tensor, radius: float, norm: Norm) -> Tensor:
    if norm == "linf":
        return x + (moved - x).clamp(-radius, radius)
    away = moved - x
    return x + away * per_chain((radius / flat_norm(away).clamp(min=1e-30)).clamp(max=1.0), away)
