"""Two samplers in one contrast: rows that are fair to each other, a table, and the whole small variant."""

from __future__ import annotations

from pathlib import Path

import pytest

from burnin.assemble_chains import build_arms
from burnin.config import load_config
from burnin.data import two_scales
from burnin.evaluation.assess import plane_of
from burnin.evaluation.grid import PlaneGrid, band_masses, grid_kl
from burnin.rng import Streams
from burnin.samplers import HMC, Langevin
from burnin.studies import STUDIES, run_study
from burnin.studies.samplers import BORDER, DRAWN, NAME, SEEDS, TWO_SAMPLERS, row_name, summary


def test_every_row_has_as_many_chains_as_data() -> None:
    assert set(TWO_SAMPLERS.quick_rows) <= set(TWO_SAMPLERS.rows)
    for row, changes in TWO_SAMPLERS.rows.items():
        match = NAME.fullmatch(row)
        assert match is not None
        config = load_config(TWO_SAMPLERS.recipe, changes)
        arms = build_arms(config, 2, Streams(0)["bank"])
        batch = config.run.batch_size
        assert sum(arm.num_chains or batch for arm in arms) == batch
        assert all(arm.beta_at(0) == float(match["beta"]) for arm in arms)
        assert config.run.seed == int(match["seed"])
        assert len({arm.pool for arm in arms}) == 1
    for samplers in DRAWN:
        assert {row_name(samplers, 0.3, seed) for seed in SEEDS} <= set(TWO_SAMPLERS.rows)


@pytest.mark.parametrize(
    ("samplers", "kinds", "step_sizes"),
    [
        ("small", [Langevin], [0.004]),
        ("large", [Langevin], [0.05]),
        ("both", [Langevin, Langevin], [0.004, 0.05]),
        ("small_hmc", [Langevin, HMC], [0.004, 0.15]),
    ],
)
def test_what_a_row_means(samplers: str, kinds: list[type], step_sizes: list[float]) -> None:
    config = load_config(TWO_SAMPLERS.recipe, TWO_SAMPLERS.rows[row_name(samplers, 0.3, 0)])
    built = [arm.sampler for arm in build_arms(config, 2, Streams(0)["bank"])]
    assert [type(sampler) for sampler in built] == kinds
    assert [sampler.step_size for sampler in built if isinstance(sampler, Langevin | HMC)] == step_sizes


def test_the_grid_resolves_the_ring() -> None:
    """The truth against a blurred truth, on the recipe's grid and on one twice as fine: the same KL."""
    density = two_scales()
    points = load_config("two-samplers").study.grid_points
    coarse = plane_of(density, density.sample(20_000, Streams(0)["fresh"]), points)
    assert coarse is not None
    fine = PlaneGrid(coarse.half_width, 2 * points - 1, 2)
    values = []
    for grid in (coarse, fine):
        truth = grid.log_truth(density)
        values.append(grid_kl(truth, (0.8 * truth).log_softmax(0)))
        assert band_masses(truth, [grid.radius() < BORDER])[0] == pytest.approx(0.5, abs=1e-3)
    assert values[0] == pytest.approx(values[1], rel=1e-3)


def test_the_table_leaves_diverged_runs_out_of_its_means() -> None:
    def row(kl: float, ended: str = "finished") -> dict[str, object]:
        return {"density_kl": kl, "density_kl_within": 0.1, "ring_mass": 0.5, "ended": ended}

    rows = {
        row_name("both", 0.3, 0): row(0.1),
        row_name("both", 0.3, 1): row(0.3),
        row_name("both", 0.3, 2): row(9.0, "diverged at update 7"),
        row_name("both", 0.0, 0): row(9.0, "diverged at update 7"),
    }
    lines = summary(rows).splitlines()
    assert lines[2] == "| both pooled, 50 chains each | 0.3 | 0.2 ± 0.1 | 0.1 ± 0 | 0.5 ± 0 | 3, 1 diverged |"
    assert lines[3] == "| both pooled, 50 chains each | 0 |  |  |  | 1, 1 diverged |"


def test_either_alone_fails_and_both_do_not(tmp_path: Path) -> None:
    study = STUDIES["two-samplers"]
    table, checks = run_study(study, tmp_path, quick=True, jobs=2, status=lambda *_: None)
    missed = [check.text for check in checks if not check.holds]
    assert not missed, missed
    assert len(checks) == len(load_config("two-samplers-quick").expected) == 3
    assert set(table["rows"]) == set(study.quick_rows)
    masses = {name: table["rows"][row_name(name, 0.3, 0)]["metrics"]["ring_mass"] for name in DRAWN}
    assert masses["small"] < 0.1
    assert masses["large"] > 0.9
    assert 0.2 < masses["both"] < 0.8
    assert (tmp_path / "figure.png").stat().st_size > 10_000
