"""Wrappers: how an energy sees its coordinates, and a Gaussian factor beside it."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from burnin.closed_form import ClosedForm, closed_form
from burnin.core import InputError, evaluate
from burnin.energies.networks import is_as_made


class Standardised(nn.Module):
    """E(x) = net((x - mean) / std): the network sees inputs of mean 0 and variance 1.

    The density stays one of x: the change of variables is a constant, which an energy does not know.

    Example:
        >>> import torch
        >>> energy = Standardised(torch.nn.Linear(2, 1), mean=torch.zeros(2), std=torch.tensor([1.0, 0.1]))
        >>> energy(torch.ones(3, 2)).shape
        torch.Size([3])
    """

    mean: Tensor
    std: Tensor

    def __init__(self, net: nn.Module, mean: Tensor, std: Tensor) -> None:
        super().__init__()
        if not bool((std > 0).all()):
            constant = [int(i) for i in (~(std > 0)).nonzero().flatten()]
            raise InputError(f"dimensions {constant} are constant (no variance); leave them out")
        self.net = net
        self.register_buffer("mean", mean.clone())
        self.register_buffer("std", std.clone())

    def forward(self, x: Tensor) -> Tensor:
        """The network of the standardised input: its energy, or a classifier's logits."""
        value: Tensor = self.net((x - self.mean) / self.std)
        return value.squeeze(1) if value.shape == (len(x), 1) else value

    def closed_form(self) -> ClosedForm | None:
        """That of the network in these coordinates, where it has one."""
        form = closed_form(self.net)
        if form is None or self.mean.dim() != 1 or self.std.dim() != 1 or not is_as_made(self):
            return None
        return form.standardised(self.mean, self.std)


class GaussianFactor(nn.Module):
    """E(x) = net(x) + T · ½ Σ ((x - μ)/σ)², that is p(x) ∝ exp(-net(x)/T) · N(x; μ, σ²), stein (15).

    The factor holds the density together far from the data, where no network was trained. It starts at
    the given mean and standard deviation and is learned along with the network, or fixed.

    Example:
        >>> import torch
        >>> factor = GaussianFactor(torch.nn.Linear(1, 1), torch.zeros(1), torch.ones(1), temperature=0.5)
        >>> factor.log_std.exp()
        tensor([1.])
        >>> learned = GaussianFactor(factor.net, factor.mean, torch.ones(1), temperature=0.5, learned=True)
        >>> sorted(name for name, _ in learned.named_parameters())
        ['log_std', 'mean', 'net.bias', 'net.weight']
    """

    mean: Tensor
    log_std: Tensor

    def __init__(
        self, net: nn.Module, mean: Tensor, std: Tensor, *, temperature: float, learned: bool = False
    ) -> None:
        super().__init__()
        self.net = net
        self.temperature = temperature
        if learned:
            self.mean = nn.Parameter(mean.clone())
            self.log_std = nn.Parameter(std.log())
        else:
            self.register_buffer("mean", mean.clone())
            self.register_buffer("log_std", std.log())

    def forward(self, x: Tensor) -> Tensor:
        """The network's energy plus the factor's."""
        z = (x - self.mean) * torch.exp(-self.log_std)
        return evaluate(self.net, x) + 0.5 * self.temperature * z.square().flatten(1).sum(1)

    def closed_form(self) -> ClosedForm | None:
        """That of the network with the factor beside it as it is now, where it has one.

        A form that was made before a learned factor moved does not follow it; chains ask for one anew.
        """
        form = closed_form(self.net)
        if form is None or form.centre is not None or self.mean.dim() != 1 or not is_as_made(self):
            return None
        stiffness = self.temperature * torch.exp(-2 * self.log_std.detach())
        return replace(form, centre=self.mean.detach(), stiffness=stiffness)
