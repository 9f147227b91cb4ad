"""Power studies on RBMs: rows that mean what they say, data that is the perturbed machine's, pooled rates."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from burnin.config import load_recipe
from burnin.discrepancies import Points
from burnin.rng import Streams
from burnin.studies import STUDIES
from burnin.studies.machine_trials import SETTLED, SIZES, draw_trials, place_of, split_of
from burnin.studies.rbm_power import RBM_POWER, draw, foretold, kernel_p_values, measure, pool, summary
from burnin.studies.rbm_savings import GROUPS, PAPER, RBM_SAVINGS
from burnin.studies.rbm_savings import pool as pool_savings
from burnin.studies.rbm_savings import summary as savings_summary
from burnin.studies.trial_settings import KernelPart, TrialsRecipe
from tests.discrepancies.gaussians import within_binomial

SMALL = TrialsRecipe(
    title="small",
    machine={"dim": 6, "hidden": 4, "sweeps": 30},
    trials={"number": 30, "together": 30, "points": 200, "fresh": 100},
    critic={
        "width": 16,
        "iterations": 60,
        "validate_every": 20,
        "learning_rate": 1e-2,
        "trace": "exact",
        "standardise": True,
    },
    kernel={"num_draws": 100},
)


def silent(what: str, done: int, total: int) -> None:
    """Nobody is told."""


def changed(recipe: TrialsRecipe, **machine: Any) -> TrialsRecipe:
    return recipe.model_copy(update={"machine": recipe.machine.model_copy(update=machine)})


def test_the_rows_are_the_papers() -> None:
    assert STUDIES["rbm-power"] is RBM_POWER
    trials: dict[str, int] = {}
    for name, changes in RBM_POWER.rows.items():
        recipe = RBM_POWER.load(RBM_POWER.recipe, changes)
        group, block = name.rsplit("-b", 1)
        assert recipe.machine.hidden == SIZES[recipe.machine.dim]
        assert place_of(group) == (
            recipe.machine.dim,
            recipe.machine.perturbation,
            recipe.machine.block_steps == 0,
        )
        assert recipe.run.seed == int(block)
        assert (recipe.trials.points, recipe.machine.block_steps) in ((1000, 0), (1000, 2000))
        assert (recipe.critic.width, recipe.critic.layers, recipe.critic.lam) == (300, 2, 0.5)
        trials[group] = trials.get(group, 0) + recipe.trials.number
    assert sum(not group.startswith(SETTLED) for group in trials) == 15
    assert trials["d200-p0.04"] == 200
    assert min(trials.values()) == 100
    assert {trials[f"{kind}d{dim}-p0"] for dim in SIZES for kind in ("", SETTLED)} == {200}
    paper = RBM_SAVINGS.load(RBM_SAVINGS.recipe, RBM_SAVINGS.rows["paper-b0"])
    settings = paper.critic.settings()
    assert (settings.iterations, settings.batch_size, settings.patience, settings.trace) == (
        1000,
        None,
        None,
        "gaussian",
    )
    assert (paper.critic.standardise, paper.trials.together) == (False, 1)
    everything = RBM_SAVINGS.load(RBM_SAVINGS.recipe, RBM_SAVINGS.rows["all-b0"])
    power = load_recipe(TrialsRecipe, RBM_POWER.recipe)
    assert everything.critic == power.critic, "what is shown to keep the power is what the study does"
    assert everything.trials.together == power.trials.together


def test_the_data_is_the_perturbed_machines() -> None:
    """By Stein's identity the truth's scores have mean 0 over the data, the model's only without noise."""
    recipe = changed(SMALL, perturbation=0.5)
    trials = draw_trials(recipe, Streams(0), silent)
    n = 300
    assert trials.points.x.shape == (30, n, 6)

    def largest(scores: torch.Tensor) -> float:
        return float((scores.mean(1) / (scores.std(1) / math.sqrt(n))).abs().max())

    assert largest(trials.truth) < 4.5
    assert largest(trials.points.scores) > 4.5
    same = draw_trials(changed(SMALL, perturbation=0.0), Streams(0), silent)
    assert same.truth.equal(same.points.scores)
    other = draw_trials(changed(SMALL, perturbation=0.0), Streams(1), silent)
    assert not other.points.x.equal(same.points.x)


