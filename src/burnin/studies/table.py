"""Tables of measured numbers, and whether they are as a recipe expects."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burnin.settings import Expectation
from burnin.storage import write_text_atomically

Rows = Mapping[str, Mapping[str, Any]]
"""Measured numbers by scheme and metric."""


@dataclass(frozen=True)
class Check:
    """One expectation held against the table."""

    text: str
    holds: bool
    claim: bool


def check_expectations(expectations: Sequence[Expectation], rows: Rows) -> list[Check]:
    """Holds every expectation whose numbers are in the table against them.

    What is held against rows that are not made (`ahead` of JEM's) is not in the table.

    Example:
        >>> bound = Expectation(scheme="hybrid", metric="density_kl", at_most=0.3)
        >>> check_expectations([bound], {"hybrid": {"density_kl": 0.02}})[0]
        Check(text='hybrid density_kl = 0.02, expected ≤ 0.3', holds=True, claim=False)
    """
    checks = []
    for expected in expectations:
        if expected.metric not in rows.get(expected.scheme, {}):
            continue
        value = _number(rows, expected.scheme, expected.metric)
        name = f"{expected.scheme} {expected.metric} = {value:.4g}"
        if expected.at_most is not None:
            checks.append(
                Check(f"{name}, expected ≤ {expected.at_most:g}", value <= expected.at_most, expected.claim)
            )
        if expected.at_least is not None:
            checks.append(
                Check(f"{name}, expected ≥ {expected.at_least:g}", value >= expected.at_least, expected.claim)
            )
        times = (expected.at_most_times, expected.at_least_times)
        if expected.of_scheme in rows and times != (None, None):
            checks += _multiples(expected, rows, name, value)
    return checks


def _number(rows: Rows, scheme: str, metric: str) -> float:
    """What could not be measured (a chain that left the finite numbers) holds no bound."""
    measured = rows[scheme][metric]
    return math.nan if measured is None else float(measured)


def _multiples(expected: Expectation, rows: Rows, name: str, value: float) -> list[Check]:
    """The bounds that are multiples of another number."""
    other = _number(rows, expected.of_scheme, expected.of_metric or expected.metric)
    ratio = math.inf if other <= 0 else value / other
    slack, words = 0.0, ""
    if expected.give_or_take is not None:
        errors = [_number(rows, one, expected.give_or_take) for one in (expected.scheme, expected.of_scheme)]
        error = max(errors) if all(math.isfinite(one) for one in errors) else math.nan
        slack, words = (error / other if other > 0 else 0.0), f" ± {error:.2g}"
    text = f"{name}{words} is {ratio:.3g} × {expected.other}, expected"
    checks = []
    if (most := expected.at_most_times) is not None:
        checks.append(Check(f"{text} ≤ {most:g} ×", ratio <= most + slack, expected.claim))
    if (least := expected.at_least_times) is not None:
        checks.append(Check(f"{text} ≥ {least:g} ×", ratio >= least - slack, expected.claim))
    return checks


def markdown_table(rows: Rows, metrics: Sequence[str], *, rows_down: bool = False) -> str:
    """Metrics down and rows across, as in the papers, or the other way round for many rows."""
    down, across = (list(rows), list(metrics)) if rows_down else (list(metrics), list(rows))
    lines = ["| | " + " | ".join(across) + " |", "|---" * (len(across) + 1) + "|"]
    for head in down:
        cells = [
            format_value(rows[head].get(other) if rows_down else rows[other].get(head)) for other in across
        ]
        lines.append(f"| {head} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def mean_and_error(rows: Sequence[Mapping[str, Any]], metric: str) -> str:
    """The mean of a metric over rows, with its standard error where there are several; "" if none has it."""
    if not any(metric in row for row in rows):
        return ""
    values = [float(row[metric]) for row in rows if row[metric] is not None]
    if not values:
        return "not finite"
    mean = sum(values) / len(values)
    if len(values) == 1:
        return f"{mean:.3g}"
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    error = math.sqrt(variance / len(values))
    return f"{mean:.3g} ± {0 if error < 1e-12 * abs(mean) else error:.2g}"  # equal ones, but for rounding


def format_value(value: Any) -> str:
    """Three significant digits; lists with slashes."""
    if value is None:
        return ""
    if isinstance(value, list):
        return " / ".join(f"{v:.2f}" for v in value)
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def json_safe(value: Any) -> Any:
    """The value with numbers that are not finite, for which JSON has no word, as None.

    Example:
        >>> json_safe({"a": [1.0, float("inf")]})
        {'a': [1.0, None]}
    """
    if isinstance(value, dict):
        return {key: json_safe(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(path: Path, content: Any) -> None:
    """Writes JSON under a temporary name and renames it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
