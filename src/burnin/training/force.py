"""The chains' force against their noise: at the first update, where it decides whether learning starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from burnin.core import Sampler
from burnin.diagnostics import ChainNoise, balance
from burnin.samplers import HMC, Annealed
from burnin.training.arms import Arm
from burnin.training.scale import FisherScale

FEEBLE = 0.01
"""A drift of a tenth of what is balanced with the noise (0.1); less is a feeble start."""


def chain_noise(
    arms: Sequence[Arm], dim: int, *, update: int, scale: FisherScale | None = None, factor: float = 1.0
) -> dict[str, ChainNoise]:
    """What sets the noise of each arm's chains at an update: β and the scale of the steps count.

    Arguments:
        arms: the arms.
        dim: number of dimensions.
        update: which update, for β that follows a schedule.
        scale: the fitted step of each dimension, if there is one.
        factor: by which the guard has changed all steps.
    """
    steps = factor * (torch.ones(dim) if scale is None else scale.value())
    inverse = float((1 / steps).mean())
    return {
        arm.name: ChainNoise(arm.sampler_at(update).temperature, dim, inverse, leapfrog=_leaps(arm.sampler))
        for arm in arms
    }


def first_force(numbers: Mapping[str, float], noises: Mapping[str, ChainNoise]) -> list[str]:
    """What is to be said of the first update's forces: nothing where they are near their target.

    Convergent learning works best when r has the same order of magnitude throughout, near that of the
    noise; a freshly initialised network may be orders away (convergent, section A). The paper calls a
    tenth of its target a reasonable start.

    Example:
        >>> said = first_force({"r/bank": 1e-6, "step_size/bank": 1.0}, {"bank": ChainNoise(7.8e-3, 2)})
        >>> said[0][:82]
        "first update: the force of arm 'bank' drifts its chains by 5.7e-06 of their noise "
    """
    said = []
    for name, noise in noises.items():
        r, step = numbers.get(f"r/{name}", 0.0), numbers.get(f"step_size/{name}", 0.0)
        if r <= 0 or step <= 0:  # an arm without steps has no force
            continue
        found = balance(np.array([r]), np.array([step]), noise)
        low = found.ratio < FEEBLE and found.ratio_to_one < 10 * FEEBLE
        if not low and found.state != "the drift dominates":
            continue
        said.append(
            f"first update: the force of arm {name!r} drifts its chains by {found.ratio:.2g} of their noise "
            f"a step; learning starts soonest between 0.1 and 10: {'raise' if low else 'lower'} "
            f"model.first_scale, or {'lower' if low else 'raise'} model.temperature"
        )
    return said


def _leaps(sampler: Sampler) -> bool:
    return isinstance(sampler.inner if isinstance(sampler, Annealed) else sampler, HMC)
