"""The report of one run: its parts, in the order in which they are read, and its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from burnin.data import Rings
from burnin.diagnostics import Diagnosis
from burnin.diagnostics.words import findings
from burnin.evaluation import Standing, count_rings
from burnin.evaluation.assess import Assessment
from burnin.evaluation.classes import HeldOutClasses
from burnin.evaluation.goodness import FitTest
from burnin.evaluation.model import Model
from burnin.evaluation.verdict import Verdict
from burnin.report import figures
from burnin.report.check import energy_panels, population_panels
from burnin.report.classes import classes_blocks
from burnin.report.columns import Shown
from burnin.report.compared import compared, picture_grids
from burnin.report.cost import Cost, cost_facts
from burnin.report.goodness import goodness_blocks, goodness_headline
from burnin.report.likelihood import MeanLikelihood, likelihood_blocks
from burnin.report.outliers import Scored, outlier_pictures, outlier_rows
from burnin.report.overview import overview_figure
from burnin.report.page import Answer, Block, Code, Facts, Headline, Page, Panels, Section, Tone, paragraphs
from burnin.report.slices import density_slices
from burnin.report.training import diagnosis_panels, direct_panels, losses_panels, monitors_panels

MEANING: dict[Standing, tuple[Tone, str]] = {
    Standing.BOTH: (
        "good",
        "Its samples can stand for new data, and its log-densities can be compared, near the data and far.",
    ),
    Standing.GENERATOR: (
        "fair",
        "Its samples can be used. Its log-densities, outliers and likelihood cannot: the chains that follow "
        "its own law leave the data.",
    ),
    Standing.NEAR_DATA: (
        "fair",
        "Log-densities near the data can be compared. Samples that start from noise should not be used, nor "
        "what it says far from the data.",
    ),
    Standing.NEITHER: (
        "poor",
        "Use neither its samples nor its log-densities. Train longer, or with other settings.",
    ),
    Standing.UNDECIDED: (
        "fair",
        "The chains that would have to decide have hardly moved, or still move. Raise study.long_steps and "
        "study.data_steps, and judge again.",
    ),
}
"""How good each standing is, and what follows for who wants to use the model."""
NO_LIKELIHOOD = (
    "There is no number: the normaliser is not estimated in more than 100 dimensions, nor where the model is "
    "no density around the data, nor where study.likelihood_particles is 0."
)


@dataclass(frozen=True)
class Material:
    """All that a report is made from.

    Attributes:
        title: of the run.
        config: its complete configuration as TOML.
        model: the model.
        result: what was measured of it.
        points: data as points of the model's space; of pictures, those that were scored.
        shown: data and samples as rows in the reader's units; None for pictures.
        scored: log-densities of the rows of `shown`, or of the pictures in `points`.
        fit_test: could the data have come from it?
        likelihoods: mean log-densities, the one that counts first; empty where none can be had.
        metrics: what training logged.
        diagnosis: how training went.
        cost: what it took.
        classes: what it says of held-out pictures as a classifier; None where it is none.
    """

    title: str
    config: str
    model: Model
    result: Assessment
    points: Tensor
    shown: Shown | None
    scored: Scored
    fit_test: FitTest
    likelihoods: tuple[MeanLikelihood, ...]
    metrics: Sequence[Mapping[str, Any]]
    diagnosis: Diagnosis
    cost: Cost
    classes: HeldOutClasses | None = None


def build_page(m: Material) -> Page:
    """Everything a reader of the run wants to know: the verdict first, then what it rests on."""
    verdict = m.result.verdict
    tone, meaning = MEANING[verdict.standing]
    sentence = str(verdict.standing)
    return Page(
        title=m.title,
        subtitle=f"scheme {m.model.scheme}, {m.model.num_updates:,} updates, temperature "
        f"{m.model.temperature:g}, {m.model.data.dim} dimensions",
        verdict=f"{sentence[0].upper()}{sentence[1:]}.",
        tone=tone,
        meaning=meaning,
        answers=answers(verdict),
        headlines=_headlines(m),
        sections=(
            Section("samples", "Data against samples", "", _samples(m)),
            _slices(m),
            Section(
                "energy",
                "Energy along the chains",
                "The energy along the chains should settle, at the level of the data, wherever they started.",
                (Panels(energy_panels(m.model, m.result), ENERGY),),
            ),
            *_classes(m),
            Section("outliers", "Outliers", m.scored.lead(), _outliers(m)),
            Section("diagnostics", "Diagnostics", "", _diagnostics(m)),
            Section(
                "goodness",
                "Goodness of fit",
                "Could the data have come from this model? A test that needs no samples of it.",
                goodness_blocks(m.fit_test),
            ),
            Section(
                "likelihood",
                "Likelihood",
                "The mean log-density of data: higher is better, comparable between models of the same "
                "columns in the same units."
                if m.likelihoods
                else NO_LIKELIHOOD,
                likelihood_blocks(m.likelihoods) if m.likelihoods else (),
            ),
            Section(
                "cost",
                "Configuration and cost",
                "",
                (cost_facts(m.cost), Code("The complete configuration", m.config)),
            ),
        ),
        overview=overview_figure(m.model, m.result, m.points),
    )


ENERGY = (
    "Left: the mean by step; data is dotted. Right: the law of the energies is what tells a density: chains "
    "that follow the model have the data's energies, whether they started at noise, at data or far away."
)


def answers(verdict: Verdict) -> tuple[Answer, ...]:
    """The lines of a verdict after the first, such as "converged: yes. After …", taken apart."""
    found = []
    for line in verdict.lines[1:]:
        question, _, rest = line.partition(":")
        answer, _, reason = rest.strip().partition(". ")
        reason = reason.partition(" Log-likelihood of")[0]  # it has a part of its own, in the table's units
        tone: Tone = {"yes": "good", "NO": "poor"}.get(answer, "plain")  # type: ignore[assignment]
        found.append(Answer(f"{QUESTIONS[question]}?", answer.lower(), reason, tone))
    return tuple(found)


QUESTIONS = {
    "generates": "Does it generate",
    "converged": "Have the chains converged",
    "density": "Is it a density",
    "fit": "Does it fit the truth",
}


def write_report(page: Page, folder: Path) -> Path:
    """Writes report.html and report.png (the overview) into the run's folder."""
    figures.save(page.overview, folder / "report.png")
    page.write(folder / "report.html")
    return folder / "report.html"


