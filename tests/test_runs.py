"""What a run's chains are thrown by, as its diagnosis needs it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from burnin.assemble import build_trainer
from burnin.config import load_config
from burnin.core import InputError
from burnin.rng import Streams
from burnin.training.remedies import Remedies

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
    trainer.step, trainer.remedies = 10, Remedies(step_factor=0.5)
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


def test_noise_on_the_data_gives_constant_columns_some_width(tmp_path: Path) -> None:
    """Pixels that never change can be learned with noise (convergent, 5A), and are refused without."""
    file = tmp_path / "rows.npy"
    rows = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    rows[:, 1] = 0.5
    np.save(file, rows)
    changes = ["data={file='" + str(file) + "', noise=0.03}", *SMALL, "model.frequencies=[]"]
    trainer = build_trainer(load_config("rings", changes))
    assert trainer.parts.data.sample(1000, Streams(0)["x"])[:, 1].std().item() == pytest.approx(0.03, rel=0.1)
    with pytest.raises(InputError, match=r"columns \[2\] are constant"):
        build_trainer(load_config("rings", ["data={file='" + str(file) + "'}", *SMALL]))
