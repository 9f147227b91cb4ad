"""A joint model as a classifier, judged on the labelled pictures that it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from burnin.core import InputError
from burnin.data import Pictures, clean, held_out
from burnin.energies import JointEnergy, joint_of
from burnin.evaluation.calibration import Classed, class_probabilities, judge_classes
from burnin.evaluation.model import Model


@dataclass(frozen=True, eq=False)
class HeldOutClasses:
    """What a classifier says of pictures that were held out.

    Attributes:
        pictures: they.
        rows: as the energy takes them, (n, dim).
        labels: their classes.
        probabilities: p(y|x), (n, classes).
        names: of the classes.
        found: how right and how calibrated it is.
    """

    pictures: Pictures
    rows: Tensor
    labels: Tensor
    probabilities: Tensor
    names: tuple[str, ...]
    found: Classed


def classify_held_out(model: Model, generator: torch.Generator) -> HeldOutClasses:
    """Judges a joint model on what was held out; the generator dequantises where pictures are in logits.

    Raises:
        InputError: when the model is no classifier, or its data has no labels.
    """
    joint_of(model.energy)
    held = clean(held_out(model.data))
    if not isinstance(held, Pictures) or held.labels is None:
        raise InputError("there are no labelled pictures to judge this model on")
    rows = held.rows(held.pixels, generator)
    probabilities = class_probabilities(model.energy, rows)
    found = judge_classes(probabilities, held.labels)
    names = class_names(model, probabilities.shape[1])
    return HeldOutClasses(held, rows, held.labels, probabilities, names, found)


def is_classifier(model: Model) -> bool:
    """Whether the model's energy is that of a classifier."""
    return any(isinstance(module, JointEnergy) for module in model.energy.modules())


def class_names(model: Model, classes: int) -> tuple[str, ...]:
    """The data's own names, or numbers."""
    own = () if model.pictures is None else model.pictures.classes
    return own if len(own) == classes else tuple(map(str, range(classes)))


def accept_class(model: Model, given: str) -> Callable[[Tensor, torch.Generator], Tensor]:
    """Keeps each point x with the chance p(y|x), so that draws of p(x) become draws of p(x|y).

    Arguments:
        model: a joint model.
        given: the class, by name or number.
    """
    label, energy = class_number(model, given), model.energy

    def accept(x: Tensor, generator: torch.Generator) -> Tensor:
        return torch.rand(len(x), generator=generator) < class_probabilities(energy, x)[:, label]

    return accept


def class_number(model: Model, given: str) -> int:
    """Which class a user means, by name or by number.

    Raises:
        InputError: when there is no such class, with those that there are.
    """
    logits = joint_of(model.energy).logits(torch.zeros(1, model.data.dim))
    names = class_names(model, logits.shape[1])
    if given in names:
        return names.index(given)
    if given.isdecimal() and int(given) < len(names):
        return int(given)
    raise InputError(f"there is no class {given!r}; there are {', '.join(names)}")
