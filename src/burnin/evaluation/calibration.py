"""How good a joint model is as a classifier, and whether its probabilities are what they say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from burnin.core import InputError
from burnin.energies import joint_of
from burnin.evaluation.outliers import Estimate

BINS = 15
RESAMPLES = 200
BLOCK = 1024


@dataclass(frozen=True)
class Reliability:
    """Confidence against accuracy, bin by bin of equal width.

    Attributes:
        confidence, accuracy: means of each bin that holds something.
        count: how many it holds.
    """

    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    count: NDArray[np.int64]

    @property
    def ece(self) -> float:
        """Expected calibration error, Σ count/n · |accuracy - confidence| (Guo et al. 2017)."""
        return float(np.average(np.abs(self.accuracy - self.confidence), weights=self.count))


@dataclass(frozen=True)
class Classed:
    """A classifier on labelled data.

    Attributes:
        accuracy: share of the points whose likeliest class is right.
        cross_entropy: -⟨log p(y|x)⟩ in nats.
        ece: expected calibration error; never negative, so chance alone puts a calibrated classifier above 0.
        ece_by_chance: what it would be, on average, if every probability were right.
        reliability: what it is made of.
    """

    accuracy: Estimate
    cross_entropy: Estimate
    ece: Estimate
    ece_by_chance: float
    reliability: Reliability


def class_probabilities(energy: nn.Module, x: Tensor) -> Tensor:
    """p(y|x) of a joint energy, (n, classes), block by block."""
    joint = joint_of(energy)
    with torch.no_grad():
        return torch.cat([joint.logits(part).softmax(1) for part in torch.split(x, BLOCK)])


def judge_classes(probabilities: Tensor, labels: Tensor, *, bins: int = BINS, seed: int = 0) -> Classed:
    """Accuracy, cross-entropy and calibration, with standard errors (of ECE by bootstrap).

    Example:
        >>> import torch
        >>> always = torch.tensor([[0.8, 0.2]]).repeat(10, 1)
        >>> found = judge_classes(always, torch.tensor([0] * 8 + [1] * 2))
        >>> found.accuracy.value, round(found.ece.value, 6)
        (0.8, 0.0)
    """
    if probabilities.dim() != 2 or len(probabilities) != len(labels) or len(labels) < 2:
        raise InputError(
            f"probabilities are {tuple(probabilities.shape)} and labels {tuple(labels.shape)}; wanted "
            "(n, classes) and (n,), n at least 2"
        )
    confidence, chosen = probabilities.double().max(1)
    right = (chosen == labels).double().numpy()
    sure = confidence.numpy()
    own = probabilities.double().gather(1, labels.long().unsqueeze(1)).squeeze(1)
    surprise = -own.clamp(min=1e-300).log().numpy()
    generator = np.random.default_rng(seed)
    drawn, by_chance = [], []
    for _ in range(RESAMPLES):
        row = generator.integers(len(right), size=len(right))
        drawn.append(reliability(sure[row], right[row], bins).ece)
        as_said = (generator.random(len(sure)) < sure).astype(np.float64)
        by_chance.append(reliability(sure, as_said, bins).ece)
    found = reliability(sure, right, bins)
    return Classed(
        accuracy=_mean(right),
        cross_entropy=_mean(surprise),
        ece=Estimate(found.ece, float(np.std(drawn, ddof=1))),
        ece_by_chance=float(np.mean(by_chance)),
        reliability=found,
    )


def reliability(confidence: NDArray[np.float64], right: NDArray[np.float64], bins: int = BINS) -> Reliability:
    """Confidence and accuracy in `bins` bins of equal width from 0 to 1.

    Example:
        >>> import numpy as np
        >>> found = reliability(np.array([0.9, 0.7]), np.array([1.0, 0.0]), bins=2)
        >>> found.count.tolist(), round(found.ece, 6)
        ([2], 0.3)
    """
    place = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    count = np.bincount(place, minlength=bins)
    held = count > 0
    means = [np.bincount(place, values, bins)[held] / count[held] for values in (confidence, right)]
    return Reliability(means[0], means[1], count[held])


def _mean(values: NDArray[np.float64]) -> Estimate:
    return Estimate(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))
