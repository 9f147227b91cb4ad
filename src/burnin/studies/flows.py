"""A small flow of pictures by normflows (stein, B.3), trained in legs that resume: for flow-rank."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import torch
from filelock import FileLock
from pydantic import Field
from torch import Tensor
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from burnin.core import InputError, Report
from burnin.data import Pictures
from burnin.rng import Streams
from burnin.settings import Count, Part

if TYPE_CHECKING:
    from normflows import MultiscaleFlow


class FlowPart(Part):
    """A Glow of additive couplings, and how long it trains between two checkpoints.

    What is looked at is an exponential mean of its weights, `average` the share that an update keeps of it:
    at a constant rate likelihoods hardly waver, but scores do.
    """

    levels: Count = 2
    blocks: Count = 4
    channels: Count = 128
    batch_size: Count = 64
    updates: Count = 1000
    learning_rate: float = 1e-4
    average: Annotated[float, Field(ge=0, lt=1)] = 0.0


def build_flow(shape: tuple[int, int, int], settings: FlowPart, seed: int) -> MultiscaleFlow:
    """The flow at its start: `levels` times a squeeze and `blocks` of actnorm, 1×1 convolution and coupling.

    Raises:
        InputError: without normflows, or for pictures that cannot be halved so often.
    """
    try:
        import normflows
        from normflows.flows.affine.glow import GlowBlock
    except ImportError as error:
        raise InputError("flow-rank needs normflows: pip install 'burnin[flows]'") from error
    channels, height, width = shape
    levels = settings.levels
    if height % 2**levels or width % 2**levels:
        raise InputError(f"pictures of {height}×{width} cannot be halved {levels} times; lower flow.levels")
    bases, flows, merges = [], [], []
    # normflows draws its first weights from torch's global generator, which is left as it was.
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.lu is deprecated")
        torch.manual_seed(seed)
        for level in range(levels):
            inside = channels * 2 ** (levels + 1 - level)
            steps = [GlowBlock(inside, settings.channels, scale=False) for _ in range(settings.blocks)]
            flows.append([*steps, normflows.flows.Squeeze()])
            halved = 2 ** (levels - level)
            kept = inside if level == 0 else inside // 2
            bases.append(normflows.distributions.DiagGaussian((kept, height // halved, width // halved)))
            if level > 0:
                merges.append(normflows.flows.Merge())
        return normflows.MultiscaleFlow(bases, flows, merges, class_cond=False)


def flow_log_prob(flow: MultiscaleFlow, shape: tuple[int, int, int]) -> Callable[[Tensor], Tensor]:
    """Its log-density of flat rows."""

    def log_prob(x: Tensor) -> Tensor:
        value: Tensor = flow.log_prob(x.reshape(len(x), *shape), None)
        return value

    return log_prob


def flow_after(
    folder: Path, data: Pictures, settings: FlowPart, legs: int, seed: int, report: Report
) -> MultiscaleFlow:
    """The flow after so many legs of `updates`: from its file, or trained on from the newest before it.

    Each leg draws its batches from a stream of its own, so that the flow is the same however often training
    was cut off. Rows that are made side by side wait for each other here.

    Arguments:
        folder: where a file is kept for each leg.
        data: in logits.
        settings: of the flow.
        legs: at least 1.
        seed: of its weights and batches.
        report: told how far training is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    flow = build_flow(data.shape, settings, seed)
    with FileLock(folder / "lock"):
        done = max((leg for leg in range(1, legs + 1) if _file(folder, leg).exists()), default=0)
        optimizer: torch.optim.Optimizer | None = None
        mean = AveragedModel(flow, multi_avg_fn=get_ema_multi_avg_fn(settings.average))  # type: ignore[no-untyped-call]
        if done:
            saved = torch.load(_file(folder, done), weights_only=True)
            flow.load_state_dict(saved["flow"])
            mean.load_state_dict(saved["mean"])
            optimizer = _optimizer(flow, settings)
            optimizer.load_state_dict(saved["optimizer"])
        for leg in range(done + 1, legs + 1):
            generator = Streams(seed)[f"leg{leg}"]
            for update in range(settings.updates):
                x = data.sample(settings.batch_size, generator)
                if optimizer is None:  # actnorm takes its first values from the first batch
                    with torch.no_grad():
                        flow.log_prob(x.reshape(len(x), *data.shape), None)
                    optimizer = _optimizer(flow, settings)
                optimizer.zero_grad(set_to_none=True)
                loss = -flow_log_prob(flow, data.shape)(x).mean()
                if not bool(loss.isfinite()):
                    raise InputError(f"the flow's likelihood is {loss.item()}; lower flow.learning_rate")
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                mean.update_parameters(flow)
                report("training the flow", (leg - 1) * settings.updates + update, legs * settings.updates)
            assert optimizer is not None
            parts = {"flow": flow, "mean": mean, "optimizer": optimizer}
            _save(folder, leg, {name: part.state_dict() for name, part in parts.items()})
    averaged: MultiscaleFlow = mean.module
    return averaged.eval().requires_grad_(False)


def bits_per_dim(log_prob: Tensor, x: Tensor, levels: int = 255) -> Tensor:
    """Bits for each pixel of dequantised bytes, from their log-density in logits, (n,).

    With v = (levels + 1)·sigmoid(x) the dequantised byte, log p(v) = log p(x) - Σ log((levels + 1) s(1 - s)),
    s = sigmoid(x); its mean bounds that of the bytes' own log-probability from below.

    Example:
        >>> x = torch.zeros(1, 3)
        >>> uniform = functional.logsigmoid(x).sum(1) + functional.logsigmoid(-x).sum(1)
        >>> bits_per_dim(uniform, x).item()  # of bytes that are all as likely
        8.0
    """
    to_bytes = (math.log(levels + 1) + functional.logsigmoid(x) + functional.logsigmoid(-x)).sum(1)
    return (to_bytes - log_prob) / (x.shape[1] * math.log(2))


def _optimizer(flow: torch.nn.Module, settings: FlowPart) -> torch.optim.Optimizer:
    return torch.optim.Adam(flow.parameters(), lr=settings.learning_rate)


def _file(folder: Path, leg: int) -> Path:
    return folder / f"leg-{leg}.pt"


def _save(folder: Path, leg: int, content: dict[str, Any]) -> None:
    part = folder / f"leg-{leg}.part"
    torch.save(content, part)
    part.replace(_file(folder, leg))
