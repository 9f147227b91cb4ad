"""A classifier as an energy: equation 39, the joint law of equation 41, and JEM's network."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from burnin.core import InputError, energy_and_gradient
from burnin.energies import MLP, ClassEnergy, GaussianFactor, JointEnergy, Standardised, WideResNet, joint_of


def classifier(classes: int = 4) -> MLP:
    return MLP(3, width=8, depth=2, generator=torch.Generator().manual_seed(0), outputs=classes)


def test_the_energy_is_minus_the_log_of_the_summed_exponentials() -> None:
    net, x = classifier(), torch.randn(6, 3, generator=torch.Generator().manual_seed(1))
    joint = JointEnergy(net)
    torch.testing.assert_close(joint(x), -net(x).exp().sum(1).log())
    value, gradient = energy_and_gradient(joint, x)
    y = x.clone().requires_grad_(True)
    by_class = [torch.autograd.grad(net(y)[:, k].sum(), y)[0] for k in range(4)]
    chances = net(x).softmax(1)
    expected = -sum(chances[:, k, None] * by_class[k] for k in range(4))
    torch.testing.assert_close(gradient, expected)
    torch.testing.assert_close(value, joint(x))


def test_the_law_of_x_and_y_is_p_of_x_times_p_of_y_given_x() -> None:
    """Equation 41: Σ_y exp(-E(x, y)/T) is exp(-E(x)/T), and its shares are the classifier's."""
    joint, temperature = JointEnergy(classifier()), 0.05
    x = torch.randn(6, 3, generator=torch.Generator().manual_seed(1))
    by_class = torch.stack([-ClassEnergy(joint, y, temperature)(x) / temperature for y in range(4)], 1)
    torch.testing.assert_close(by_class.logsumexp(1), -joint(x) / temperature)
    torch.testing.assert_close(by_class.softmax(1), joint.logits(x).softmax(1), rtol=1e-4, atol=1e-5)
    labels = torch.tensor([0, 1, 2, 3, 0, 1])
    torch.testing.assert_close(ClassEnergy(joint, labels)(x), -joint.logits(x)[torch.arange(6), labels])


def test_the_classifier_is_found_under_wrappers() -> None:
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(1))
    inner = JointEnergy(Standardised(classifier(), torch.ones(3), 2 * torch.ones(3)))
    outer = GaussianFactor(inner, torch.zeros(3), torch.ones(3), temperature=0.5)
    assert joint_of(outer) is inner
    torch.testing.assert_close(joint_of(outer).logits(x), classifier()((x - 1) / 2))
    assert outer(x).shape == (5,)
    assert classifier().closed_form() is None


def test_what_is_no_classifier_is_refused() -> None:
    with pytest.raises(InputError, match="no classifier"):
        joint_of(MLP(3, width=4, depth=1, generator=torch.Generator()))
    with pytest.raises(InputError, match="at least two classes"):
        JointEnergy(nn.Linear(3, 1))(torch.zeros(2, 3))
    with pytest.raises(InputError, match="above 0"):
        ClassEnergy(JointEnergy(classifier()), 0, 0.0)


@pytest.mark.parametrize(("width", "parameters"), [(10, 36_471_338), (2, 1_466_026)])
def test_the_wide_residual_network_has_as_many_parameters_as_the_public_one(
    width: int, parameters: int
) -> None:
    net = WideResNet((3, 32, 32), depth=28, width=width, outputs=10, generator=torch.Generator())
    assert sum(p.numel() for p in net.parameters()) == parameters


def test_a_wide_residual_network_does_not_depend_on_its_batch() -> None:
    net = WideResNet((1, 7, 5), depth=10, width=1, outputs=3, generator=torch.Generator().manual_seed(0))
    x = torch.randn(8, 35, generator=torch.Generator().manual_seed(1))
    alone = torch.cat([net(one) for one in torch.split(x, 1)])
    torch.testing.assert_close(net(x), alone, rtol=1e-4, atol=1e-5)
    assert net(x.reshape(8, 1, 7, 5)).shape == (8, 3)
    one = WideResNet((1, 7, 5), depth=10, width=1, outputs=1, generator=torch.Generator())
    assert one(x).shape == (8,)
    with pytest.raises(InputError, match="10, 16, 22, 28"):
        WideResNet((1, 8, 8), depth=12, width=1, outputs=3, generator=torch.Generator())
    with pytest.raises(InputError, match="at least 1"):
        WideResNet((1, 8, 8), depth=10, width=0, outputs=3, generator=torch.Generator())
