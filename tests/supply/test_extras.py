"""Without its extras burnin trains, samples and fits; what needs one says which, in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tools.supply import project

from burnin.__main__ import main
from burnin.extras import EXTRAS, MissingExtraError, require_extra

HIDDEN = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {modules!r}:
            raise ModuleNotFoundError(f"no module {{name}}: hidden by the test", name=name)
sys.meta_path.insert(0, Hidden())
"""


def test_every_extra_brings_what_it_says() -> None:
    brings = {"PIL": "pillow"}
    for module, (extra, _) in EXTRAS.items():
        names = [line.split(">")[0] for line in project()[extra]]
        assert brings.get(module, module) in names, module
    assert {"cli", "report", "images", "tables"} == {extra for extra, _ in EXTRAS.values()}


def test_a_missing_package_is_an_import_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingExtraError, match=r"pyarrow is not installed.*pip install 'burnin\[tables\]'"
    ) as e:
        require_extra("pyarrow")
    assert isinstance(e.value, ImportError)
    assert e.value.exit_code == 2


CORE = """
import numpy as np, torch, burnin
from burnin.config import load_config
rows = np.random.default_rng(0).normal(size=(100, 2))
density = burnin.EnergyDensity(max_updates=3, random_state=0).fit(rows)
assert density.sample(3).shape == (3, 2)
assert np.isfinite(density.score_samples(np.zeros((1, 2)))).all()
energy = lambda x: 0.5 * x.square().sum(1)
sampler = burnin.MALA(0.1, 1.0)
state = sampler.init(energy, torch.zeros(5, 2))
burnin.run(sampler, energy, state, num_steps=3, generator=burnin.Streams(0)["chains"])
changes = ["run.updates=2", "run.batch_size=8", "model.width=8", "run.tensorboard=false"]
from pathlib import Path
from burnin.runs import train_in
print(train_in(Path("run"), load_config("rings", changes), resume=False).name)
"""


def test_the_core_needs_no_extra(tmp_path: Path) -> None:
    program = HIDDEN.format(modules=set(EXTRAS)) + CORE
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "OK"


@pytest.mark.parametrize(
    ("missing", "arguments", "extra"),
    [
        ("typer", ["recipes"], "cli"),
        ("rich", ["recipes"], "cli"),
        ("matplotlib", ["reproduce", "log-z", "--quick"], "report"),
        ("jinja2", ["report", "run"], "report"),
        ("tensorboard", ["train", "rings", "--set", "run.updates=1"], "report"),
        ("pyarrow", ["fit", "rows.parquet"], "tables"),
        ("PIL", ["fit", "pictures"], "images"),
    ],
)
def test_a_missing_extra_is_one_line(
    missing: str,
    arguments: list[str],
    extra: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.png").write_bytes(b"none")
    for name in [name for name in sys.modules if name.startswith(("burnin.report", "burnin.studies"))]:
        monkeypatch.delitem(sys.modules, name)  # as in a process of its own
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["burnin", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("burnin: ")]
    assert len(lines) == 1
    assert f"{missing} is not installed" in lines[0]
    assert lines[0].endswith(f"pip install 'burnin[{extra}]'")
