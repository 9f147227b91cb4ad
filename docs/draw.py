"""Redraws the tables of README and docs from the JSON files under results/: python docs/draw.py."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from burnin.bench import write_page
from burnin.bench.beta_cost import write_beta
from burnin.bench.together import write_together
from burnin.bench.traffic import on_paper_words
from burnin.studies import (
    bench_density,
    calibration,
    critic_cost,
    flow_rank,
    ica,
    images,
    iris_gaps,
    jem_tables,
    log_z,
    rbm_power,
    rbm_rank,
    rbm_savings,
    robust,
    samplers,
    stein_images,
    stein_toy,
    table_schemes,
    verdicts,
)
from burnin.studies.rings import METRICS, beta_summary
from burnin.studies.table import Rows, markdown_table

ROOT = Path(__file__).parent.parent
PAGES = (
    ROOT / "README.md",
    ROOT / "docs" / "rings.md",
    ROOT / "docs" / "robust.md",
    ROOT / "docs" / "diagnostics.md",
    ROOT / "docs" / "convergent.md",
    ROOT / "docs" / "stein.md",
    ROOT / "docs" / "verdict.md",
    ROOT / "docs" / "data.md",
    ROOT / "docs" / "bench-density.md",
    ROOT / "docs" / "measures.md",
    ROOT / "docs" / "trust.md",
    ROOT / "docs" / "calibration.md",
    ROOT / "docs" / "images.md",
    ROOT / "docs" / "jem.md",
    ROOT / "docs" / "scale.md",
)
BENCHMARKS = ROOT / "docs" / "benchmarks.md"
SHORT = ("density_kl", "sample_distance", "long_run_distance", "data_run_distance")
CHANGES = (
    "density_kl",
    "density_kl_within",
    "density_masses",
    "sample_distance",
    "long_run_distance",
    "ended",
)
CONVERGENT = ("density_kl", "sample_distance", "long_run_distance", "verdict")
DIGITS = ("sample_distance", "long_run_distance", "long_energies", "adjusted_distance", "verdict")
SWINGS = ("oscillation", "sample_distance", "verdict")
TRIED = {
    "as it is": "log-z",
    "other seeds (`run.seed=100`)": "log-z-seeds",
    "one Gaussian as base (`effort.components=1`)": "log-z-gaussian",
    "MALA (`effort.num_leapfrog=1`)": "log-z-mala",
}
FIVE = ("data", "noise", "persistent", "refresh", "hybrid")


def pieces() -> dict[str, str]:
    """The text of every piece that pages may hold between markers."""
    table, changes = _read("rings"), _read("rings-changes")
    toys, weighted, two = _read("robust-toy-quick"), _read("rings-beta"), _read("two-samplers")
    swings, convergent, full = _read("oscillation"), _read("convergent-toy"), _read("robust-toy")
    rows = _metrics(table)
    shown = {name: row | {"ended": row["ended"].split(":")[0]} for name, row in _metrics(changes).items()}
    checks = [f"- {check['text']}: " + ("yes" if check["holds"] else "**no**") for check in table["checks"]]
    return {
        "rings-short": markdown_table({name: rows[name] for name in FIVE}, SHORT),
        "rings-table": markdown_table(rows, METRICS),
        "rings-checks": "\n".join(checks) + "\n",
        "rings-origin": _origin(table, "hybrid"),
        "rings-changes": markdown_table(shown, CHANGES, rows_down=True),
        "rings-changes-origin": _origin(changes, "baseline"),
        "robust-quick": robust.summary(_metrics(toys)),
        "robust-toy": robust.summary(_metrics(full)),
        "robust-toy-origin": _origin(full, next(iter(full["rows"]))),
        "robust-quick-origin": _origin(toys, next(iter(toys["rows"]))),
        "two-samplers": samplers.summary(_metrics(two)),
        "two-samplers-origin": _origin(two, next(iter(two["rows"]))),
        "beta-cost": _beta_cost(),
        "convergent": markdown_table(_metrics(convergent), CONVERGENT),
        "convergent-origin": _origin(convergent, "mixture-convergent"),
        "convergent-mnist": _measured("convergent-mnist", _pictures_of_digits),
        "verdicts": _measured("verdicts", verdicts.summary),
        "oscillation": markdown_table(_metrics(swings), SWINGS, rows_down=True),
        "oscillation-origin": _origin(swings, "digits-adam"),
        "rings-beta": beta_summary(_metrics(weighted)),
        "rings-beta-origin": _origin(weighted, "beta-0"),
        "rbm-power-quick": _measured("rbm-power-quick", rbm_power.summary),
        "rbm-power": _measured("rbm-power", rbm_power.summary),
        "rbm-power-settled": _measured("rbm-power-settled", rbm_power.summary),
        "rbm-power-fssd": _measured("rbm-power-fssd", rbm_power.summary),
        "rbm-savings": _measured("rbm-savings", rbm_savings.summary),
        "rbm-savings-averaged": _measured("rbm-savings-averaged", rbm_savings.summary),
        "rbm-rank-quick": _measured("rbm-rank-quick", rbm_rank.summary),
        "rbm-rank": _measured("rbm-rank", rbm_rank.summary),
        "rbm-rank-block": _measured("rbm-rank-block", rbm_rank.summary),
        "bench-density": _measured("bench-density", bench_density.summary),
        "critic-cost": _measured("critic-cost", critic_cost.summary),
        "ica": _measured("ica", ica.summary),
        "stein-toy": _measured("stein-toy", stein_toy.summary),
        "stein-images": _measured("stein-images", _pictures_without_chains),
        "images-fashion-step-1": _measured("images-fashion-step-1", images.summary),
        "images-fashion-mnist-small": _measured("images-fashion-mnist-small", images.summary),
        "flow-rank": _measured("flow-rank", flow_rank.summary),
        "calibration-median": _measured("calibration-median", calibration.summary),
        "calibration-before": _measured("calibration-before", calibration.summary),
        "calibration": _measured("calibration", calibration.summary),
        "log-z": _measured("log-z", log_z.summary),
        "log-z-variants": log_z.variants({words: _metrics(_read(study)) for words, study in TRIED.items()}),
        "iris-gaps": _measured("iris-gaps", iris_gaps.summary),
        "table-schemes": _measured("table-schemes", table_schemes.summary),
        "jem": _measured("jem", jem_tables.summary),
        "jem-fashion": _measured("jem-fashion", jem_tables.summary),
        "fuzz": _fuzzed(_read("fuzz")),
        "faults": _killed(_read("faults")),
        "soak": _soaked(_read("soak")),
        "measures": _pictures_measured(_read("measures")),
        "scale": _shared(_read("scale")),
        "scale-paper": on_paper_words(_read("scale")["on_paper"]),
    }


def redrawn(text: str) -> str:
    """A page with every marked piece put in anew."""
    for name, piece in pieces().items():
        start, end = f"<!-- {name} -->\n", "<!-- end -->"
        if start in text:
            before, rest = text.split(start, 1)
            text = before + start + piece + rest[rest.index(end) :]
    return text


def _measured(study: str, summary: Callable[[Rows], str]) -> str:
    """The table of a study that trains no model, what was expected of it, and what made it."""
    if not (ROOT / "results" / study / "table.json").exists():
        return f"*Not yet run at full size: `burnin reproduce {study}`.*\n"
    table = _read(study)
    missed = [check["text"] for check in table["checks"] if not check["holds"]]
    held = len(table["checks"]) - len(missed)
    told = f"{held} of {len(table['checks'])} checks hold" + "".join(f"; not: {text}" for text in missed)
    told = told if table["checks"] else "Nothing was expected of these rows beforehand"
    origin = _origin(table, next(iter(table["rows"])))
    return f"{summary(_metrics(table)).strip()}\n\n{told}. {origin}"


def _pictures_of_digits(rows: Rows) -> str:
    """Chains of the models of MNIST, short and long, and what training took."""
    minutes = {name: row | {"minutes_training": row["seconds_training"] / 60} for name, row in rows.items()}
    return markdown_table(minutes, (*DIGITS, "minutes_training"))


def _pictures_without_chains(rows: Rows) -> str:
    """Pictures by the learned Stein discrepancy: what was learned, and where chains end."""
    return markdown_table(rows, stein_images.STEIN_IMAGES.metrics, rows_down=True)


def _beta_cost() -> str:
    """How much longer a β-weighted update takes, and what measured it."""
    result = json.loads((ROOT / "results" / "bench" / "beta.json").read_text(encoding="utf-8"))
    made, settings = result["made_by"], result["settings"]
    return (
        f"{write_beta(result)}\n\n`{made['command']}`, {settings['processes']} processes with "
        f"{settings['rounds']} pairs of turns each, ± the standard error between processes, commit "
        f"{made['commit']}, {made['time'][:10]}, {made['processor']}, load {settings['load']:.1f} before.\n"
    )


def _pictures_measured(table: dict[str, Any]) -> str:
    """What the measures of pictures say of real, spoilt and foreign ones (docs/measures.py)."""
    heads = ("Fréchet distance", "kernel distance (KID)", "Inception Score", "precision", "recall")
    heads += ("density", "coverage", "nearer than held-out")
    lines = [f"| in place of samples | {' | '.join(heads)}, pixels (z) |", "|---" * (len(heads) + 1) + "|"]
    for name, metrics in _metrics(table).items():
        first = {one["name"]: one for one in reversed(metrics["measures"])}  # by pixels before by features
        cells = [
            f"{first[head]['value']:.3g}" + (f" ± {first[head]['error']:.2g}" if first[head]["error"] else "")
            for head in heads
        ]
        lines.append(f"| {name} | {' | '.join(cells)} ({metrics['z']:+.1f}) |")
    row = next(iter(table["rows"]))
    metrics = table["rows"][row]["metrics"]
    return (
        f"By *{metrics['features']}*, {metrics['n']:,} pictures beside {metrics['n']:,} test pictures; "
        f"copies are looked for among {metrics['searched']:,} training pictures.\n\n"
        + "\n".join(lines)
        + "\n\n"
        f"{_origin(table, row)}"
    )


def _shared(result: dict[str, Any]) -> str:
    """One process against several, and what else the machine did."""
    made = result["made_by"]
    return (
        f"{write_together(result)}\n\n`{made['command']}`, seed {result['settings']['seed']}, commit "
        f"{made['commit']}, {made['time'][:10]}, {made['machine']}, {made['processor']}, "
        f"torch {made['torch']}; load of the machine {made['load_average'][0]:.1f} before and "
        f"{made['load_average'][1]:.1f} after.\n"
    )


def _fuzzed(table: dict[str, Any]) -> str:
    """Cases of each reader, those that it refused, and those that failed."""
    lines = [
        f"| {name} | {row['cases']:,} | {row['refused']:,} | {len(row['failures'])} |"
        for name, row in table["rows"].items()
    ]
    total, made = table["total"], table["made_by"]
    lines.append(f"| all | {total['cases']:,} | {total['refused']:,} | {total['failures']} |")
    commits = ", ".join(dict.fromkeys(row["commit"] for row in table["rows"].values()))
    return (
        "| reader | cases | refused | failures |\n|---|---|---|---|\n" + "\n".join(lines) + "\n\n"
        f"`{made['command']}`, commits {commits}, {made['time'][:10]}, {made['machine']}.\n"
    )


def _killed(table: dict[str, Any]) -> str:
    """Kills of each run by how it was killed, what they left, and how the runs ended."""
    counted = ("kills", "left_unfinished_files", "most_updates_lost", "ends", "corrupted", "differing")
    rows = {
        name: [row[key] if isinstance(row[key], int) else len(row[key]) for key in counted]
        for name, row in table["rows"].items()
    }
    whole = [
        (max if key == "most_updates_lost" else sum)(column)
        for key, column in zip(counted, zip(*rows.values(), strict=True), strict=True)
    ]
    lines = [
        f"| {name} | {' | '.join(map(str, counts))} |" for name, counts in {**rows, "all": whole}.items()
    ]
    heads = ("run, killed at", *(key.replace("_", " ") for key in counted))
    made = table["made_by"]
    return (
        f"| {' | '.join(heads)} |\n" + "|---" * len(heads) + "|\n" + "\n".join(lines) + "\n\n"
        f"`{made['command']}`, commit {made['commit']}, {made['time'][:10]}, {made['machine']}.\n"
    )


def _soaked(table: dict[str, Any]) -> str:
    """How flat the memory of a long run was."""
    found, made = table["summary"], table["made_by"]
    return (
        f"{found['minutes']:g} minutes, {found['runs']} runs of which {found['diverged']} diverged, "
        f"{found['updates']:,} updates, {found['samples']:,} samples: between "
        f"{found['least_mb']:g} and {found['most_mb']:g} MB after the warm-up, {100 * found['spread']:.2g}% "
        f"apart; from its first tenth to its last {100 * found['drift']:+.2g}%. `{made['command']}`, commit "
        f"{made['commit']}, {made['time'][:10]}, {made['machine']}.\n"
    )


def _read(study: str) -> dict[str, Any]:
    path = ROOT / "results" / study / "table.json"
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return table


def _metrics(table: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: row["metrics"] for name, row in table["rows"].items()}


def _origin(table: dict[str, Any], row: str) -> str:
    made = table["rows"][row]["made_by"]
    seeds = sorted({other["seed"] for other in table["rows"].values()})
    named = f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
    command = made["command"].split(" --jobs ")[0].split(" --rows ")[0]  # of the study, not of its row
    commits = list(dict.fromkeys(other["made_by"]["commit"] for other in table["rows"].values()))
    return (
        f"`{command}`, {named}, commit{'s' if len(commits) > 1 else ''} {', '.join(commits)}, "
        f"{made['time'][:10]}, {made['machine']}, torch {made['torch']}.\n"
    )


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(redrawn(page.read_text(encoding="utf-8")), encoding="utf-8")
        sys.stdout.write(f"{page.relative_to(ROOT)}\n")
    BENCHMARKS.write_text(write_page(_read("bench")), encoding="utf-8")
    sys.stdout.write(f"{BENCHMARKS.relative_to(ROOT)}\n")