def _headlines(m: Material) -> tuple[Headline, ...]:
    if m.likelihoods:
        first = m.likelihoods[0]
        likelihood = Headline(f"log-likelihood, {first.what}", f"{first.nats:.4g} nats", first.in_bits())
    else:
        likelihood = Headline("log-likelihood", "unknown", "the normaliser could not be had")
    return (
        likelihood,
        goodness_headline(m.fit_test),
        Headline(
            "samples from noise", f"{m.result.sample_distance:.3g} × chance", "distance to data; 1 is perfect"
        ),
        Headline("training", *m.cost.training()),
    )


def _classes(m: Material) -> tuple[Section, ...]:
    if m.classes is None:
        return ()
    lead = "The model is also a classifier; this is what it says of pictures that training has not seen."
    return (Section("classes", "Classes", lead, classes_blocks(m.classes)),)


def _samples(m: Material) -> tuple[Block, ...]:
    if m.model.pictures is not None:
        return (picture_grids(m.model.pictures, m.points, m.result.samples.position),)
    assert m.shown is not None
    return compared(m.shown, m.scored.lowest() if m.shown.numbers is not None else None)


def _slices(m: Material) -> Section:
    rows = m.shown.data if m.shown is not None else m.scored.log_density
    blocks = density_slices(m.model, m.result, rows, m.points)
    return Section("density", "Density slices", "", blocks)


