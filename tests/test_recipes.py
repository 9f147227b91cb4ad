"""Every recipe trains: two updates of each, with its own data, objective, scheme and sampler, made small."""

from __future__ import annotations

from pathlib import Path

import pytest

from burnin import assemble
from burnin.config import load_config, recipe_names
from burnin.core import Outcome
from burnin.runs import train_in
from burnin.samplers import Engine
from burnin.settings import Config
from burnin.training import read_metrics


def small(config: Config) -> list[str]:
    """The changes that make a recipe small and leave it what it is."""
    changes = ["run.updates=2", "run.batch_size=8", "run.log_every=1", "run.tensorboard=false"]
    if not config.without_chains:
        changes += ["sampler.num_steps=2", "scheme.bank_size=32"]
        changes += [
            f"{name}.num_chains=8"
            for name, chains in (("sampler", config.sampler), ("sampler_from_noise", config.noise_sampler()))
            if chains.num_chains is not None
        ]
    if config.model.kind == "convnet":
        changes.append("model.width=4")
    if config.model.kind == "wide-resnet":
        changes += ["model.width=1", "model.depth=10"]
    return changes


@pytest.mark.usefixtures("small_pictures")
@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_trains(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assemble, "MOMENT_SAMPLES", 100)
    config = load_config(name, small(load_config(name)))
    outcome = train_in(tmp_path / "run", config, resume=False, engine=Engine("never"))
    assert outcome is Outcome.OK
    logged = [row for row in read_metrics(tmp_path / "run" / "metrics.jsonl") if "event" not in row]
    assert [row["step"] for row in logged] == [1, 2]
    assert list((tmp_path / "run").glob("checkpoint-*.safetensors"))
