"""A made-up measurement whose ratios are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burnin.bench.contestants import BASELINE, FLOOR, JAX, OURS, TORCHEBM
from burnin.bench.ratios import add_ratios
from burnin.bench.spread import spread

SMALL, LARGE, TRAINING = "mlp-100x2", "mlp-1024x10", "training"


def cell(turns: Sequence[float], path: str = "") -> dict[str, Any]:
    shown = {"threads": 1, "imported_mb": 200.0, "peak_mb": 260.4, "increase_mb": 60.4}
    return shown | {"first_call": 1.234, "steps": 100, "path": path} | spread(turns)


def made_up() -> dict[str, Any]:
    """burnin: 4 × the loop on the small size, 1.1 × on the large one; JAX failed; the update 3 ×."""
    small = {
        OURS: cell([100e-6, 200e-6, 100e-6], "native"),
        BASELINE: cell([400e-6, 800e-6, 400e-6]),
        TORCHEBM: cell([500e-6, 1000e-6, 500e-6]),
        JAX: {"error": "ValueError: a | b"},
        FLOOR: cell([80e-6, 160e-6, 80e-6]),
    }
    large = {OURS: cell([0.010, 0.010]), BASELINE: cell([0.011, 0.011]), FLOOR: cell([0.005, 0.005])}
    rows = {SMALL: small, LARGE: large, TRAINING: {OURS: cell([0.1]), BASELINE: cell([0.3])}}
    made_by = {
        "command": "burnin bench",
        "version": "0",
        "commit": None,
        "time": "2026-01-02T03:04:05+00:00",
        "machine": "m",
        "processor": "p",
        "python": "3",
        "torch": "2",
        "jax": None,
        "torchebm": "1",
    }
    return add_ratios(
        {
            "made_by": made_by,
            "settings": {"repeats": 3, "seconds": 0.3},
            "cases": {
                SMALL: {"title": "100×2, 64×3", "kind": "langevin", "size": "small"},
                LARGE: {"title": "1024×10, 256×3", "kind": "langevin", "size": "large"},
                TRAINING: {"title": "hybrid update", "kind": "training", "size": "other"},
            },
            "contestants": [OURS, BASELINE, TORCHEBM, JAX, FLOOR],
            "missing": {},
            "tables": {"one core": {"threads": 1, "rows": rows}},
        }
    )
