"""What is compared is the same thing: the loops sample the right law, the peers compute the same energy."""

from __future__ import annotations

import importlib
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from burnin.bench import CONTESTANTS, floor, loops, ours, torchebm_peer
from burnin.bench.cases import CASES, Case, make_energy, make_start
from burnin.bench.contestants import OURS
from burnin.samplers import HMC, MALA, Langevin

TINY = Case("tiny", "langevin", "small", 3, (2,), 4, 2)
IMAGE = replace(TINY, shape=(2, 9, 9), width=3, depth=0)


class Gaussian(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * x.square().sum(1)


def test_both_langevin_loops_take_the_same_steps() -> None:
    net, start = make_energy(TINY), make_start(TINY)
    ends = []
    for chain in (loops.langevin_grad, loops.langevin_backward):
        with torch.random.fork_rng():
            torch.manual_seed(3)
            ends.append(chain(net, start, 20))
    assert torch.allclose(ends[0], ends[1], atol=1e-6)
    assert not torch.allclose(ends[0], start)
    assert torch.equal(start, make_start(TINY))


@pytest.mark.parametrize(
    ("chain", "step", "steps"),
    [(loops.langevin_grad, 0.05, 150), (loops.mala, 0.3, 40), (loops.hmc, 0.3, 30)],
)
def test_loops_sample_the_right_law(
    chain: Any, step: float, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "STEP_SIZE", step)
    monkeypatch.setattr(loops, "NOISE", math.sqrt(2 * step))
    with torch.random.fork_rng():
        torch.manual_seed(4)
        x = chain(Gaussian(), torch.full((4000, 2), 3.0), steps)
    # Langevin's own law is wider by 1/(1 - step/2); the standard errors are 0.011 and 0.016.
    wanted = 1 / (1 - step / 2) if chain is loops.langevin_grad else 1.0
    assert abs(x.mean().item()) < 0.05
    assert abs(x.var().item() - wanted) < 0.07


@pytest.mark.parametrize("kind", ["langevin", "image", "mala", "hmc", "training"])
def test_every_contestant_of_ours_runs_every_case_it_takes(kind: Any) -> None:
    case = IMAGE if kind == "image" else replace(TINY, kind=kind, shape=(10,))
    taking = [one for one in CONTESTANTS if one.takes(case) and not one.peer and one.name != OURS]
    assert len(taking) >= 2
    for contestant in taking:
        module, function = contestant.maker.split(":")
        work = getattr(importlib.import_module(module), function)(case)
        work.run(2)
        assert work.path() == ("plain" if contestant.name == "burnin plain" else "")


def test_torchebm_runs() -> None:
    pytest.importorskip("torchebm")
    torchebm_peer.make(TINY).run(3)


def test_samplers_are_the_cases_own() -> None:
    kinds = {case.name: type(ours.make_sampler(case)) for case in CASES}
    assert (kinds["mlp-100x2"], kinds["mala"], kinds["hmc"]) == (Langevin, MALA, HMC)


def test_the_floor_is_the_products_of_energy_and_gradient() -> None:
    # Two hidden layers or four convolutions, there and back; the end.
    for case, number in ((TINY, 5), (IMAGE, 9)):
        layers = [m for m in make_energy(case).modules() if isinstance(m, nn.Linear | nn.Conv2d)]
        make = floor.matrix_products if case.depth else floor.convolutions
        products = make(layers, make_start(case))
        assert len(products) == number
    first: Any = floor.matrix_products(layers=_linear(TINY), start=make_start(TINY))[0]()
    layer = _linear(TINY)[0]
    assert torch.allclose(first, make_start(TINY) @ layer.weight.t())


def _linear(case: Case) -> list[nn.Linear | nn.Conv2d]:
    return [layer for layer in make_energy(case).modules() if isinstance(layer, nn.Linear)]


def test_jax_computes_the_same_energy() -> None:
    pytest.importorskip("jaxlib")  # jax itself is imported in another process: it starts threads
    code = (
        "import jax, numpy as np\n"
        "from burnin.bench.jax_peer import _energy, _start, _weights\n"
        "from tests.bench.test_contestants import IMAGE, TINY, make_energy, make_start\n"
        "for case in (TINY, IMAGE):\n"
        "    energy = np.asarray(jax.jit(_energy)(_start(case), _weights(case)))\n"
        "    wanted = make_energy(case)(make_start(case)).detach().numpy()\n"
        "    assert np.allclose(energy, wanted, atol=1e-5), (energy, wanted)\n"
    )
    root = Path(__file__).parent.parent.parent
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