def test_every_test_keeps_its_level_and_finds_what_is_wrong() -> None:
    right = measure(changed(SMALL, perturbation=0.0), silent)
    wrong = measure(changed(SMALL, perturbation=1.0), silent)
    rates = pool({"d6-p0-b0": right, "d6-p1-b0": wrong})
    for test in ("lsd", "ksd", "lksd", "fssd", "fssd_signs"):
        assert len(right["p_values"][test]) == 30
        assert within_binomial(round(30 * rates["d6-p0"][test]), 30, 0.05, errors=3.5)
    for test in ("lsd", "ksd", "fssd", "fssd_signs"):
        assert rates["d6-p1"][test] > 0.5
    assert set(right["cpu_seconds_of"]) == {"data", "lsd", "ksd", "lksd", "fssd"}
    assert len(right["foretold"]) == len(right["updates"]) == 30
    # What fresh points foretell of the critics is what their tests then show, up to chance.
    mean = sum(wrong["foretold"]) / 30
    normal = sum(p <= 0.05 for p in wrong["p_values"]["lsd_normal"])
    assert within_binomial(normal, 30, mean)


def test_a_kernel_test_learns_from_a_fifth_only() -> None:
    """Rows that are learned from are not tested: a wrong fifth is not noticed, a wrong rest is."""
    streams = Streams(0)
    x = torch.randn(400, 2, generator=streams["x"])
    for shifted, rejected in ((slice(0, 80), False), (slice(80, 400), True)):
        scores = -x.clone()
        scores[shifted] += 1.0
        for method in ("ksd", "fssd"):
            for p_value in kernel_p_values(method, Points(x, scores), KernelPart(), streams).values():
                assert (p_value <= 0.05) == rejected


def test_power_is_foretold_by_the_normal_law() -> None:
    terms = torch.tensor([[-0.8, 1.2]], dtype=torch.float64).repeat(1, 5000)  # mean 0.2, spread 1
    # t of a hundred such terms is N(2, 1), and 1.645 is what it takes.
    assert foretold(terms, 100, 0.05).item() == pytest.approx(0.6387, abs=1e-4)


def block(rejections: int, trials: int, seconds: float = 1.0, **others: int) -> dict[str, Any]:
    counts = {"lsd": rejections, **others}
    return {
        "trials": trials,
        "level": 0.05,
        "p_values": {test: [0.01] * count + [0.5] * (trials - count) for test, count in counts.items()},
        "cpu_seconds_of": {"data": seconds, "lsd": 2 * seconds},
    }


def test_blocks_are_pooled_and_held_against_each_other(tmp_path: Path) -> None:
    rows = {
        "d50-p0.02-b0": block(8, 10, ksd=6, lksd=0, fssd=4),
        "d50-p0.02-b1": block(12, 30, ksd=10, lksd=0, fssd=6),
        "d50-p0-b0": block(1, 20),
    }
    pooled = pool(rows)
    numbers = pooled["d50-p0.02"]
    assert numbers["trials"] == 40
    assert numbers["lsd"] == 0.5
    assert numbers["lsd_error"] == pytest.approx(math.sqrt(0.25 / 40))
    assert numbers["lsd_minus_ksd"] == pytest.approx(0.1)
    assert numbers["lsd_over_fssd"] == pytest.approx(2.0)
    assert numbers["lsd_over_lksd"] == pytest.approx(20.0), "no rejection counts as one"
    assert numbers["seconds_of_a_trial"] == {"data": 0.05, "lsd": 0.1}
    assert "ksd" not in pooled["d50-p0"]
    lines = summary(rows).splitlines()
    assert lines[0] == "| 50 dimensions | 0 | 0.02 |"
    assert "| LSD | 0.050 ± 0.049 | 0.500 ± 0.079 |" in lines
    assert "| trials | 20 | 40 |" in lines
    for name, row in rows.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"metrics": row}))
    draw(tmp_path, SMALL, list(rows))
    assert (tmp_path / "figure.png").stat().st_size > 5000


def test_savings_are_compared_trial_by_trial() -> None:
    def row(power: list[float], seconds: float) -> dict[str, Any]:
        return block(1, 2, seconds) | {"foretold": power, "updates": [100, 300]}

    rows = {
        f"{PAPER}-b0": row([0.2, 0.6], 40.0),
        f"{PAPER}-b1": row([0.4, 0.8], 40.0),
        "all-b1": row([0.5, 0.9], 4.0),  # its first block is not made yet
    }
    pooled = pool_savings(rows)
    assert pooled["all"]["kept"] == pytest.approx(0.1), "only the trials that both have"
    assert pooled["all"]["kept_error"] == pytest.approx(0, abs=1e-12)
    assert pooled["all"]["times_faster"] == pytest.approx(10)
    assert pooled[PAPER]["power"] == pytest.approx(0.5)
    assert pooled[PAPER]["per_hour"] == pytest.approx(3600 * 4 / 160)
    assert pooled["all"]["updates"] == 200
    assert "+0.100 ± 0.000" in savings_summary(rows)
    assert set(GROUPS) == set(RBM_SAVINGS.pooled or ())


def test_fresh_points_leave_the_split_alone() -> None:
    shares = split_of(TrialsRecipe(title="", trials={"points": 1000, "fresh": 4000}))
    assert [share * 5000 for share in shares] == pytest.approx([800, 100, 4100])
