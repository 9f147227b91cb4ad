"""The diagnosis in words: a short table and a sentence for each finding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from burnin.diagnostics.collapse import Collapse
from burnin.diagnostics.correlation import WINDOW
from burnin.diagnostics.diagnosis import ArmDiagnosis, Diagnosis
from burnin.diagnostics.oscillation import FEWEST, MEANING, Oscillation

Cell = Callable[[ArmDiagnosis], str]
REMEDY = (
    "the energy tells data from negatives by something that the chains cannot reach; add noise to the data "
    "(data.noise), lower learning_rate or step_size, or take more steps (num_steps)"
)


def table(diagnosis: Diagnosis) -> list[tuple[str, ...]]:
    """A header and a row for each number, one column for each arm."""
    rows: list[tuple[str, Cell]] = [
        ("logged updates (used)", lambda a: f"{len(a.series.d):,} ({a.num_window:,})"),
        ("d, mean ± standard error", _mean),
        ("share of positive d", lambda a: f"{a.recent.contraction_share:.1%}"),
        ("oscillation", lambda a: a.oscillation.kind),
        ("auto-correlation of d, lag 1", lambda a: _lag_1(a, of_r=False)),
        ("auto-correlation of r, lag 1", lambda a: _lag_1(a, of_r=True)),
        ("r, median", lambda a: f"{np.median(a.series.r[-WINDOW:]):.3g}"),
        ("drift / noise of a step", lambda a: "–" if a.balance is None else f"{a.balance.ratio:.2g}"),
        ("standard deviation of the loss", lambda a: _number(a.std)),
        ("signal to noise of the loss", lambda a: _number(a.snr)),
        ("collapse", lambda a: _collapse_cell(a.collapses)),
    ]
    header = ("", *(arm.series.name for arm in diagnosis.arms))
    return [header, *((name, *(cell(arm) for arm in diagnosis.arms)) for name, cell in rows)]


def table_text(diagnosis: Diagnosis) -> str:
    """The table in aligned columns."""
    rows = table(diagnosis)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def findings(diagnosis: Diagnosis) -> list[str]:
    """A sentence for each thing that was found, arm by arm."""
    said = []
    if diagnosis.every > 1:
        said.append(
            f"One update in {diagnosis.every} was logged: a lag of 1 is {diagnosis.every} updates, and "
            "counts are of logged updates."
        )
    for arm in diagnosis.arms:
        sentences = [
            _length(arm),
            _oscillation(arm),
            _updates(arm),
            _balance(arm),
            *map(_fall, arm.collapses),
        ]
        said += [f"{arm.series.name}: {sentence}" for sentence in sentences if sentence]
    return said


def _length(arm: ArmDiagnosis) -> str:
    n = len(arm.series.d)
    if n >= FEWEST:
        return ""
    return f"{n} logged updates are too few for a diagnosis ({FEWEST} are needed); numbers below are rough."


def _oscillation(arm: ArmDiagnosis) -> str:
    found = arm.oscillation
    if found.kind == "unknown":
        return f"Oscillation unknown: {found.reason}." if len(arm.series.d) >= FEWEST else ""
    if arm.collapses and arm.collapses[-1].ended is None:
        return f"No oscillation: d runs away ({found.reason}; {found.num_values:,} updates)."
    told = f"({found.reason}; {found.num_values:,} updates)"
    return f"{_named(found).capitalize()}: {MEANING[found.kind]} {told}."


def _updates(arm: ArmDiagnosis) -> str:
    u = arm.updates
    if arm.weighted:
        return ""
    return (
        f"{u.expansions:,} expansion updates (d < 0: forces grow), {u.contractions:,} contraction updates "
        f"(d > 0: forces shrink); of the last {arm.num_window:,}, {arm.recent.expansion_share:.0%} and "
        f"{arm.recent.contraction_share:.0%}."
    )


def _balance(arm: ArmDiagnosis) -> str:
    found = arm.balance
    if found is None:
        return ""
    where = f"a step drifts {found.ratio:.2g} times as far as its noise throws it"
    if found.state == "balanced":
        return (
            f"Force and noise are balanced: {where} ({found.ratio_to_one:.2g} times that of one dimension)."
        )
    advice = (
        "the energy is too flat for this temperature, or step_size too small"
        if found.state == "the noise dominates"
        else "the chain is close to gradient descent: lower step_size, or raise the temperature"
    )
    return f"Force and noise are not balanced, {found.state}: {where}; {advice}."


def _fall(collapse: Collapse) -> str:
    since = f"d fell without a turn from update {collapse.began:,}, from {collapse.start:.3g}"
    if collapse.ended is not None:
        return f"{since} to {collapse.deepest:.3g}, and had come back by update {collapse.ended:,}."
    return f"Collapse (d → -∞): {since} to {collapse.deepest:.3g}: {REMEDY}."


def collapse_warning(update: int, arm: str, collapse: Collapse) -> str:
    """What training says when it notices a collapse, and when one has ended."""
    if collapse.ended is not None:
        return f"update {update}: d of arm {arm!r} has come back from {collapse.deepest:.3g}"
    return (
        f"update {update}: d of arm {arm!r} has fallen without a turn since update {collapse.began}, from "
        f"{collapse.start:.3g} to {collapse.deepest:.3g} (collapse): {REMEDY}"
    )


def oscillation_news(update: int, arm: str, found: Oscillation) -> str:
    """What training says when the oscillation is of a new kind."""
    return f"update {update}: arm {arm!r}: {_named(found)}: {MEANING[found.kind]} ({found.reason})"


def _named(found: Oscillation) -> str:
    return "no oscillation yet" if found.kind == "none yet" else f"{found.kind} oscillation"


def _mean(arm: ArmDiagnosis) -> str:
    found = arm.oscillation
    if found.kind == "unknown":
        return f"{np.mean(arm.series.d[-WINDOW:]):.3g}"
    return f"{found.mean:.3g} ± {found.mean_error:.2g}"


def _lag_1(arm: ArmDiagnosis, *, of_r: bool) -> str:
    found = arm.correlations
    if found is None:
        return "–"
    rho, bounds = (found.r, found.r_bounds) if of_r else (found.d, found.d_bounds)
    return f"{rho[1]:+.2f} (chance ±{bounds[0]:.2f})"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _collapse_cell(collapses: list[Collapse]) -> str:
    if not collapses:
        return "no"
    last = collapses[-1]
    return f"since update {last.began:,}" if last.ended is None else f"over by update {last.ended:,}"
