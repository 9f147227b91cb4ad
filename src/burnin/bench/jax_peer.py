"""The same network and the same steps in JAX, jit-compiled, float32, random numbers drawn inside."""

from __future__ import annotations

import math
from typing import Any

from torch import nn

from burnin.bench.cases import SEEDS, STEP_SIZE, TEMPERATURE, Case, make_energy, make_start
from burnin.bench.contestants import Work


def make(case: Case) -> Work:
    """jit + scan over the steps; for a ConvNet jit of one step.

    On CPU, XLA runs convolutions inside a scan several times slower than outside, so there the faster
    way is a Python loop over a jitted step. Weights are arguments, so training would not recompile.
    """
    import jax

    weights, start = _weights(case), _start(case)
    noise = math.sqrt(2 * STEP_SIZE * TEMPERATURE)
    gradient = jax.grad(lambda x, weights: _energy(x, weights).sum())

    def step(x: Any, key: Any, weights: Any) -> Any:
        return x - STEP_SIZE * gradient(x, weights) + noise * jax.random.normal(key, x.shape, x.dtype)

    def chain(x: Any, keys: Any, weights: Any) -> Any:
        return jax.lax.scan(lambda carried, key: (step(carried, key, weights), None), x, keys)[0]

    whole, single = jax.jit(chain), jax.jit(step)
    key = jax.random.key(SEEDS["chains"])

    def take(steps: int) -> None:
        nonlocal key
        key, mine = jax.random.split(key)
        keys = jax.random.split(mine, steps)
        if case.depth:
            whole(start, keys, weights).block_until_ready()
            return
        x = start
        for i in range(steps):
            x = single(x, keys[i], weights)
        x.block_until_ready()

    return Work(take)


def _energy(x: Any, weights: Any) -> Any:
    """E(x) from the layers' weights: (matrix, bias), or (kernel, bias) with the stride in its size."""
    import jax

    for weight, bias in weights[:-1]:
        if weight.ndim == 2:
            x = x @ weight
        else:
            stride = 1 if weight.shape[0] == 3 else 2
            x = jax.lax.conv_general_dilated(
                x, weight, (stride, stride), ((1, 1), (1, 1)), dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
        x = jax.nn.silu(x + bias)
    weight, bias = weights[-1]
    return (x.reshape(len(x), -1) @ weight + bias)[:, 0]


def _weights(case: Case) -> list[tuple[Any, Any]]:
    """The torch network's weights; channels last, which is what XLA is fastest with on CPU."""
    import jax.numpy as jnp

    layers = [layer for layer in make_energy(case).modules() if isinstance(layer, nn.Linear | nn.Conv2d)]
    weights = []
    channels = 0
    for layer in layers:
        weight = layer.weight.detach()
        if isinstance(layer, nn.Conv2d):
            channels = len(weight)
            weight = weight.permute(2, 3, 1, 0)
        elif channels:  # flattened images: channels first there, last here
            pixels = weight.shape[1] // channels
            weight = weight.reshape(-1, channels, pixels).transpose(1, 2).flatten(1).t()
        else:
            weight = weight.t()
        assert layer.bias is not None
        weights.append((jnp.asarray(weight.numpy()), jnp.asarray(layer.bias.detach().numpy())))
    return weights


def _start(case: Case) -> Any:
    import jax.numpy as jnp

    start = make_start(case)
    return jnp.asarray((start if case.depth else start.permute(0, 2, 3, 1)).numpy())
