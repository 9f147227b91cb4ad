"""burnin fit, sample and score on folders of pictures, as a user runs them."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from burnin.assemble import load_model
from burnin.core import InputError
from burnin.data import Pictures
from burnin.data.folders import read_folder, write_grid, write_pictures
from burnin.evaluation.conditional import Effort
from burnin.picture_fitting import FittedPictures
from burnin.picture_imputing import fill_pixels
from tests.ranks.threads import together
from tests.test_cli import Burnin, Result, assert_refused, burnin, contents

__all__ = ["burnin"]


def bars(folder: Path, n: int = 24, size: tuple[int, int] = (6, 6), mode: str = "L") -> None:
    """Pictures with one bright bar, in two subfolders by its direction."""
    stream = np.random.default_rng(0)
    for index in range(n):
        pixels = stream.integers(0, 40, size=size)
        place = int(stream.integers(min(size)))
        pixels[(place,) if index % 2 else (slice(None), place)] = 230
        part = folder / ("across" if index % 2 else "down")
        part.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.astype(np.uint8)).convert(mode).save(part / f"{index:02d}.png")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pictures, to be copied; the fit is made by the first test that needs it."""
    folder = tmp_path_factory.mktemp("pictures")
    bars(folder / "bars")
    return folder


@pytest.fixture
def run(burnin: Burnin, made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made / "bars", tmp_path / "bars")
    if not (made / "run").exists():
        result = burnin("fit", "bars", "--out", str(made / "run"), "--max-updates", "60", "--json")
        assert result.code == 0, result.err
        answer = json.loads(result.out)
        assert answer["shape"] == [1, 6, 6]
        assert (answer["updates"], answer["held_out"]) == (60, 4)
        assert "24 pictures of 6×6, grey" in result.err
    shutil.copytree(made / "run", tmp_path / "run")
    return tmp_path / "run"