def _outliers(m: Material) -> tuple[Block, ...]:
    if m.model.pictures is not None:
        return outlier_pictures(m.scored, m.model.pictures, m.points)
    assert m.shown is not None
    return outlier_rows(m.scored, m.shown.columns, m.shown.data)


def _diagnostics(m: Material) -> tuple[Block, ...]:
    blocks: list[Block] = [
        Panels(
            population_panels(m.model, m.result, m.points),
            "Chains that follow the model's law stay where the data is, wherever "
            "they started: short and long from noise, Metropolis-adjusted from data, cooled from afar.",
            width=10,
            title="What the verdict rests on",
        ),
        Facts(numbers(m.model, m.result)),
        *training_blocks(m.diagnosis, m.model.temperature, m.metrics),
        *paragraphs([str(row["event"]) for row in m.metrics if "event" in row]),
    ]
    return tuple(blocks)


def training_blocks(
    diagnosis: Diagnosis, temperature: float, metrics: Sequence[Mapping[str, Any]]
) -> list[Block]:
    """How training went: the diagnostics with what they say, the losses, the β monitors."""
    if not diagnosis.arms:
        caption = "Trained without chains: the objective's loss and its own numbers, smoothed."
        direct = direct_panels(metrics)
        return [Panels(direct, caption, title="Training")] if direct else []
    blocks: list[Block] = [
        Panels(
            diagnosis_panels(diagnosis, temperature),
            "d is the difference of mean energies of data and negatives, in units of T. It is the "
            "gradient of the loss with respect to the energy's magnitude: it falls and rises around 0. "
            "r is the mean norm of the energy's gradient along the chains.",
            title="Training",
        ),
        *paragraphs(findings(diagnosis)),
    ]
    if losses := losses_panels(diagnosis):
        caption = "How well each update knows its loss: a large spread makes training unsteady."
        blocks.append(Panels(losses, caption, title="Spread of the losses"))
    if monitors := monitors_panels(diagnosis):
        blocks.append(
            Panels(
                monitors,
                "What the β-weighted contrast does with its negatives; f is -E/T.",
                title="β-weights",
            )
        )
    return blocks


def numbers(model: Model, result: Assessment) -> tuple[tuple[str, str, str], ...]:
    """Name, value and meaning of each measured number."""
    evidence = result.evidence
    unit = (
        "energy distance to fresh data, in units of the 95th percentile between two data sets (1 is perfect)"
    )
    rows = [
        ("sample distance", f"{result.sample_distance:.3g}", f"short chains from noise: {unit}"),
        ("… plain chain", f"{result.plain:.3g}", "from noise, at T throughout"),
        ("… annealed chain", f"{result.annealed:.3g}", "from noise, as configured for chains from noise"),
        ("… matched noise", f"{result.matched:.3g}", "from noise with the data's mean and variances"),
        ("long-run distance", f"{result.long_run:.3g}", "the same chains, much later"),
        ("data-run distance", f"{result.data_run:.3g}", "chains that started at data, much later"),
        ("acceptance", f"{evidence.acceptance:.2f}", "of the adjusted chains from data"),
        ("R-hat", f"{evidence.rhat:.3g}", "of the energy along them; 1 where they agree with each other"),
        ("effective draws", f"{evidence.ess:.0f}", "of the energy by all of them"),
        ("memory", f"{evidence.memory:.2g}", "of where they started: 1 none has moved, 0 all have forgotten"),
    ]
    if result.density_kl is not None:
        rows.append(
            ("density KL", f"{result.density_kl:.4g} nats", "KL(true ‖ model) on the grid of the picture")
        )
    if isinstance(model.data, Rings) and model.data.dim == 10:
        counts = count_rings(result.samples.position, model.data.radii)
        shares = " / ".join(f"{share:.3f}" for share in counts.shares)
        rows.append(("ring shares", shares, "of samples from noise, within 0.35 of each ring"))
        rows.append(("off the manifold", f"{counts.off_manifold:.3f}", "share of samples on no ring"))
    return tuple(rows)
