"""Chains of images against their convolutions: what is measured, and what the table says of it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch

from burnin.bench import images
from burnin.bench.cases import Case, make_energy, make_start
from burnin.core import InputError
from burnin.study_commands import bench

SMALL = (Case("conv-8", "langevin", "image", 4, (1, 8, 8), 2),)


def test_a_small_case_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    threads = torch.get_num_threads()
    monkeypatch.setattr(images, "IMAGES", SMALL)
    result = images.measure_images(3, 0.001, lambda what, done, total: told.append(done))
    cell = result["cases"]["conv-8"]
    assert told == [0, 1, 2, 3]
    assert cell["quartiles"][0] <= cell["ratio"] <= cell["quartiles"][1]
    assert cell["images_steps_per_second"] > 0
    assert torch.get_num_threads() == threads


def test_memory_is_flat_in_the_number_of_steps() -> None:
    """Chains that kept each of their positions would take 217 MB more when thirty times as long; what the
    allocator hands back late, up to some 30 MB, does not depend on the length."""
    code = (
        "from burnin.bench import images\n"
        "from burnin.bench.cases import Case\n"
        "from burnin.bench.child import memory\n"
        "chains = images._chains(Case('wide', 'langevin', 'image', 64, (1, 32, 32), 1))\n"
        "chains(30)\n"
        "before = memory('VmHWM')\n"
        "chains(900)\n"
        "print(-1 if before is None else memory('VmHWM') - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    grown = float(done.stdout)
    if grown < 0:
        pytest.skip("this system does not tell a process its peak memory")
    assert grown < 0.3 * 870 * 64 * 1024 * 4 / 2**20


def test_both_cases_are_convnets() -> None:
    assert [case.width for case in images.IMAGES] == [16, 32]
    for case in images.IMAGES:
        assert make_energy(case)(make_start(case)[:2]).shape == (2,)


@pytest.mark.parametrize(("ratio", "words"), [(1.2, "1.3: met"), (1.4, "1.3: NOT met")])
def test_the_table(ratio: float, words: str) -> None:
    cell: dict[str, Any] = {
        "title": "a case",
        "ratio": ratio,
        "quartiles": [1.1, 1.5],
        "images_steps_per_second": 1234.0,
        "memory_growth_mb": 0.5,
        "steps_compared": [20, 200],
        "met": ratio <= images.BOUND,
    }
    text = images.write_images({"cases": {"a": cell}})
    assert words in text
    assert f"{ratio:.2f} times as long (1.10–1.50), 1,234 images·steps/s" in text
    assert "20 → 200 steps take 0.5 MB more" in text
    assert "MB" not in images.write_images({"cases": {"a": cell | {"memory_growth_mb": None}}})


def test_other_options_are_refused() -> None:
    with pytest.raises(InputError, match="two cases of its own"):
        bench(images=True, peers=True, sizes="")
