"""Tables of JEM's study: every scenario and β over seeds, and the best of each (robust, Table 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from burnin.studies.table import Rows, format_value, mean_and_error

SHOWN = ("accuracy", "ece", "auroc_energy", "auroc_max_probability", "inception_score", "frechet")
"""Of the table in words."""
MEANS = (*SHOWN, "cross_entropy", "gap_last", "rollbacks", "ece_by_chance", "accuracy_end")
POOLED = ("diverged", "unnamed", "unfinished", "named_after", "points_behind", "ahead")
"""What there is over seeds only."""
BEST: Mapping[str, tuple[str, Callable[..., str]]] = {
    "accuracy": ("accuracy", max),
    "IS": ("inception_score", max),
    "FID": ("frechet", min),
}
"""The measures of Table 2, and which end of each is the best."""


def by_way(rows: Rows) -> dict[str, list[Mapping[str, Any]]]:
    """The seeds of every scenario and β."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for name, metrics in rows.items():
        groups.setdefault(name.rpartition("-s")[0], []).append(metrics)
    return groups


def pool(rows: Rows) -> dict[str, dict[str, Any]]:
    """Means over seeds; how many diverged or did not end as they should, and what is to be held against the
    same network as a plain classifier.

    `named_after` is the most updates from a divergence's onset to the guard's naming it, and `unnamed` counts
    those that crept up so slowly that it would not have; `points_behind` is by how many
    points of accuracy a way is behind the plain classifier of as many updates, and `ahead` by how many it is
    ahead of β = 0 of its scenario.
    """
    groups = by_way(rows)
    pooled: dict[str, dict[str, Any]] = {}
    for way, made in groups.items():
        waits = [
            row["named_at"] - row["began_at"]
            for row in made
            if row["began_at"] and row["named_at"] is not None
        ]
        pooled[way] = {
            **{name: fmean(row[name] for row in made) for name in MEANS if _whole(made, name)},
            "diverged": sum(row["diverged_at"] is not None for row in made),
            "unnamed": sum(row["diverged_at"] is not None and row["named_at"] is None for row in made),
            "unfinished": sum(row["ended"] != "finished" for row in made),
            "named_after": max(waits) if waits else None,
        }
    for way, numbers in pooled.items():
        plain = "plain-long" if way.startswith("long-") else "plain"
        if plain in pooled:
            numbers["points_behind"] = 100 * (pooled[plain]["accuracy"] - numbers["accuracy"])
        without = _without_beta(way)
        if without in pooled:
            numbers["ahead"] = 100 * (numbers["accuracy"] - pooled[without]["accuracy"])
    return pooled


def _whole(made: Sequence[Mapping[str, Any]], metric: str) -> bool:
    return all(row.get(metric) is not None for row in made)


def _without_beta(way: str) -> str:
    """The way with β = 0, without the guard, of the same scenario."""
    return way.removesuffix("-guard").rpartition("-")[0] + "-0"


def summary(rows: Rows) -> str:
    """A line for each scenario and β, means over seeds; how many diverged; then Table 2."""
    groups = by_way(rows)
    heads = ("", "seeds", "diverged", "rollbacks", "gap_last", *SHOWN)
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, made in groups.items():
        gone = sum(row["diverged_at"] is not None for row in made)
        back = sum(int(row["rollbacks"]) for row in made)
        gaps = ", ".join(_short(row["gap_last"]) for row in made)
        cells = " | ".join(mean_and_error(made, metric) for metric in SHOWN)
        lines.append(f"| {name} | {len(made)} | {gone} | {back} | {gaps} | {cells} |")
    first = next(iter(rows.values()))
    lines += [
        "",
        f"Inception Score and Fréchet distance of the bank by {first['features']}.",
        "",
        *_best(rows),
    ]
    return "\n".join(lines) + "\n"


def _short(gap: float) -> str:
    return f"{gap:.1e}" if abs(gap) >= 1e5 else format_value(gap)


def _best(rows: Rows) -> list[str]:
    """Table 2: the best that β = 0 reached by each measure, and the best with β, with that β*."""
    pooled = pool(rows)
    lines = ["| scenario | " + " | ".join(f"{words}, β = 0 | best with β" for words in BEST) + " |"]
    lines += ["|---" * (2 * len(BEST) + 1) + "|"]
    for scenario in [way.removesuffix("-0") for way in pooled if way.endswith("-0")]:
        stars = {way.removeprefix(f"{scenario}-"): way for way in pooled if way.startswith(f"{scenario}-")}
        ways = {star: way for star, way in stars.items() if star != "0" and not star.endswith("-guard")}
        cells = []
        for metric, better in BEST.values():
            values = {star: pooled[way][metric] for star, way in ways.items() if metric in pooled[way]}
            star = better(values, key=values.__getitem__) if values else None
            best = "" if star is None else f"{format_value(values[star])} (β* = {star})"
            cells.append(f"{format_value(pooled[f'{scenario}-0'].get(metric))} | {best}")
        lines.append(f"| {scenario} | " + " | ".join(cells) + " |")
    return lines if len(lines) > 2 else []
