"""Checkpoints of a flow ranked without their likelihood (stein, section 7.3, B.3, Fig. 7)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import correlation
from typing import Annotated, Any

import torch
from matplotlib.figure import Figure
from pydantic import Field
from scipy.stats import spearmanr

from burnin.core import InputError, Report
from burnin.data import Pictures, make_density
from burnin.discrepancies import Learned, Points, learn, learn_with
from burnin.discrepancies.learned import split_sizes
from burnin.objectives.scores import score_matching_terms
from burnin.report import figures
from burnin.rng import Streams
from burnin.settings import Count, Part
from burnin.stein import PictureCritic, score_of
from burnin.studies.flows import FlowPart, bits_per_dim, flow_after, flow_log_prob
from burnin.studies.measured import MeasuredRecipe, MeasuredStudy, measure_row
from burnin.studies.table import Rows
from burnin.studies.trial_settings import CriticPart
from burnin.studies.workers import Maker

CHECKPOINTS = 10
BLOCK = 250
"""Pictures whose scores are taken at a time; second derivatives keep every activation."""
WORDS = {"bits": "bits per dimension", "lsd": "LSD", "score_matching": "score matching"}


class PicturePart(Part):
    """The pictures, made smaller when `side` says so; of those held out, so many are used."""

    name: str = "mnist"
    side: Count | None = None
    held_out: Count = 10_000


class ConvolutionPart(Part):
    """Of the critic: hidden maps and the side of its kernels; without channels it is a perceptron."""

    channels: Annotated[int, Field(ge=0)] = 32
    side: Count = 3


class FlowRecipe(MeasuredRecipe):
    """A flow, when it is looked at, and the critics.

    `critic` is how these are trained, and their form where `convolution` has no channels.
    """

    data: PicturePart = PicturePart()
    flow: FlowPart = FlowPart()
    checkpoint: Count = 1
    critic: CriticPart = CriticPart()
    convolution: ConvolutionPart = ConvolutionPart()


def pictures_of(recipe: FlowRecipe) -> Pictures:
    """The pictures in logits."""
    data = make_density(recipe.data.name)
    if not isinstance(data, Pictures):
        raise InputError(f"flow-rank needs pictures; {recipe.data.name} are none")
    data = data if recipe.data.side is None else data.resized(recipe.data.side)
    return data.in_logits()


def measure(folder: Path, recipe: FlowRecipe, report: Report) -> dict[str, Any]:
    """Bits per dimension, LSD and the loss of score matching of one checkpoint, each with its standard error.

    All three have the same held-out pictures, dequantised once. LSD trains its critic on eight tenths of
    them, from the same first weights and with the same draws for every checkpoint.
    """
    data = pictures_of(recipe)
    seed = recipe.run.seed
    flow = flow_after(folder, data, recipe.flow, recipe.checkpoint, seed, report)
    judged, streams = data.held_out or data, Streams(seed)
    rows = torch.randperm(len(judged), generator=streams["order"])[: recipe.data.held_out]
    x = judged.rows(judged.pixels[rows], streams["dequantise"])
    log_prob = flow_log_prob(flow, data.shape)
    bits, scores, losses = [], [], []
    for index, block in enumerate(torch.split(x, BLOCK)):
        report("scores", index * BLOCK, len(x))
        with torch.no_grad():
            bits.append(bits_per_dim(log_prob(block), block, judged.levels))
        scores.append(score_of(lambda x: -log_prob(x), 1.0)(block).detach())
        half_square, trace = score_matching_terms(
            lambda x: -log_prob(x), block, 1.0, trace="rademacher", generator=streams["probes"]
        )
        losses.append((half_square + trace).detach())
    learned = learned_on(Points(x, torch.cat(scores)), recipe, data.shape, streams["critic"], report)
    return {
        **_with_error("bits", torch.cat(bits)),
        **_with_error("score_matching", torch.cat(losses)),
        "lsd": learned.discrepancy.item(),
        "lsd_error": learned.standard_error.item(),
        "critic_updates": int(learned.updates.item()),
    }


def learned_on(
    points: Points,
    recipe: FlowRecipe,
    shape: tuple[int, int, int],
    generator: torch.Generator,
    report: Report,
) -> Learned:
    """LSD by the recipe's critic; a convolution takes all pixels in units of their spread taken together."""
    settings = recipe.critic.settings()
    channels, side = recipe.convolution.channels, recipe.convolution.side
    if channels:
        train = points.x[: split_sizes(len(points.x))[0]]
        mean, spread = train.mean(), train.std()
        points = Points((points.x - mean) / spread, points.scores * spread)
        critic = PictureCritic(shape, channels=channels, side=side, generator=generator)
        return learn_with(critic, points, settings, generator, objective="discrepancy", report=report)
    return learn(
        Points(points.x.unsqueeze(0), points.scores.unsqueeze(0)),
        settings,
        generator,
        objective="discrepancy",
        standardise=recipe.critic.standardise,
        report=report,
    )


