"""What each saving of the power study keeps of the power, and how many more trials it makes in an hour."""

from __future__ import annotations

from typing import Any

from burnin.studies.machine_trials import block_rows, grouped, mean_with_error
from burnin.studies.measured import MeasuredStudy
from burnin.studies.rbm_power import measure
from burnin.studies.table import Rows
from burnin.studies.trial_settings import TrialsRecipe

PAPER, ALL, AVERAGED = "paper", "all", "averaged"
SAVINGS: dict[str, list[str]] = {
    "exact-trace": ['critic.trace="exact"'],
    "together": ["trials.together=10"],
    "standard-units": ["critic.standardise=true", "critic.learning_rate=5e-4"],
    "mini-batches": ["critic.batch_size=200"],
    "patience": ["critic.patience=3", "critic.validate_every=25"],
}
"""Each alone, as a change of the paper's settings, one trial after the other."""
MEANING: dict[str, str] = {
    PAPER: "the paper's settings, one by one",
    "exact-trace": "exact trace instead of Hutchinson's",
    "together": "ten critics as one network",
    "standard-units": "columns in units of their spread, half the learning rate",
    "mini-batches": "200 of the 800 points an update",
    "patience": "stop after 3 looks, 25 updates apart, without a better critic",
    ALL: "all of them",
    AVERAGED: "100 of the 800 points an update, and a running mean of the weights",
}
GROUPS: dict[str, list[str]] = {
    PAPER: [],
    **SAVINGS,
    ALL: [change for changes in SAVINGS.values() for change in changes],
    AVERAGED: ["critic.batch_size=100", "critic.average=0.99"],
}


def pool(rows: Rows) -> dict[str, dict[str, Any]]:
    """Power, trials in an hour and updates of each way; how its power differs from that of the paper's.

    The difference is of the same trials: its standard error is that of the paired differences.
    """
    groups = grouped(rows)
    power = {
        group: {
            (number, trial): value
            for number, block in members.items()
            for trial, value in enumerate(block["foretold"])
        }
        for group, members in groups.items()
    }
    pooled: dict[str, dict[str, Any]] = {}
    for group, members in groups.items():
        blocks = list(members.values())
        number = sum(block["trials"] for block in blocks)
        seconds = sum(block["cpu_seconds_of"]["lsd"] for block in blocks)
        updates = [value for block in blocks for value in block["updates"]]
        rejected = [p <= block["level"] for block in blocks for p in block["p_values"]["lsd"]]
        pooled[group] = {
            "trials": number,
            "power": sum(power[group].values()) / number,
            "rejected": sum(rejected) / number,
            "updates": sum(updates) / number,
            "per_hour": 3600 * number / seconds,
        }
        if PAPER in groups:
            apart = [value - power[PAPER][key] for key, value in power[group].items() if key in power[PAPER]]
            kept, error = mean_with_error(apart)
            pooled[group] |= {"kept": kept, "kept_error": error}
    if PAPER in pooled:
        for numbers in pooled.values():
            numbers["times_faster"] = numbers["per_hour"] / pooled[PAPER]["per_hour"]
    return pooled


def summary(rows: Rows) -> str:
    """A line for each way."""
    lines = ["| | power | less the paper's | rejected | updates | trials an hour | times |", "|---" * 7 + "|"]
    for group, numbers in pool(rows).items():
        kept = f"{numbers['kept']:+.3f} ± {numbers['kept_error']:.3f}" if "kept" in numbers else ""
        times = f"{numbers['times_faster']:.3g}" if "times_faster" in numbers else ""
        lines.append(
            f"| {MEANING[group]} | {numbers['power']:.3f} | {kept} | {numbers['rejected']:.2f} of "
            f"{numbers['trials']} | {numbers['updates']:.0f} | {numbers['per_hour']:.0f} | {times} |"
        )
    return "\n".join(lines) + "\n"


RBM_SAVINGS = MeasuredStudy(
    name="rbm-savings",
    about="the power study's savings, each alone and all of them, against the paper's settings one by one",
    recipe="measured/rbm-savings",
    quick_recipe=None,
    settings=TrialsRecipe,
    rows=block_rows(GROUPS, lambda group: 2),
    quick_rows=(),
    metrics=("power", "rejected", "updates", "per_hour", "times_faster", "kept", "kept_error"),
    measure=measure,
    pool=pool,
    pooled=tuple(GROUPS),
    draw=None,
    tabulate=summary,
)
