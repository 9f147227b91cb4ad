"""What a run's chains are thrown by, as its diagnosis needs it."""

from __future__ import annotations

import pytest

from burnin.assemble import build_trainer
from burnin.config import load_config

SMALL = ["run.batch_size=16", "model.width=8", "model.depth=1", "sampler_from_noise={num_chains=8}"]


def test_the_noise_of_chains_counts_weights_scales_and_rollbacks() -> None:
    changes = [*SMALL, "scheme.beta=[[0, 0.0], [10, 0.5]]", "scheme.beta_on=noise"]
    config = load_config("rings", changes)
    trainer = build_trainer(config)
    temperature = config.model.temperature
    first = trainer.chain_noise()
    assert set(first) == {"noise", "data"}
    assert trainer.parts.scale is not None
    inverse = float((1 / trainer.parts.scale.value()).mean())
    for noise in first.values():
        assert noise.temperature == temperature
        assert noise.dim == 10
        assert noise.inverse_scale == pytest.approx(inverse)
        assert not noise.leapfrog
    trainer.step, trainer.step_factor = 10, 0.5
    later = trainer.chain_noise()
    assert later["noise"].temperature == pytest.approx(temperature / (1 - 0.5))
    assert later["data"].temperature == temperature
    assert later["data"].inverse_scale == pytest.approx(2 * inverse)


@pytest.mark.parametrize("heat", ["", "heat=[[0, 4.0], [3, 1.0]], "])
def test_hamiltonian_chains_leap_also_when_annealed(heat: str) -> None:
    sampler = '{kind="hmc", num_steps=3, step_size=0.1, ' + heat + "num_leapfrog=2}"
    config = load_config("rings", [*SMALL[:3], f"sampler={sampler}", "sampler_from_noise={}"])
    noise = build_trainer(config).chain_noise()
    assert [one.leapfrog for one in noise.values()] == [True, True]
    assert [one.inverse_scale for one in noise.values()] == [1.0, 1.0]
