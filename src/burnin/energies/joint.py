"""A classifier that is also an energy: JEM (Grathwohl et al. 2019; robust, appendix M)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from burnin.closed_form import ClosedForm
from burnin.core import InputError
from burnin.energies.networks import MLP, is_as_made
from burnin.energies.wrappers import Standardised


class JointEnergy(nn.Module):
    """E(x) = -log Σ_y exp(h(x)[y]) of a classifier's logits h, equation 39.

    The density is p(x) ∝ exp(-E(x)/T) as of any energy; appendix M.2's output scale o is 1/T. The classifier
    is p(y|x) = softmax(h(x)), and the joint law p(x, y) = p(x) p(y|x) is that of `of_class` (equation 41).

    Arguments:
        classifier: any module from a batch to logits (n, classes).

    Example:
        >>> import torch
        >>> joint = JointEnergy(torch.nn.Linear(2, 3))
        >>> x = torch.zeros(4, 2)
        >>> joint(x).shape, joint.logits(x).shape
        (torch.Size([4]), torch.Size([4, 3]))
    """

    def __init__(self, classifier: nn.Module) -> None:
        super().__init__()
        self.classifier = classifier

    def logits(self, x: Tensor) -> Tensor:
        """h(x), (n, classes)."""
        value: Tensor = self.classifier(x)
        if value.dim() != 2 or len(value) != len(x) or value.shape[1] < 2:
            raise InputError(
                f"the classifier gave shape {tuple(value.shape)} for a batch of {len(x)}; a joint energy "
                f"needs ({len(x)}, classes) with at least two classes"
            )
        return value

    def forward(self, x: Tensor) -> Tensor:
        """E(x), (n,)."""
        return -torch.logsumexp(self.logits(x), 1)

    def closed_form(self) -> ClosedForm | None:
        """The energy with its input gradient written out, where the classifier is a perceptron."""
        inner = self.classifier.net if isinstance(self.classifier, Standardised) else self.classifier
        form = inner.layers_form() if isinstance(inner, MLP) else None
        if form is None or len(form.weights[-1]) < 2 or not is_as_made(self):
            return None
        if not isinstance(self.classifier, Standardised):
            return form
        mean, std = self.classifier.mean, self.classifier.std
        usual = mean.dim() == 1 and std.dim() == 1 and is_as_made(self.classifier)
        return form.standardised(mean, std) if usual else None


class ClassEnergy(nn.Module):
    """E(x, y) = E(x) - share · log p(y|x): the energy of x within a class.

    With share = T it is that of the joint law, p(x, y) ∝ exp(-E(x, y)/T) (equation 41); chains then hardly
    feel the class when T is small. With share = 1 it is -h(x)[y], which JEM samples: classes as sharp as the
    density.

    Arguments:
        energy: of x; a `JointEnergy`, or one that holds it.
        label: y of every chain, a number or (n,).
        share: the weight of log p(y|x).

    Example:
        >>> import torch
        >>> joint = JointEnergy(torch.nn.Linear(2, 3))
        >>> x = torch.ones(4, 2)
        >>> torch.allclose(ClassEnergy(joint, 1)(x), -joint.logits(x)[:, 1])
        True
    """

    label: Tensor

    def __init__(self, energy: nn.Module, label: int | Tensor, share: float = 1.0) -> None:
        super().__init__()
        if not share > 0:
            raise InputError(f"the share of log p(y|x) is {share}; it must be above 0")
        self.energy, self.joint, self.share = energy, joint_of(energy), share
        self.register_buffer("label", torch.as_tensor(label, dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        """E(x, y), (n,)."""
        log_likely = self.joint.logits(x).log_softmax(1)
        chosen = log_likely.gather(1, self.label.expand(len(x)).unsqueeze(1)).squeeze(1)
        value: Tensor = self.energy(x) - self.share * chosen
        return value


def joint_of(energy: nn.Module) -> JointEnergy:
    """The joint energy that an energy is, or holds.

    Raises:
        InputError: when it holds none: it is no classifier.
    """
    for module in energy.modules():
        if isinstance(module, JointEnergy):
            return module
    raise InputError("this model is no classifier: train it with labels (a recipe with a [joint] section)")