def test_pictures_that_processes_share_have_the_density_that_they_have(run: Path) -> None:
    fitted, pixels = FittedPictures.load(run), read_folder(run.parent / "bars").pixels
    wanted = fitted.log_density(pixels)
    for found in together(3, lambda ranks: fitted.log_density(pixels, ranks)):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_samples_are_pictures(burnin: Burnin, run: Path) -> None:
    result = burnin("sample", "run", "-n", "5", "-o", "grid.png", "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["samples"] == 5
    with Image.open("grid.png") as grid:
        # Three across and two down, with a pixel between, enlarged to be seen.
        assert (grid.width % 20, grid.height % 13, grid.mode) == (0, 0, "L")
    assert burnin("sample", "run", "-n", "5", "-o", "drawn").code == 0
    drawn = read_folder(Path("drawn"))
    assert drawn.files == tuple(f"0000{i}.png" for i in range(1, 6))
    assert drawn.pixels.shape == (5, 1, 6, 6)
    assert burnin("sample", "run", "-n", "3", "-o", "rows.npy").code == 0
    assert np.load("rows.npy").shape == (3, 36)
    assert_refused(burnin("sample", "run", "-n", "5", "-o", "drawn"), "exists")


def test_scores_have_a_line_for_each_file(burnin: Burnin, run: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 256, size=(9, 9, 3)).astype(np.uint8)
    Image.fromarray(noise).save("bars/down/strange.jpg")
    result = burnin("score", "run", "bars", "-o", "scores.csv")
    assert result.code == 0, result.err
    assert "1 pictures: the middle square, made 6×6" in result.err
    with Path("scores.csv").open() as file:
        rows = {row["file"]: row for row in csv.DictReader(file)}
    assert len(rows) == 25
    assert "across/01.png" in rows
    assert rows["down/strange.jpg"]["outlier"] == "1"
    assert sum(row["outlier"] == "1" for row in rows.values()) <= 3  # a twentieth of 24, by interpolation
    answer = json.loads(burnin("score", "run", "bars", "-o", "again.csv", "--json").out)
    assert answer["pictures"] == 25
    assert_refused(burnin("score", "run", "scores.csv", "-o", "x.csv"), "is no folder")


def test_a_stopped_fit_goes_on_to_the_same_weights(burnin: Burnin, run: Path) -> None:
    """The same bits as the run that was never stopped: its own checkpoint of update 0 goes on to 60."""
    whole = {
        name: data for name, (data, _) in contents(run).items() if name.startswith("checkpoint-00000006")
    }
    assert whole
    for name in whole:
        (run / name).unlink()
    assert burnin("fit", "--resume", "--out", "run").code == 0
    again = contents(run)
    assert {name: again[name][0] for name in whole} == whole


def test_a_fit_of_pictures_is_reported_and_exported(burnin: Burnin, run: Path, tmp_path: Path) -> None:
    """It has a fitted.json as a table's fit has, and is none."""
    config = run / "config.toml"
    short = "[study]\nsamples = 16\ndistance_sets = 5\nlong_chains = 16\nlong_steps = 20\ndata_chains = 16\n"
    short += "data_steps = 20\ncooling_steps = 10\nlikelihood_particles = 0\n"
    text = config.read_text(encoding="utf-8")
    start = text.index("[study]")
    rest = text[start + 1 :]
    after = rest[rest.index("\n[") + 1 :] if "\n[" in rest else ""
    config.write_text(text[:start] + short + after, encoding="utf-8")
    result = burnin("report", str(run), "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["verdict"]
    assert "<h1>run</h1>" in (run / "report.html").read_text(encoding="utf-8")
    assert burnin("export", str(run), "exported").code == 0
    assert burnin("sample", "exported", "-n", "3", "-o", "three.npy").code == 0
    assert np.load(tmp_path / "three.npy").shape == (3, 36)


def test_missing_pixels_are_filled_within_their_range(run: Path) -> None:
    model = load_model(run)
    assert model.pictures is not None
    stream = torch.Generator().manual_seed(0)
    pixels = torch.randint(256, (20, 1, 6, 6), generator=stream, dtype=torch.uint8)
    missing = torch.rand(20, 6, 6, generator=stream) < 0.3
    done = fill_pixels(model, pixels, missing, generator=stream, effort=Effort(20, 10, 8))
    gone, rows = missing.flatten(1), model.pictures.rows(pixels)
    assert torch.equal(done.last[~gone], rows[~gone])
    assert float(done.last.min()) >= 0
    assert float(done.last.max()) <= 1
    assert 0.3 < done.acceptance < 0.8
    assert not torch.equal(done.kept[0][gone], done.last[gone])  # they move


def test_the_shell_fills_what_is_transparent_or_masked(burnin: Burnin, run: Path, tmp_path: Path) -> None:
    """Known pixels stay to the byte, pictures keep their names, whole ones are copied."""
    holed = tmp_path / "holed"
    (holed / "deep").mkdir(parents=True)
    grey = np.random.default_rng(1).integers(0, 256, size=(2, 6, 6)).astype(np.uint8)
    alpha = np.full((6, 6), 255, dtype=np.uint8)
    alpha[2:4, 1:5] = 0
    Image.fromarray(np.stack([grey[0], alpha], axis=2)).save(holed / "deep" / "hole.png")
    Image.fromarray(grey[1]).save(holed / "whole.png")
    result = burnin("impute", str(run), "holed", "-o", "filled", "--rounds", "4", "--json")
    assert result.code == 0, result.err
    answer = json.loads(result.out)
    assert (answer["pictures"], answer["pictures_filled"], answer["pixels"]) == (2, 1, 8)
    found = np.asarray(Image.open(tmp_path / "filled" / "deep" / "hole.png"))
    assert np.array_equal(found[alpha > 0], grey[0][alpha > 0])
    assert len(set(found[alpha == 0].tolist())) > 1, "drawn, not painted"
    assert np.array_equal(np.asarray(Image.open(tmp_path / "filled" / "whole.png")), grey[1])
    Image.fromarray(255 - alpha).save(tmp_path / "mask.png")
    assert burnin("impute", str(run), "holed", "-o", "all.png", "--mask", "mask.png", "--mean").code == 0
    assert (tmp_path / "all.png").exists()


def test_what_cannot_be_filled_is_said(burnin: Burnin, run: Path, tmp_path: Path) -> None:
    def impute(*arguments: str, output: str = "out") -> Result:
        return burnin("impute", str(run), *arguments, "-o", output)

    assert_refused(impute("bars"), "no pixel is missing")
    assert_refused(impute("bars", "--draws", "2"), "--draws")
    assert_refused(impute("bars", output="out.csv"), "must be a folder's name")
    assert_refused(impute("bars", output="bars"), "--force")
    Image.fromarray(np.zeros((5, 6), dtype=np.uint8)).save(tmp_path / "small.png")
    assert_refused(impute("bars", "--mask", "small.png"), "6×6")
    (tmp_path / "rows.csv").write_text("a,b\n1,\n", encoding="utf-8")
    assert_refused(impute("rows.csv", "--mask", "small.png", output="o.csv"), "folder of pictures")
    assert not (tmp_path / "out").exists()


def test_colours_and_sizes(tmp_path: Path) -> None:
    bars(tmp_path / "grey", size=(40, 50))
    with pytest.raises(InputError, match=r"50×40.*--side"):
        read_folder(tmp_path / "grey")
    squared = read_folder(tmp_path / "grey", side=8)
    assert squared.pixels.shape == (24, 1, 8, 8)
    assert squared.notes == ("24 pictures: the middle square, made 8×8",)
    Image.new("RGBA", (8, 8), (255, 0, 0, 0)).save(tmp_path / "grey" / "clear.png")
    mixed = read_folder(tmp_path / "grey", side=8)
    assert mixed.pixels.shape == (25, 3, 8, 8)
    assert (mixed.pixels[mixed.files.index("clear.png")] == 255).all()  # what is clear shows white
    assert read_folder(tmp_path / "grey", side=8, channels=1).pixels.shape == (25, 1, 8, 8)
    deep = np.array([[0, 65535], [32768, 1000]], dtype=np.uint16).repeat(4, 0).repeat(4, 1)
    (tmp_path / "deep").mkdir()
    Image.fromarray(deep).save(tmp_path / "deep" / "a.png")
    assert read_folder(tmp_path / "deep").pixels[0, 0, 0, ::4].tolist() == [0, 255]


def test_written_pictures_are_read_as_they_were(tmp_path: Path) -> None:
    pixels = torch.randint(0, 256, (3, 3, 5, 7), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    write_pictures(tmp_path, pixels / 255)
    assert torch.equal(read_folder(tmp_path).pixels, pixels)
    write_grid(tmp_path / "grid.png", pixels / 255)
    data = Pictures(torch.cat([pixels] * 5), low=0.0, high=1.0).apart(0.2, seed=0)
    data.save(tmp_path / "p.npz")
    again = Pictures.load(tmp_path / "p.npz")
    assert torch.equal(again.pixels, data.pixels)
    assert again.held_out is not None
    assert len(again.held_out) == 3
    assert float(again.rows(again.pixels).max()) <= 1.0


def no_pictures(folder: Path) -> None:
    folder.mkdir()
    (folder / "notes.txt").write_text("none")


def damaged(folder: Path) -> None:
    bars(folder)
    file = folder / "down" / "00.png"
    file.write_bytes(file.read_bytes()[:60])


def no_picture_inside(folder: Path) -> None:
    bars(folder)
    (folder / "text.png").write_text("this is no picture")


def two_sizes(folder: Path) -> None:
    bars(folder)
    Image.new("L", (9, 9)).save(folder / "down" / "odd.png")


def one(folder: Path) -> None:
    bars(folder, n=1)


def all_the_same(folder: Path) -> None:
    folder.mkdir()
    for index in range(12):
        Image.new("L", (6, 6), 7).save(folder / f"{index}.png")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (no_pictures, ("holds no pictures", ".png")),
        (damaged, ("00.png", "damaged")),
        (no_picture_inside, ("text.png", "not a readable picture")),
        (two_sizes, ("sizes differ", "--side")),
        (one, ("there are 1 pictures", "at least 10")),
        (all_the_same, ("all pictures are the same",)),
    ],
)
def test_bad_folders_end_in_one_line_and_leave_nothing(
    burnin: Burnin, make: object, words: tuple[str, ...]
) -> None:
    assert callable(make)
    make(Path("bad"))
    result = burnin("fit", "bad", "--out", "new")
    assert result.code == 2
    assert "Traceback" not in result.err
    last = result.err.splitlines()[-1]
    assert last.startswith("burnin: bad")
    assert all(word in last for word in words), last
    assert not Path("new").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--side", "64"), ("side is 64", "32")),
        (("--target-col", "x"), ("for tables",)),
        (("--minutes", "0"), ("minutes is 0",)),
        (("--contamination", "0.7"), ("contamination is 0.7",)),
    ],
)
def test_bad_options_are_refused(burnin: Burnin, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    bars(Path("bars"))
    result = burnin("fit", "bars", "--out", "new", *arguments)
    assert result.code == 2
    assert all(word in result.err.splitlines()[-1] for word in words), result.err
    assert not Path("new").exists()
    assert_refused(burnin("fit", "rows.csv", "--out", "new", "--side", "8"), "folder of pictures")
