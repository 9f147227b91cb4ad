"""log Z of known densities: what is pooled, and the small variant as its recipe expects it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from burnin.rng import Streams
from burnin.studies import STUDIES, run_study
from burnin.studies.log_z import DENSITIES, LOG_Z, LogZRecipe, pool, summary, variants


def row(inside: list[bool], width: float, dim: int = 10, **more: Any) -> dict[str, Any]:
    numbers = {
        "inside": inside,
        "width": [width] * len(inside),
        "lower": [6.9] * len(inside),
        "upper": [7.1] * len(inside),
        "lower_error": [0.1] * len(inside),
        "upper_error": [0.1] * len(inside),
        "low": [6.7] * len(inside),
        "high": [7.3] * len(inside),
        "draws": [[100.0, 50.0]] * len(inside),
    }
    both = {f"{start}_{name}": value for start in ("own", "exact") for name, value in numbers.items()}
    return {"dim": dim, "truth": 7.0, "cpu_seconds": 12.0, **both, **more}


def test_runs_are_pooled() -> None:
    rows = {
        "gaussian-2": row([True, True], 0.1, dim=2, grid=[7.0, 7.001]),
        "funnel-10": row([False, True], 0.4),
        "ica-50": row([True, False], 0.9, dim=50),
    }
    found = pool(rows)["all"]
    assert (found["inside"], found["densities"]) == (2, 3)
    assert found["share"] == pytest.approx(4 / 6)
    assert found["widest_10"] == pytest.approx(0.4)
    assert found["grid_off"] == pytest.approx(0.001)
    text = summary(rows)
    assert "| Neal's funnel | 10 | 6.900 ± 0.20 | 7.100 ± 0.20 | 6.70 to 7.30 |" in text
    assert "of 2 of 3 densities" in text
    assert pool({"ica-50": rows["ica-50"]})["all"]["grid_off"] is None


def test_every_row_is_a_density_of_its_dimension() -> None:
    assert list(LOG_Z.rows) == list(DENSITIES)
    assert set(LOG_Z.quick_rows) <= set(LOG_Z.rows)
    for name, (_, make) in DENSITIES.items():
        density = make(Streams(0)["density"])
        assert name.endswith(f"-{density.dim}")
        x = density.sample(3, torch.Generator().manual_seed(0))
        assert x.shape == (3, density.dim)
        assert density.log_prob(x).isfinite().all()
    defaults = LogZRecipe(title="").effort
    assert (defaults.particles, defaults.num_leapfrog, defaults.components) == (512, 5, 0)


def test_the_small_variant_is_as_expected(tmp_path: Path) -> None:
    table, checks = run_study(STUDIES["log-z"], tmp_path, quick=True, jobs=1, status=lambda *_: None)
    assert [check.text for check in checks if not check.holds] == []
    assert len(checks) == 4
    assert set(table["rows"]) == set(LOG_Z.quick_rows)


def test_variants_are_told_in_a_line_each() -> None:
    text = variants(
        {"as it is": {"funnel-10": row([True, False], 0.4)}, "other": {"ica-10": row([False], 0.2)}}
    )
    assert "| as it is | 1 of 1 | 50% | 0.40 nats | 1, 50% | 3.0 |" in text
    assert "| other | 0 of 1 | 0% | 0.20 nats | 0, 0% | 6.0 |" in text
