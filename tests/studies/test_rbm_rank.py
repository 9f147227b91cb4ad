"""Rankings of RBMs and the cost of critics: the bound in the critic's units, shares, straight lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from burnin.discrepancies import CriticSettings, Points
from burnin.rng import Streams
from burnin.studies import STUDIES, critic_cost, run_study
from burnin.studies.critic_cost import CRITIC_COST, DIMS, POINTS, milliseconds, row_name, straightness
from burnin.studies.critic_cost import pool as pool_costs
from burnin.studies.critic_cost import summary as cost_summary
from burnin.studies.machine_trials import SIZES, draw_trials
from burnin.studies.rbm_rank import RBM_RANK, bounds, draw, kernel_discrepancies, measure, pool, summary
from burnin.studies.trial_settings import KernelPart, TrialsRecipe

SMALL = TrialsRecipe(
    title="small",
    machine={"dim": 5, "hidden": 3, "perturbation": 0.5, "sweeps": 30},
    trials={"number": 6, "together": 6, "points": 1000},
    critic={
        "width": 64,
        "layers": 1,
        "iterations": 100,
        "validate_every": 10,
        "learning_rate": 1e-2,
        "dropout": 0.0,
        "trace": "exact",
        "standardise": True,
    },
)


def silent(what: str, done: int, total: int) -> None:
    """Nobody is told."""


def test_rows_and_what_is_expected_of_them() -> None:
    assert STUDIES["rbm-rank"] is RBM_RANK
    recipe = RBM_RANK.load(RBM_RANK.recipe, RBM_RANK.rows["d200-p0.06-b1"])
    assert (recipe.machine.dim, recipe.machine.hidden, recipe.critic.lam) == (200, 100, 0.5)
    places = {(e.scheme, e.metric) for e in recipe.expected}
    for dim in SIZES:
        assert {(f"d{dim}-p0", "lsd_from_zero"), (f"d{dim}-p0.06", "share")} <= places
        assert {(f"d{dim}-p{p}", "above_bound") for p in (0.01, 0.02, 0.04, 0.06)} <= places


@pytest.mark.parametrize("standardise", [False, True])
def test_the_bound_is_of_the_test_points_in_the_critics_units(standardise: bool) -> None:
    critic = SMALL.critic.model_copy(update={"standardise": standardise, "lam": 0.25})
    recipe = SMALL.model_copy(update={"critic": critic})
    trials = draw_trials(recipe, Streams(0), silent)
    found = bounds(recipe, trials)
    for index in range(6):
        x, model, truth = trials.points.x[index], trials.points.scores[index], trials.truth[index]
        spread = x[:800].std(0) if standardise else torch.ones(5)
        expected = 2 * ((model - truth) * spread)[900:].square().sum(1).mean().item()
        assert found[index] == pytest.approx(expected, rel=1e-4)


def test_the_discrepancy_is_zero_where_the_model_is_right_and_near_the_bound_elsewhere() -> None:
    wrong = measure(SMALL, silent)
    machine = SMALL.machine.model_copy(update={"perturbation": 0.0})
    right = measure(SMALL.model_copy(update={"machine": machine}), silent)
    pooled = pool({"d5-p0-b0": right, "d5-p0.5-b0": wrong})
    assert right["bound"] == [0.0] * 6
    assert pooled["d5-p0"]["lsd_from_zero"] < 3.5
    assert "share" not in pooled["d5-p0"]
    assert pooled["d5-p0.5"]["share"] > 0.5
    assert pooled["d5-p0.5"]["above_bound"] < 3
    assert pooled["d5-p0.5"]["lsd"] > 4 * pooled["d5-p0.5"]["lsd_error"]
    assert {len(wrong[name]) for name in ("lsd", "lsd_error", "ksd", "lksd_error", "bound")} == {6}


def test_standard_errors_of_the_kernels_are_those_of_repetition() -> None:
    generator = torch.Generator().manual_seed(0)
    values: dict[str, list[float]] = {"ksd": [], "lksd": []}
    told: dict[str, list[float]] = {"ksd": [], "lksd": []}
    for _ in range(60):
        x = torch.randn(200, 2, generator=generator)
        found = kernel_discrepancies(
            Points(x, 0.7 - x), KernelPart().settings(), generator, standardise=False
        )
        for method, (value, error) in found.items():
            values[method].append(value)
            told[method].append(error)
    for method in values:
        seen = torch.tensor(values[method]).std().item()
        said = torch.tensor(told[method]).mean().item()
        assert said == pytest.approx(seen, rel=4 / (2 * 60) ** 0.5)


def block(lsd: list[float], bound: list[float], ksd: float, error: float = 0.5) -> dict[str, Any]:
    count = len(lsd)
    return {
        "trials": count,
        "lsd": lsd,
        "lsd_error": [error] * count,
        "bound": bound,
        **{name: [ksd] * count for name in ("ksd", "lksd")},
        **{f"{name}_error": [0.25 * ksd] * count for name in ("ksd", "lksd")},
    }


def test_blocks_are_pooled(tmp_path: Path) -> None:
    rows = {
        "d50-p0-b0": block([0.1, -0.1], [0.0, 0.0], 0.01),
        "d50-p0.06-b0": block([4.0, 6.0], [8.0, 8.0], 1.0),
        "d50-p0.06-b1": block([8.0, 6.0], [8.0, 8.0], 1.0),
    }
    pooled = pool(rows)
    assert pooled["d50-p0"]["lsd_from_zero"] == pytest.approx(0)
    numbers = pooled["d50-p0.06"]
    assert (numbers["trials"], numbers["lsd"], numbers["share"]) == (4, 6.0, 0.75)
    error = (8 / 3 / 4) ** 0.5
    assert numbers["lsd_error"] == pytest.approx(error)
    assert numbers["above_bound"] == pytest.approx(-2 / error)
    assert numbers["lsd_relative"] == pytest.approx(0.5 / 6)
    assert numbers["times_surer"] == pytest.approx(0.25 / (0.5 / 6))
    assert "| LSD's share of it |  | 0.75 |" in summary(rows)
    for name, row in rows.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"metrics": row}))
    draw(tmp_path, SMALL, list(rows))
    assert (tmp_path / "figure.png").stat().st_size > 5000


# ---------------------------------------------------------------- what a critic costs


def test_costs_are_held_against_a_line() -> None:
    assert set(CRITIC_COST.rows) == {row_name(200, dim) for dim in DIMS} | {row_name(n, 200) for n in POINTS}
    sizes = list(CRITIC_COST.rows)
    rows = {}
    for name in sizes:
        n, dim = (int(part[1:]) for part in name.split("-"))
        rows[name] = {"points": n, "dim": dim, "gaussian": 1 + 0.01 * dim, "exact": 1e-4 * n**2}
    pooled = pool_costs(rows)
    assert pooled["dims"]["off_gaussian"] == pytest.approx(0, abs=1e-9)
    assert pooled["points"]["off_exact"] > 0.3, "a parabola is no line"
    assert "| Hutchinson's trace | 1.1 ms |" in cost_summary(rows)
    assert "dims" not in pool_costs({sizes[0]: rows[sizes[0]]})


def test_a_line_through_nothing_has_no_negative_part() -> None:
    off, growth = straightness([1.0, 2.0, 4.0], [0.9, 2.0, 4.4])
    assert off == pytest.approx(0.1, abs=0.02)  # the best line without a constant is size itself
    assert growth == pytest.approx(4.4 / 0.9 / 4)


def test_what_is_done_once_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that training moves: three seconds to begin with, and 20 ms for each update."""
    clock = [0.0]

    def train(points: Points, few: Points, settings: CriticSettings, *_: Any, **__: Any) -> None:
        assert settings.validate_every == settings.iterations, "one look, at the end"
        clock[0] += 3 + 0.02 * settings.iterations

    monkeypatch.setattr(critic_cost, "train_critics", train)
    monkeypatch.setattr("burnin.studies.critic_cost.time.process_time", lambda: clock[0])
    x = torch.zeros(1, 10, 2)
    found = milliseconds(Points(x, x), CriticSettings(), 7, torch.Generator())
    assert found == pytest.approx(20)


@pytest.mark.parametrize(("name", "count"), [("rbm-power", 7), ("rbm-rank", 3)])
def test_the_small_variants_are_as_expected(name: str, count: int, tmp_path: Path) -> None:
    table, checks = run_study(STUDIES[name], tmp_path, quick=True, jobs=2, status=lambda *_: None)
    assert len(checks) == count
    missed = [check.text for check in checks if not check.holds]
    assert not missed, missed
    assert set(table["rows"]) == {"d50-p0-b0", "d50-p0.06-b0"}
    assert (tmp_path / "figure.png").stat().st_size > 5000
