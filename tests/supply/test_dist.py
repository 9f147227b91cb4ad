"""Wheel and sdist: what is in them, and that they work without the repository."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from tools.supply import ROOT

CARRIED = (
    "burnin/py.typed",
    "burnin/recipes/rings.toml",
    "burnin/recipes/measured/calibration.toml",
    "burnin/samplers/kernel/chain.cpp",
    "burnin/samplers/kernel/steps.h",
    "burnin/report/page.html",
    "burnin/report/page.css",
    "burnin/report/page.js",
)
SMOKE = """
import sys
sys.path.insert(0, sys.argv[1])
import burnin, torch
assert burnin.__file__.startswith(sys.argv[1]), burnin.__file__
from burnin.config import load_config, recipe_names
assert len([load_config(name) for name in recipe_names()]) > 20
sampler = burnin.HMC(0.2, 3, 1.0)
energy = lambda x: 0.5 * x.square().sum(1)
result = burnin.run(sampler, energy, sampler.init(energy, torch.zeros(4, 2)), num_steps=5,
                    generator=burnin.Streams(0)["chains"])
assert result.state.position.isfinite().all()
sys.argv = ["burnin", "recipes"]
from burnin.__main__ import main
main()
"""


def build(source: Path, target: str, out: Path) -> Path:
    """Built in this environment: hatchling is pinned and there, and no index is asked."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)],
        cwd=source,
        check=True,
        capture_output=True,
    )
    (made,) = out.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


def test_the_wheel_carries_the_library_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert set(CARRIED) <= set(names)
    source = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "burnin").rglob("*.py")}
    assert source <= set(names)
    tops = {name.split("/")[0] for name in names}
    assert tops == {"burnin", wheel.name.split("-py3")[0] + ".dist-info"}
    assert not [name for name in names if name.endswith((".pyc", ".so"))]


def test_the_wheel_works_without_the_repository(wheel: Path, tmp_path: Path) -> None:
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([sys.executable, *install, "--target", str(tmp_path / "site"), str(wheel)], check=True)
    done = subprocess.run(
        [sys.executable, "-I", "-c", SMOKE, str(tmp_path / "site")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "rings: " in done.stdout


def test_the_sdist_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    sdist = build(ROOT, "sdist", tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (folder,) = (tmp_path / "unpacked").iterdir()
    assert (folder / "tests" / "supply" / "test_dist.py").exists()
    assert not (folder / "results").exists()
    again = zipfile.ZipFile(build(folder, "wheel", tmp_path / "again"))
    first = zipfile.ZipFile(wheel)
    assert sorted(again.namelist()) == sorted(first.namelist())
    assert all(again.read(name) == first.read(name) for name in CARRIED)
