"""The same numbers as kernel-gof on the same points, scores and bandwidths (fixtures/kernel_gof.json)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from burnin.discrepancies.finite_set import fssd
from burnin.discrepancies.kernelised import ksd, linear_ksd
from burnin.discrepancies.kernels import RBF, InverseMultiquadric, Kernel
from burnin.discrepancies.models import Points

THEIRS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "fixtures" / "kernel_gof.json").read_text("utf-8")
)
KERNELS: dict[str, Kernel] = {
    "rbf": RBF(math.sqrt(THEIRS["sigma2"])),
    "imq": InverseMultiquadric(THEIRS["imq_c"], THEIRS["imq_b"]),
}


def tensor(name: str) -> Tensor:
    return torch.tensor(THEIRS[name], dtype=torch.float64)


def points() -> Points:
    x = tensor("points")
    return Points(x, -(x - tensor("mean")) * tensor("precision"))


@pytest.mark.parametrize("name", KERNELS)
def test_ksd(name: str) -> None:
    ours = ksd(points(), KERNELS[name], block=16)
    assert ours.v * len(points().x) == pytest.approx(THEIRS[name]["ksd_n_times_v"], rel=1e-6)
    assert ours.u == pytest.approx(THEIRS[name]["ksd_u"], rel=1e-6)


def test_linear_ksd() -> None:
    ours = linear_ksd(points(), KERNELS["rbf"])
    assert ours.mean == pytest.approx(THEIRS["rbf"]["linear_ksd"], rel=1e-6)
    assert ours.normal_p_value == pytest.approx(THEIRS["rbf"]["linear_p_value"], rel=1e-6)


@pytest.mark.parametrize("name", KERNELS)
def test_fssd(name: str) -> None:
    ours, theirs = fssd(points(), tensor("locations"), KERNELS[name]), THEIRS[name]
    assert ours.statistic == pytest.approx(theirs["fssd_n_times_square"], rel=1e-6)
    assert ours.sigma**2 == pytest.approx(theirs["fssd_variance"], rel=1e-6)
    power = ours.value / math.sqrt(ours.sigma**2 + 1e-2)
    assert power == pytest.approx(theirs["fssd_power_criterion"], rel=1e-6)
    weights = torch.linalg.eigvalsh(torch.cov(ours.features.T))
    assert weights.tolist() == pytest.approx(theirs["fssd_null_weights"], rel=1e-6)
