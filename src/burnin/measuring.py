"""Samples of pictures beside real ones: every number with its features, its n, and what real data gets."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from burnin.core import InputError, Report
from burnin.evaluation.coverage import OF_DENSITY, Coverage, coverage_of
from burnin.evaluation.features import NO_CLASSES, Extracted, Features, Pixels, extract
from burnin.evaluation.frechet import SPLITS, frechet_distance, inception_score, unavailable
from burnin.evaluation.kernel_distance import GROUPS, kernel_distance
from burnin.evaluation.memorisation import Memorisation, memorisation

FEWEST = max(2 * GROUPS, 2 * SPLITS, OF_DENSITY + 1)
SHOWN = 4
"""Neighbours of a sample that are kept to be looked at."""


@dataclass(frozen=True)
class Measure:
    """A number of samples.

    Attributes:
        name: what it is.
        features: the name of what pictures are compared by.
        value: the number; None where it could not be measured.
        n: how many samples it is of.
        against: how many real pictures they are compared with; 0 where there are none.
        error: its standard error, where it is known.
        real: the same number of real pictures in place of the samples; None where there are none.
        real_n: how many they are.
        note: why there is no number, or what is to be known of it.
    """

    name: str
    features: str
    value: float | None
    n: int
    against: int
    error: float | None = None
    real: float | None = None
    real_n: int = 0
    note: str = ""

    def line(self) -> str:
        """For a terminal."""
        if self.value is None:
            return f"{self.name:<22} not measured  [{self.features}]  {self.note}"
        error = "" if self.error is None else f" ± {self.error:.2g}"
        counts = f"n {self.n}" + (f" vs {self.against}" if self.against else "")
        real = "" if self.real is None else f"real data {self.real:.4g} (n {self.real_n})"
        told = "  ".join(part for part in (real, self.note) if part)
        return f"{self.name:<22} {self.value:<.4g}{error}  [{counts}; {self.features}]  {told}".rstrip()

    def as_dict(self) -> dict[str, object]:
        """For a program."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Real:
    """Real pictures, as bytes with 255 the brightest, (n, channels, height, width).

    Attributes:
        reference: what samples are compared with.
        fresh: others of the same law, none among the reference, for the numbers that real data gets; they may
            be none.
        training: what the model was trained on, to look for copies.
        held_out: of the same law, not trained on; None where there are none, and then copies are not told.
    """

    reference: Tensor
    fresh: Tensor
    training: Tensor
    held_out: Tensor | None


@dataclass(frozen=True, eq=False)
class Measured:
    """All numbers, and the samples' neighbours by pixels and by features, where they were looked for."""

    measures: tuple[Measure, ...]
    by_pixels: Memorisation | None
    by_features: Memorisation | None


