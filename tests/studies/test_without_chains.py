"""The studies of training without chains: rows that mean what they say, tables over seeds, small rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from burnin.assemble import build_trainer, model_of
from burnin.config import load_config
from burnin.core import InputError
from burnin.data import LinearICA
from burnin.energies import ICAEnergy
from burnin.objectives import LearnedStein, Likelihood
from burnin.studies import STUDIES, Study, run_study
from burnin.studies.ica import DIMS, ICA, ICA_PAPER, METHODS, SEEDS, measure, pool, row_name, summary
from burnin.studies.stein_toy import DATA, STEIN_TOY
from burnin.studies.stein_toy import summary as toy_summary

TINY = [
    "run.updates=20",
    "study.samples=50",
    "study.grid_points=31",
    "study.likelihood_particles=8",
    *(
        f"study.{name}=10"
        for name in ("long_chains", "long_steps", "data_chains", "data_steps", "cooling_steps")
    ),
]


def test_the_rows_are_those_of_the_papers_table() -> None:
    assert len(ICA.rows) == (len(DIMS) + 1) * len(SEEDS) * len(METHODS) == 60
    assert len(STEIN_TOY.rows) == len(DATA) * 3
    for study in (ICA, STEIN_TOY):
        assert STUDIES[study.name] is study
        assert set(study.quick_rows) <= set(study.rows)


def test_what_a_row_of_ica_means() -> None:
    trainer = build_trainer(load_config("ica", ICA.rows[row_name(30, "lsd", 1)]))
    parts, objective = trainer.parts, trainer.parts.objective
    assert isinstance(objective, LearnedStein)
    assert (objective.critic_steps, objective.lam) == (1, 1.0)
    as_mixed = load_config("ica", ICA.rows[row_name(50, "lsd", 1, "mixed")]).objective
    assert (as_mixed.lam, as_mixed.critic_layers, as_mixed.critic_activation) == (10.0, 2, "silu")
    assert isinstance(parts.data, LinearICA)
    assert isinstance(parts.energy, ICAEnergy)
    assert parts.data.dim == 30
    assert parts.data.source == parts.energy.source == "logistic"
    ml = build_trainer(load_config("ica", ICA.rows[row_name(30, "ml", 1)]))
    assert isinstance(ml.parts.objective, Likelihood)
    assert isinstance(ml.parts.data, LinearICA)
    assert ml.parts.data.unmixing.equal(parts.data.unmixing), "a seed has one mixing matrix"
    other = build_trainer(load_config("ica", ICA.rows[row_name(30, "ml", 2)])).parts.data
    assert isinstance(other, LinearICA)
    assert not other.unmixing.equal(parts.data.unmixing)


def test_the_toys_are_the_papers_size() -> None:
    config = load_config("stein-toy")
    assert (config.run.updates, config.run.batch_size, config.model.width) == (10_000, 100, [300, 300])
    trainer = build_trainer(config)
    objective = trainer.parts.objective
    assert isinstance(objective, LearnedStein)
    assert (objective.critic_steps, objective.lam) == (5, 10.0)
    for optimizer in (trainer.parts.optimizer, *objective.optimizers().values()):
        assert (optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["betas"]) == (1e-3, (0.5, 0.9))
    names = {name for name, _ in trainer.parts.energy.named_parameters()}
    assert {"mean", "log_std"} <= names, "the Gaussian is learned"


def test_tables_average_over_seeds() -> None:
    def row(gap: float | None, ended: str = "finished") -> dict[str, object]:
        value = None if gap is None else -12 - gap
        return {"log_likelihood": value, "true_log_likelihood": -12.0, "gap": gap, "ended": ended}

    rows = {row_name(10, "ml", seed): row(0.1 * (seed + 1)) for seed in range(3)}
    rows[row_name(10, "ssm", 0)] = row(None, "diverged at update 7")
    lines = summary(rows).splitlines()
    assert lines[2] == "| truth | -12 ± 0 |"
    assert lines[-2] == "| ml | 0.2 ± 0.058 |"
    assert lines[-1] == "| ssm | not finite, 1 of 1 diverged |"
    toys = {
        f"pinwheel-nce-s{seed}": {"density_kl": 0.1 * (seed + 1), "ended": "finished"} for seed in range(3)
    }
    assert toy_summary(toys).splitlines()[-1] == "| pinwheel |  |  | 0.2 ± 0.058 |"


@pytest.mark.parametrize(
    ("study", "row", "metric"), [(ICA, "d10-ml-s0", "gap"), (STEIN_TOY, "pinwheel-nce-s0", "density_kl")]
)
def test_a_small_row_is_made_whole_and_only_once(study: Study, row: str, metric: str, tmp_path: Path) -> None:
    """Next to no training, through its process to table and figure; then from what is there."""

    def make(*changes: str) -> float:
        table, _ = run_study(
            study, tmp_path, quick=True, changes=[*TINY, *changes], rows=[row], jobs=1, status=lambda *_: None
        )
        return float(table["rows"][row]["metrics"][metric])

    first = make()
    assert first > 0
    assert (tmp_path / "figure.png").stat().st_size > 5000
    assert "±" not in (tmp_path / "table.md").read_text(encoding="utf-8")
    path = tmp_path / f"{row}.json"
    made = path.stat().st_mtime_ns
    assert make() == first
    assert path.stat().st_mtime_ns == made, "a row that is done is not made again"

    # What was made before a setting existed counts as made with its default, not with another value.
    content = json.loads(path.read_text(encoding="utf-8"))
    del content["config"]["model"]["hidden"]
    path.write_text(json.dumps(content), encoding="utf-8")
    assert make() == first
    with pytest.raises(InputError, match="other settings"):
        make("model.hidden=7")


def test_the_gap_is_measured_on_the_same_points() -> None:
    """At the truth's own matrix the gap is 0 and so is its error, whatever the likelihood's own error is."""
    config = load_config("ica", ["data.dim=5"])
    model = model_of(build_trainer(config), config)
    assert isinstance(model.data, LinearICA)
    exact = replace(model, energy=ICAEnergy(model.data.unmixing, "logistic"))
    found = measure(exact, None)  # type: ignore[arg-type]
    assert abs(found["gap"]) < 1e-9
    assert found["gap_error"] < 1e-9
    entropy = -2.0 * 5 + torch.linalg.slogdet(model.data.unmixing).logabsdet.item()
    assert abs(found["log_likelihood"] - entropy) < 4.5 * found["log_likelihood_error"]
    assert measure(model, None)["gap"] > 0.1  # type: ignore[arg-type]


def test_linear_ica_is_pooled_by_dimension() -> None:
    def row(gap: float | None) -> dict[str, object]:
        return {"gap": gap}

    gaps = {"ml": 0.1, "lsd": 0.3, "ssm": 0.2, "nce": 4.0, "cnce": 1.3}
    rows = {row_name(50, m, seed, "mixed"): row(gap + seed) for m, gap in gaps.items() for seed in (0, 1)}
    found = pool({**rows, row_name(10, "ml", 0): row(0.1)})
    assert found.keys() == {"mixed50"}  # the methods of the other are not all there
    expected = {"behind_ml": 0.2, "ahead_of_cnce": 1.0, "cnce_ahead_of_nce": 2.7}
    assert found["mixed50"] == pytest.approx(expected)
    assert pool({**rows, row_name(50, "nce", 1, "mixed"): row(None)}) == {}  # a seed without a number
    assert set(ICA.pooled or ()) >= {"d10", "d30", "d50", "mixed50"}


def test_the_papers_size_of_linear_ica_can_be_asked_for() -> None:
    config = ICA_PAPER.load(ICA_PAPER.recipe, ICA_PAPER.rows["mixed40-lsd-s4"])
    assert (config.data.dim, config.data.whiten, config.run.seed) == (40, False, 4)
    assert (config.run.updates, config.run.batch_size) == (100_000, 1_000)
    assert len(ICA_PAPER.rows) == 5 * 5 * 5
