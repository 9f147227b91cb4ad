"""The floor: nothing but the products that an energy and its input gradient cannot do without."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from burnin.bench.cases import Case, make_energy, make_start
from burnin.bench.contestants import Work

Product = Callable[[], object]


def make(case: Case) -> Work:
    """Matrix products or convolutions, forward and to the input; no activation, no noise, no graph."""
    net, start = make_energy(case), make_start(case)
    layers = [layer for layer in net.modules() if isinstance(layer, nn.Linear | nn.Conv2d)]
    products = matrix_products(layers, start) if case.depth else convolutions(layers, start)

    def take(steps: int) -> None:
        with torch.inference_mode():
            for _ in range(steps):
                for product in products:
                    product()

    return Work(take)


def matrix_products(layers: list[nn.Linear | nn.Conv2d], start: Tensor) -> list[Product]:
    """x Wᵀ for every layer, and back g W for all but the last, whose gradient is its weights."""
    products: list[Product] = []
    inputs = start
    for layer in layers:
        weight = layer.weight.detach()
        outputs = torch.empty(len(start), len(weight))
        products.append(_product(inputs, weight.t(), outputs))
        inputs = torch.randn_like(outputs)
    gradient = torch.randn(len(start), layers[-1].weight.shape[1])
    for layer in reversed(layers[:-1]):
        weight = layer.weight.detach()
        outputs = torch.empty(len(start), weight.shape[1])
        products.append(_product(gradient, weight, outputs))
        gradient = torch.randn_like(outputs)
    return products


def _product(left: Tensor, right: Tensor, out: Tensor) -> Product:
    return lambda: torch.mm(left, right, out=out)


def convolutions(layers: list[nn.Linear | nn.Conv2d], start: Tensor) -> list[Product]:
    """Every convolution and its input gradient, and the last linear map."""
    forth: list[Product] = []
    back: list[Product] = []
    inputs = start
    for layer in layers:
        weight = layer.weight.detach()
        if isinstance(layer, nn.Linear):
            flat = inputs.flatten(1)
            forth.append(_product(flat, weight.t(), torch.empty(len(start), 1)))
        else:
            stride = [int(layer.stride[0]), int(layer.stride[1])]
            outputs = torch.nn.functional.conv2d(inputs, weight, None, stride, padding=1)
            forth.append(_convolution(inputs, weight, stride))
            back.append(_input_gradient(torch.randn_like(outputs), inputs, weight, stride))
            inputs = torch.randn_like(outputs)
    return [*forth, *reversed(back)]


def _convolution(inputs: Tensor, weight: Tensor, stride: list[int]) -> Product:
    return lambda: torch.nn.functional.conv2d(inputs, weight, None, stride, padding=1)


def _input_gradient(gradient: Tensor, inputs: Tensor, weight: Tensor, stride: list[int]) -> Product:
    mask = [True, False, False]  # of input, weight and bias
    return lambda: torch.ops.aten.convolution_backward(
        gradient, inputs, weight, None, stride, [1, 1], [1, 1], False, [0, 0], 1, mask
    )