def choose(pool: Tensor, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """n pictures (or as many as there are), drawn without replacement, and the others."""
    order = torch.randperm(len(pool), generator=generator)
    return pool[order[:n]], pool[order[n:]]


def require_enough(samples: int, reference: int) -> None:
    """Raises InputError when there are too few pictures for errors, splits and neighbours."""
    if min(samples, reference) < FEWEST:
        raise InputError(
            f"there are {samples} samples and {reference} reference pictures; at least {FEWEST} of each are "
            "needed: raise --samples, or give more pictures"
        )


def measure(
    samples: Tensor, real: Real, features: Features, *, seed: int = 0, report: Report | None = None
) -> Measured:
    """Fréchet and kernel distance, Inception Score, precision and recall, density and coverage, memorisation.

    Arguments:
        samples: bytes, 255 the brightest, (n, channels, height, width).
        real: what they are compared with.
        features: what they are compared by.
        seed: of the splits of the Inception Score.
        report: told how far it is.

    Raises:
        InputError: when there are fewer than 40 samples or reference pictures.
    """
    require_enough(len(samples), len(real.reference))

    def seen(pixels: Tensor, what: str) -> Extracted:
        return extract(features, pixels, what=f"features of {what}", report=report)

    drawn, reference = seen(samples, "samples"), seen(real.reference, "reference pictures")
    fresh = seen(real.fresh, "further pictures") if len(real.fresh) >= FEWEST else None
    distances = _distances(drawn, reference, fresh, features.name)
    score = _score(drawn, reference, features.name, seed)
    shares = _shares(drawn, reference, fresh, features.name)
    if real.held_out is None:
        why = "no pictures were held out of training; give others of the same kind with --data"
        missing = Measure("memorisation", features.name, None, len(samples), 0, note=why)
        return Measured((*distances, score, *shares, missing), None, None)
    by_pixels = memorisation(
        Pixels()(samples).features,
        Pixels()(real.training).features,
        Pixels()(real.held_out).features,
        neighbours=min(SHOWN, len(real.training)),
        what="nearest training pictures by pixels",
        report=report,
    )
    by_features = None
    if not isinstance(features, Pixels):
        by_features = memorisation(
            drawn.features,
            seen(real.training, "training pictures").features,
            seen(real.held_out, "held-out pictures").features,
            neighbours=min(SHOWN, len(real.training)),
            what="nearest training pictures by features",
            report=report,
        )
    found = [_memorised(by_pixels, Pixels().name)]
    found += [] if by_features is None else [_memorised(by_features, features.name)]
    return Measured(
        (*distances, score, *shares, *(m for pair in found for m in pair)), by_pixels, by_features
    )


def _distances(drawn: Extracted, reference: Extracted, fresh: Extracted | None, name: str) -> list[Measure]:
    x, y, n, m = drawn.features, reference.features, len(drawn.features), len(reference.features)
    z = None if fresh is None else fresh.features
    real_n = 0 if z is None else len(z)
    why = unavailable()
    if why is None:
        floor = None if z is None else frechet_distance(z, y)
        frechet = Measure("Fréchet distance", name, frechet_distance(x, y), n, m, None, floor, real_n)
    else:
        frechet = Measure("Fréchet distance", name, None, n, m, note=why)
    kernel = kernel_distance(x, y)
    floor = None if z is None else kernel_distance(z, y).value
    return [frechet, Measure("kernel distance (KID)", name, kernel.value, n, m, kernel.error, floor, real_n)]


def _score(drawn: Extracted, reference: Extracted, name: str, seed: int) -> Measure:
    n = len(drawn.features)
    if drawn.probabilities is None or reference.probabilities is None:
        return Measure("Inception Score", name, None, n, 0, note=NO_CLASSES)
    why = unavailable()
    if why is not None:
        return Measure("Inception Score", name, None, n, 0, note=why)
    own = inception_score(drawn.probabilities, seed=seed)
    of_real = inception_score(reference.probabilities, seed=seed).value
    return Measure("Inception Score", name, own.value, n, 0, own.error, of_real, len(reference.features))


def _shares(drawn: Extracted, reference: Extracted, fresh: Extracted | None, name: str) -> list[Measure]:
    n, m = len(drawn.features), len(reference.features)
    own = coverage_of(drawn.features, reference.features)
    of_real: Coverage | None = None if fresh is None else coverage_of(fresh.features, reference.features)
    real_n = 0 if fresh is None else len(fresh.features)
    return [
        Measure(what, name, value, n, m, None, None if of_real is None else asdict(of_real)[what], real_n)
        for what, value in asdict(own).items()
    ]


def _memorised(found: Memorisation, name: str) -> tuple[Measure, Measure]:
    counts = f"{found.training} training and {found.held_out} held-out pictures"
    share = f"0.5 for fresh data; z {found.z:+.1f}; {counts}"
    return (
        Measure("nearer than held-out", name, found.nearer, found.samples, found.training, note=share),
        Measure(
            "copies", name, found.copies, found.samples, found.training, note=f"0.01 for fresh data; {counts}"
        ),
    )
