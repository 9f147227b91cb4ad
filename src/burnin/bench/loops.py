"""The same steps as a competent person writes them by hand in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from burnin.bench.cases import (
    ARM_WEIGHTS,
    LEARNING_RATE,
    NUM_LEAPFROG,
    SEEDS,
    STEP_SIZE,
    TEMPERATURE,
    Case,
    make_default_energy,
    make_start,
)
from burnin.bench.contestants import Work
from burnin.data import make_density

NOISE = math.sqrt(2 * STEP_SIZE * TEMPERATURE)
Chain = Callable[[nn.Module, Tensor, int], Tensor]


def grad_loop(case: Case) -> Work:
    """Loops over torch.autograd.grad, which leaves the weights' gradients out: the ratios' baseline."""
    return _make(case, langevin_grad)


def backward_loop(case: Case) -> Work:
    """Loops over .backward(), which many scripts use and which computes the weights' gradients too."""
    return _make(case, langevin_backward)


def _make(case: Case, langevin: Chain) -> Work:
    if case.kind == "training":
        return _updates(case, langevin)
    chain = {"langevin": langevin, "mala": mala, "hmc": hmc}[case.kind]
    net, start = make_default_energy(case), make_start(case)

    def take(steps: int) -> None:
        chain(net, start, steps)

    return Work(take)


def langevin_grad(net: nn.Module, start: Tensor, steps: int) -> Tensor:
    """Langevin in place, with torch.autograd.grad."""
    x = start.clone().requires_grad_(True)
    for _ in range(steps):
        (gradient,) = torch.autograd.grad(net(x).sum(), x)
        with torch.no_grad():
            x.add_(gradient, alpha=-STEP_SIZE).add_(torch.randn_like(x), alpha=NOISE)
    return x.detach()


def langevin_backward(net: nn.Module, start: Tensor, steps: int) -> Tensor:
    """Langevin in place, with .backward()."""
    x = start.clone().requires_grad_(True)
    for _ in range(steps):
        net(x).sum().backward()
        assert x.grad is not None
        with torch.no_grad():
            x.add_(x.grad, alpha=-STEP_SIZE).add_(torch.randn_like(x), alpha=NOISE)
        x.grad = None
    return x.detach()


def mala(net: nn.Module, start: Tensor, steps: int) -> Tensor:
    """MALA that carries the accepted energy and gradient over."""
    x = start
    energy, gradient = _value_and_gradient(net, x)
    for _ in range(steps):
        noise = torch.randn_like(x)
        new = x - STEP_SIZE * gradient + NOISE * noise
        new_energy, new_gradient = _value_and_gradient(net, new)
        back = (x - new + STEP_SIZE * new_gradient).square().sum(1) / (4 * STEP_SIZE * TEMPERATURE)
        forth = noise.square().sum(1) / 2
        log_ratio = (energy - new_energy) / TEMPERATURE - back + forth
        accepted = torch.rand_like(log_ratio).log() < log_ratio
        x = torch.where(accepted[:, None], new, x)
        gradient = torch.where(accepted[:, None], new_gradient, gradient)
        energy = torch.where(accepted, new_energy, energy)
    return x


def hmc(net: nn.Module, start: Tensor, steps: int) -> Tensor:
    """HMC that carries the accepted energy and gradient over."""
    x = start
    energy, gradient = _value_and_gradient(net, x)
    for _ in range(steps):
        momentum = torch.randn_like(x) * math.sqrt(TEMPERATURE)
        before = energy + momentum.square().sum(1) / 2
        new, new_gradient = x, gradient
        for _ in range(NUM_LEAPFROG):
            momentum = momentum - STEP_SIZE / 2 * new_gradient
            new = new + STEP_SIZE * momentum
            new_energy, new_gradient = _value_and_gradient(net, new)
            momentum = momentum - STEP_SIZE / 2 * new_gradient
        after = new_energy + momentum.square().sum(1) / 2
        accepted = torch.rand_like(after).log() < (before - after) / TEMPERATURE
        x = torch.where(accepted[:, None], new, x)
        gradient = torch.where(accepted[:, None], new_gradient, gradient)
        energy = torch.where(accepted, new_energy, energy)
    return x


def _value_and_gradient(net: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    x = x.detach().requires_grad_(True)
    energy = net(x)
    (gradient,) = torch.autograd.grad(energy.sum(), x)
    return energy.detach(), gradient


def _updates(case: Case, langevin: Chain) -> Work:
    """The straightforward script of the hybrid scheme: one arm's chains after the other's."""
    net, density = make_default_energy(case), make_density(case.density)
    optimizer = torch.optim.Adam(net.parameters(), lr=LEARNING_RATE)
    stream = torch.Generator().manual_seed(SEEDS["chains"])

    def take(updates: int) -> None:
        for _ in range(updates):
            data = density.sample(case.chains, stream)
            starts = {"noise": torch.randn_like(data), "data": data}
            negatives = {name: langevin(net, start, case.arm_steps) for name, start in starts.items()}
            positive = net(data).mean()
            loss = positive.new_zeros(())
            for name, weight in ARM_WEIGHTS.items():
                loss = loss + weight * (positive - net(negatives[name]).mean())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return Work(take)
