"""What processes tell each other in an update, from a recipe's own network, and what it costs on paper."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from burnin.assemble_chains import build_arms
from burnin.assemble_data import build_energy
from burnin.data import Pictures
from burnin.settings import Config

FLOAT, DOUBLE = 4, 8
ARM_NUMBERS = 5
"""Of each arm: r, acceptance, step size, stopped chains, non-finite proposals."""


@dataclass(frozen=True)
class Traffic:
    """Bytes that a process gives to sums over all of them in one update.

    Attributes:
        gradients: of all weights.
        energies: of the batch's data and negatives, and how many there are.
        numbers: of each arm, and whether Ctrl-C was pressed.
        exchange: positions of a bank's chains that travel, there and back.
        messages: sums in an update.
    """

    gradients: int
    energies: int
    numbers: int
    exchange: int
    messages: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.gradients + self.energies + self.numbers + self.exchange


def traffic_of(weights: int, batch_size: int, chains: list[int], exchanged: int = 0) -> Traffic:
    """The traffic of an update.

    Arguments:
        weights: how many numbers the network has.
        batch_size: data points of all processes.
        chains: of each arm, on all processes.
        exchanged: numbers of the chains of a bank that travel: chains × dimensions.
    """
    return Traffic(
        gradients=FLOAT * weights,
        energies=FLOAT * (batch_size + sum(chains)) + DOUBLE * (1 + len(chains)),
        numbers=DOUBLE * ARM_NUMBERS * len(chains) + FLOAT,
        exchange=2 * FLOAT * exchanged,
        messages=5 + (2 if exchanged else 0),
    )


@dataclass(frozen=True)
class Hardware:
    """What is assumed of GPUs and of what connects them.

    Attributes:
        flops: that a GPU makes in a second of this network, 32-bit convolutions.
        bandwidth: bytes a second into and out of each GPU.
        latency: seconds of one message.
        normals: normal random numbers that a GPU draws in a second.
    """

    flops: float = 2e13
    bandwidth: float = 2.5e10
    latency: float = 1e-5
    normals: float = 5e10


def on_paper(config: Config, shape: tuple[int, int, int], hardware: Hardware) -> dict[str, Any]:
    """An update of a recipe on 8, 64 and 512 GPUs, each with the recipe's batch: bytes, times, efficiency.

    A sum of B bytes over w GPUs in a ring takes 2 (w - 1)/w · B/bandwidth, and 2 log₂(w) latencies. Every GPU
    draws the noise of all chains and keeps that of its own.

    Arguments:
        config: the recipe.
        shape: of one picture.
        hardware: what is assumed.
    """
    dim, stream = math.prod(shape), torch.Generator().manual_seed(0)
    pictures = Pictures(torch.zeros(2, *shape, dtype=torch.uint8))
    energy = build_energy(config, pictures, torch.zeros(dim), torch.ones(dim), stream)
    weights = sum(parameter.numel() for parameter in energy.parameters())
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        energy(torch.zeros(1, dim))
    # The gradient with respect to the input takes as many again: each product once more, transposed.
    flops, batch = 2 * counter.get_total_flops(), config.run.batch_size
    arms = build_arms(config, dim, stream)
    chain_steps = sum(arm.num_steps * (arm.num_chains or batch) for arm in arms)
    compute = chain_steps * flops / hardware.flops
    own_noise = chain_steps * (dim + 1) / hardware.normals
    rows = {}
    for gpus in (8, 64, 512):
        chains = [(arm.num_chains or batch) * gpus for arm in arms]
        traffic = traffic_of(weights, batch * gpus, chains)
        sending = 2 * (gpus - 1) / gpus * traffic.total / hardware.bandwidth
        sending += traffic.messages * 2 * math.log2(gpus) * hardware.latency
        drawing = gpus * own_noise
        spent = compute + sending + drawing
        rows[str(gpus)] = asdict(traffic) | {
            "total": traffic.total,
            "compute_seconds": compute,
            "send_seconds": sending,
            "draw_seconds": drawing,
            "efficiency": (compute + own_noise) / spent,
            "exchange_bytes": traffic_of(weights, batch * gpus, chains, dim * batch * gpus).exchange,
        }
    return {
        "title": config.title,
        "weights": weights,
        "flops_of_a_gradient": flops,
        "chain_steps": chain_steps,
        "assumed": asdict(hardware),
        "gpus": rows,
    }


def on_paper_words(paper: dict[str, Any]) -> str:
    """The table for the docs, and what it assumes."""
    lines = [
        "| GPUs | gradients, MB | energies, kB | a bank's exchange, MB | computing, s | sending, s | "
        "drawing, s | efficiency |",
        "|---" * 8 + "|",
    ]
    for gpus, row in paper["gpus"].items():
        lines.append(
            f"| {gpus} | {row['gradients'] / 1e6:.1f} | {row['energies'] / 1e3:.1f} | "
            f"{row['exchange_bytes'] / 1e6:.1f} | {row['compute_seconds']:.2f} | {row['send_seconds']:.4f} | "
            f"{row['draw_seconds']:.3f} | {row['efficiency']:.3f} |"
        )
    assumed = paper["assumed"]
    return "\n".join(lines) + (
        f"\n\n{paper['weights']:,} weights, {paper['flops_of_a_gradient'] / 1e9:.2f} GFLOP for a gradient, "
        f"{paper['chain_steps']:,} of them on each GPU. Assumed: {assumed['flops'] / 1e12:g} TFLOP/s, "
        f"{assumed['bandwidth'] / 1e9:g} GB/s and {1e6 * assumed['latency']:g} µs between GPUs, "
        f"{assumed['normals'] / 1e9:g} billion normal numbers a second. The exchange is that "
        "of a bank with `scheme.exchange`, and not in the times.\n"
    )
