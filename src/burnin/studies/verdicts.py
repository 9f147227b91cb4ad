"""Whether the verdict is right: models of every scheme, judged by chains alone and by their exact density."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from burnin.core import InputError
from burnin.evaluation.assess import Assessment
from burnin.evaluation.grid import grid_kl
from burnin.evaluation.model import Model
from burnin.evaluation.verdict import FAIR, FAIR_KL, Standing
from burnin.studies.rings import SCHEMES
from burnin.studies.rows import Study
from burnin.studies.table import Rows

NEAR = 10.0
"""Nats below its highest value down to which the true log-density counts as near the data."""
FIVE = ("data", "noise", "persistent", "refresh", "hybrid")
DATA: dict[str, list[str]] = {
    "rings": [],
    "mixture": ['data.name="mixture8-unequal"', "model.frequencies=[1.0, 2.0]"],
}
ROWS: dict[str, list[str]] = {
    f"{data}-{scheme}-s{seed}": [*DATA[data], *SCHEMES[scheme], f"run.seed={seed}"]
    for data in DATA
    for scheme in FIVE
    for seed in (0, 1)
}


def measure(model: Model, result: Assessment) -> dict[str, Any]:
    """The verdict by chains and the one by the exact density."""
    if result.log_truth is None or result.log_model is None or result.density_kl is None:
        raise InputError("the verdicts need data whose density is known")
    distance = result.sample_distance
    near = kl_near(result.log_truth, result.log_model)
    exact = exact_standing(distance, result.density_kl, near)
    evidence = result.evidence
    return {
        "verdict": str(result.verdict.standing),
        "exact": str(exact),
        "right": result.verdict.standing is exact,
        "sample_distance": distance,
        "density_kl": result.density_kl,
        "near_kl": near,
        "long_run_distance": result.long_run,
        "stayed_distance": evidence.stayed.distance,
        "stayed_energies": evidence.stayed.energies,
        "anywhere_distance": evidence.anywhere.distance,
        "anywhere_energies": evidence.anywhere.energies,
        "memory": evidence.memory,
        "drift": evidence.drift,
        "rhat": evidence.rhat,
    }


def kl_near(log_truth: Tensor, log_model: Tensor) -> float:
    """KL(true ‖ model), both normalised where the truth has mass: what the model says elsewhere is left out.

    Example:
        >>> import torch
        >>> truth = torch.tensor([0.5, 0.5, 1e-9]).log()
        >>> model = torch.tensor([0.1, 0.1, 0.8]).log()
        >>> abs(kl_near(truth, model)) < 1e-6
        True
    """
    near = log_truth > log_truth.max() - NEAR
    return grid_kl(log_truth[near].log_softmax(0), log_model[near].log_softmax(0))


def exact_standing(sample_distance: float, density_kl: float, near_kl: float) -> Standing:
    """What a model is, by its exact divergence from the truth instead of by its chains.

    Example:
        >>> print(exact_standing(40.0, 2.0, 0.1))
        a density near the data only
    """
    generator = sample_distance <= FAIR
    if generator:
        return Standing.BOTH if density_kl <= FAIR_KL else Standing.GENERATOR
    return Standing.NEAR_DATA if near_kl <= FAIR_KL else Standing.NEITHER


def summary(rows: Rows) -> str:
    """One line for each model, and how many verdicts were right."""
    lines = ["| model | by its chains | by its exact density | density_kl | near_kl | sample_distance |"]
    lines.append("|---" * 6 + "|")
    for name, row in rows.items():
        mark = "" if row["right"] else " **(wrong)**"
        numbers = " | ".join(f"{row[key]:.3g}" for key in ("density_kl", "near_kl", "sample_distance"))
        lines.append(f"| {name} | {row['verdict']}{mark} | {row['exact']} | {numbers} |")
    right = sum(bool(row["right"]) for row in rows.values())
    return "\n".join(lines) + f"\n\n{right} of {len(rows)} verdicts are right.\n"


@dataclass(frozen=True, kw_only=True)
class VerdictStudy(Study):
    """Models whose verdicts are counted: what is expected is a number of right ones, not a number of each."""

    def judged(self, rows: Rows) -> Rows:
        """How many verdicts are right: `all` of the study's, or of the `small` variant's; else nothing.

        Example:
            >>> VERDICTS.judged({name: {"right": True} for name in VERDICTS.rows})
            {'all': {'models': 20, 'right': 20}}
        """
        whole = {"all": set(self.rows), "small": set(self.quick_rows)}
        counted = {"models": len(rows), "right": sum(bool(row["right"]) for row in rows.values())}
        return {name: counted for name, wanted in whole.items() if set(rows) == wanted}


VERDICTS = VerdictStudy(
    name="verdicts",
    pooled=("all", "small"),
    about="is the verdict right? five schemes on two known densities, judged by chains and by the truth",
    recipe="verdicts",
    quick_recipe="verdicts-quick",
    rows=ROWS,
    quick_rows=("mixture-data-s0", "mixture-noise-s0", "mixture-hybrid-s0"),
    metrics=("verdict", "exact", "right", "density_kl", "near_kl", "sample_distance"),
    measure=measure,
    draw=None,
    tabulate=summary,
)
