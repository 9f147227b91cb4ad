"""The report of a sweep: every number by group, with what seeds change, and all rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from burnin.report.drawn import Panel
from burnin.report.page import Facts, Headline, Listing, Page, Panels, Section

if TYPE_CHECKING:
    from burnin.studies.sweep import Sweep

MOST_PANELS = 8


def sweep_page(sweep: Sweep, table: Mapping[str, Any]) -> Page:
    """What a sweep's table says, as a page."""
    groups, rows = table["groups"], table["rows"]
    metrics = [name for name in sweep.study.metrics if any(name in group for group in groups.values())]
    panels = tuple(Panel(_figure(groups, name), _alt(groups, name), name) for name in metrics[:MOST_PANELS])
    shown = Panels(panels, "Means over seeds; bars are one standard error on either side.")
    numbers = ("values", "rows", *(word for name in metrics for word in (name, f"{name} ±")))
    listed = tuple((name, _count(group), *_cells(group, metrics)) for name, group in groups.items())
    every = tuple((name, *(_cell(row["metrics"].get(key)) for key in metrics)) for name, row in rows.items())
    ended = sum(row["metrics"].get("ended", "finished") != "finished" for row in rows.values())
    origin = next(iter(rows.values()))["made_by"]
    seconds = sum(float(row["metrics"].get("seconds") or 0) for row in rows.values())
    return Page(
        title=f"{sweep.title}: sweep",
        subtitle=f"{len(rows)} rows of the recipe {sweep.recipe} in {len(groups)} groups",
        verdict=f"{len(rows)} rows, {len(groups)} combinations of values"
        + (f", {ended} diverged" if ended else ""),
        tone="plain",
        meaning="A sweep compares; each row's own folder holds a run that burnin report judges.",
        answers=(),
        headlines=tuple(_best(groups, name) for name in metrics[:3]),
        sections=(
            Section("numbers", "Numbers by group", "", (shown, Listing("groups", numbers, listed))),
            Section("rows", "All rows", "", (Listing("rows", ("row", *metrics), every),)),
            Section(
                "origin",
                "Where it comes from",
                "",
                (
                    Facts(
                        (
                            ("commit", str(origin["commit"]), "of burnin, of the first row"),
                            ("machine", str(origin["machine"]), "that made the first row"),
                            ("seconds", f"{seconds:.0f}", "of all rows, one after the other"),
                        )
                    ),
                ),
            ),
        ),
        overview=Figure(figsize=(1, 1)),
        first="In short",
    )


def _figure(groups: Mapping[str, Any], metric: str) -> Figure:
    have = {name: group[metric] for name, group in groups.items() if metric in group}
    figure = Figure(figsize=(4.6, 0.9 + 0.28 * len(have)), layout="constrained")
    axes = figure.subplots()
    places = range(len(have))
    axes.errorbar(
        [one["mean"] for one in have.values()],
        places,
        xerr=[one["error"] or 0.0 for one in have.values()],
        fmt="o",
        capsize=3,
    )
    axes.set_yticks(places, [name if len(name) < 40 else f"{name[:38]}…" for name in have])
    axes.set_ylim(len(have) - 0.5, -0.5)
    axes.set_xlabel(metric)
    return figure


def _alt(groups: Mapping[str, Any], metric: str) -> str:
    have = [f"{name} {group[metric]['mean']:.3g}" for name, group in groups.items() if metric in group]
    return f"{metric}: {', '.join(have)}"


def _best(groups: Mapping[str, Any], metric: str) -> Headline:
    """The range of a number over groups: which end is good is for the reader to say."""
    have = {name: group[metric]["mean"] for name, group in groups.items() if metric in group}
    least, most = min(have, key=lambda name: have[name]), max(have, key=lambda name: have[name])
    value = f"{have[least]:.3g} to {have[most]:.3g}"
    return Headline(metric, value, f"least: {least}; most: {most}")


def _count(group: Mapping[str, Any]) -> float:
    return max((one["rows"] for one in group.values()), default=0)


def _cells(group: Mapping[str, Any], metrics: list[str]) -> tuple[float | str, ...]:
    found = [group.get(name) for name in metrics]
    pairs = [("", "") if one is None else (one["mean"], one["error"]) for one in found]
    return tuple(_cell(value) for pair in pairs for value in pair)


def _cell(value: Any) -> float | str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return "" if value is None else str(value)