def _with_error(name: str, values: torch.Tensor) -> dict[str, float]:
    return {name: values.mean().item(), f"{name}_error": (values.std() / len(values) ** 0.5).item()}


def pool(rows: Rows) -> dict[str, dict[str, Any]]:
    """Spearman's rank correlation with bits per dimension, how far LSD's is above score matching's, and the
    linear correlation: whether a discrepancy also says how much better one checkpoint is than another."""
    if len(rows) < 3:
        return {}
    bits = [row["bits"] for row in rows.values()]
    ranks = {
        name: float(spearmanr(bits, [row[name] for row in rows.values()]).statistic)
        for name in ("lsd", "score_matching")
    }
    linear = {name: correlation(bits, [row[name] for row in rows.values()]) for name in ranks}
    return {
        "all": {
            "lsd_linear": linear["lsd"],
            "score_matching_linear": linear["score_matching"],
            "lsd_rank": ranks["lsd"],
            "score_matching_rank": ranks["score_matching"],
            "rank_ahead": ranks["lsd"] - ranks["score_matching"],
        }
    }


def summary(rows: Rows) -> str:
    """A line for each checkpoint, and the rank correlations."""
    lines = ["| checkpoint | " + " | ".join(WORDS.values()) + " |", "|---" * (len(WORDS) + 1) + "|"]
    for name, row in rows.items():
        cells = [f"{row[key]:.4g} ± {row[f'{key}_error']:.2g}" for key in WORDS]
        lines.append(f"| {name.removeprefix('c')} | " + " | ".join(cells) + " |")
    ranks = pool(rows).get("all")
    if ranks is not None:
        for words, kind in (("rank correlation", "rank"), ("linear correlation", "linear")):
            lsd, matching = ranks[f"lsd_{kind}"], ranks[f"score_matching_{kind}"]
            lines.append(f"| {words} | 1 | {lsd:.3f} | {matching:.3f} |")
    return "\n".join(lines) + "\n"


def draw(out: Path, recipe: FlowRecipe, rows: Sequence[str]) -> None:
    """Three curves along training (Fig. 7)."""
    made = [json.loads((out / f"{name}.json").read_text(encoding="utf-8"))["metrics"] for name in rows]
    updates = [int(name.removeprefix("c")) * recipe.flow.updates for name in rows]
    figure = Figure(figsize=(9.6, 3.0), layout="constrained")
    for axes, (key, words) in zip(figure.subplots(1, len(WORDS)), WORDS.items(), strict=True):
        values, errors = [row[key] for row in made], [row[f"{key}_error"] for row in made]
        axes.errorbar(updates, values, errors, fmt="o-", capsize=2)
        axes.set(title=words, xlabel="updates of the flow")
    figures.save(figure, out / "figure.png")


@dataclass(frozen=True, kw_only=True)
class FlowRank(MeasuredStudy[FlowRecipe]):
    """Its rows share a flow, which is kept beside them."""

    def maker(self) -> Maker[FlowRecipe]:
        """Trains the flow as far as the row needs it, and measures."""
        return _measure_checkpoint


def _measure_checkpoint(
    out: Path, name: str, recipe: FlowRecipe, report: Report, threads: int
) -> dict[str, Any]:
    return measure_row(partial(measure, out / "flow"), out, name, recipe, report, threads)


ROWS = {f"c{index}": [f"checkpoint={index}"] for index in range(1, CHECKPOINTS + 1)}

FLOW_RANK = FlowRank(
    name="flow-rank",
    about="ten checkpoints of a flow on MNIST: do LSD and score matching rank them as likelihood does?",
    recipe="measured/flow-rank",
    quick_recipe="measured/flow-rank-quick",
    settings=FlowRecipe,
    rows=ROWS,
    quick_rows=("c1", "c2", "c3"),
    metrics=("bits", "lsd", "score_matching", "lsd_rank", "score_matching_rank", "rank_ahead"),
    measure=partial(measure, Path()),
    pool=pool,
    pooled=("all",),
    draw=draw,
    tabulate=summary,
)
