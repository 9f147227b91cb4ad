"""Chains from the bank, copies of training pictures, adjusted chains (hybrid, sections 4.2.4 and 4.2.5)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from burnin.config import read_run_config
from burnin.core import Report
from burnin.data.matching import full_bytes
from burnin.evaluation import chains
from burnin.evaluation.adjusted import acceptance_off, adjusted_from_noise
from burnin.evaluation.features import Pixels
from burnin.evaluation.long_runs import forget
from burnin.evaluation.memorisation import memorisation
from burnin.evaluation.model import Model
from burnin.evaluation.neighbours import nearest
from burnin.given_data import own_pictures, sampled_bytes
from burnin.measuring import choose
from burnin.rng import Streams
from burnin.training import load_checkpoint

FILE = "looked-at.safetensors"
"""In a row's own folder: what the figures show of it."""
ADJUSTED_FOLDER = "long-chains-adjusted"
BANK = "start.bank.position"
"""The name of the bank in a checkpoint."""
SHOWN, NEIGHBOURS = 36, 3

Distance = Callable[[Tensor], float]
"""The Fréchet distance of some positions."""


def look(model: Model, samples: Tensor, run: Path, distance: Distance, report: Report) -> dict[str, Any]:
    """Numbers of a row's chains and samples; their pictures are kept in the row's folder, `run`.

    `memorised` is the chance that a sample is nearer to a training picture than a held-out one is, by pixels:
    0.5 for data's own law, 1 for copies. Of rows with a bank, `frechet_bank` is of samples whose chains start
    there (Table 1, bottom), and `bank_copies` the share of them that are nearer to the picture that they
    started at than to any other of the bank. Where the recipe wants adjusted chains, `acceptance_off` is how
    far their acceptance is from its target at most, and `adjusted_step` the step that they ended with.
    """
    config = read_run_config(run)
    streams = Streams(config.run.seed)
    numbers, kept = _copies(model, samples, run, streams, report)
    bank = load_checkpoint(run).tensors.get(BANK)
    if bank is not None:
        found, pictures = _from_bank(model, bank, len(samples), distance, streams, report)
        numbers, kept = numbers | found, kept | pictures
    if config.study.adjusted_steps:
        found, pictures = _adjusted(model, config.study.adjusted_steps, run, streams, report)
        numbers, kept = numbers | found, kept | pictures
    safetensors.torch.save_file({name: x.contiguous() for name, x in kept.items()}, run / FILE)
    forget(run / ADJUSTED_FOLDER)
    return numbers


def _copies(
    model: Model, samples: Tensor, run: Path, streams: Streams, report: Report
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Where no pictures were held out, as of the 8×8 digits, copies are shown but have no number."""
    pictures, _ = own_pictures(run)
    training, drawn = full_bytes(pictures), sampled_bytes(model, samples)
    flat, among = Pixels()(drawn).features, Pixels()(training).features
    told: dict[str, Any] = {}
    if pictures.held_out is None:
        neighbours = nearest(flat[:SHOWN], among, k=NEIGHBOURS)
    else:
        held, _ = choose(full_bytes(pictures.held_out), len(drawn), streams["held-out"])
        found = memorisation(
            flat,
            among,
            Pixels()(held).features,
            neighbours=NEIGHBOURS,
            what="nearest training pictures",
            report=report,
        )
        told, neighbours = {"memorised": found.nearer}, found.neighbours
    return told, {"drawn": drawn[:SHOWN], "nearest": training[neighbours.index[:SHOWN]]}


def _from_bank(
    model: Model, bank: Tensor, n: int, distance: Distance, streams: Streams, report: Report
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    stream, num_steps = streams["from-bank"], model.plain.num_steps
    places = torch.randperm(len(bank), generator=stream)[:n]
    ended = chains.from_points(
        model,
        bank[places],
        num_steps,
        stream,
        progress=lambda done, *_: report("chains from the bank", done, num_steps),
    ).position
    came_back = nearest(ended, bank, what="nearest of the bank", report=report).index[:, 0] == places
    numbers = {"frechet_bank": distance(ended), "bank_copies": came_back.double().mean().item()}
    return numbers, {"bank": bank[places[:SHOWN]], "from_bank": ended[:SHOWN]}


def _adjusted(
    model: Model, num_steps: int, run: Path, streams: Streams, report: Report
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    sampled = adjusted_from_noise(
        model,
        SHOWN,
        num_steps,
        streams["adjusted-from-noise"],
        progress=lambda done, *_: report("adjusted chains from noise", done, num_steps),
        folder=run / ADJUSTED_FOLDER,
    )
    trace = sampled.result.trace
    along = torch.tensor([trace.iteration, trace.acceptance, trace.step_size], dtype=torch.float64)
    numbers = {
        "acceptance_off": acceptance_off(sampled),
        "adjusted_step": trace.step_size[-1],
    }
    return numbers, {"adjusted": sampled.position, "adjusted_trace": along}
