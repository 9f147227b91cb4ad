"""Draws docs/jem-classes.png, data and samples of every class of a joint model: python docs/classes.py DIR.

Into the folder go the run `jem-digits` and samples of each class, by the commands of docs/jem.md.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch
from matplotlib.figure import Figure

from burnin.data import digits8
from burnin.data.folders import read_folder
from burnin.report.figures import draw_pictures, save

ROOT = Path(__file__).parent.parent
CLASSES, SHOWN = 10, 14


def main(folder: Path) -> None:
    """Trains, where that is not done yet, draws every class and shows it beside the data."""
    folder.mkdir(parents=True, exist_ok=True)
    commands = [["train", "jem-digits", "--out", "run"]] if not (folder / "run").exists() else []
    for label in range(CLASSES):
        if not (folder / f"class-{label}").exists():
            commands.append(
                ["sample", "run", "-n", str(SHOWN), "-o", f"class-{label}", "--class", str(label)]
            )
    for command in commands:
        subprocess.run([sys.executable, "-m", "burnin.cli", *command], cwd=folder, check=True)
    data = digits8()
    assert data.labels is not None
    known = [data.pixels[data.labels == label][:SHOWN] / data.levels for label in range(CLASSES)]
    drawn = [read_folder(folder / f"class-{label}").pixels / 255 for label in range(CLASSES)]
    figure = Figure(figsize=(9.6, 3.7), layout="constrained")
    titles = {"data": known, "samples of each class, from noise": drawn}
    for axes, (title, pictures) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        draw_pictures(axes, torch.cat(pictures), SHOWN, CLASSES)
        axes.set_title(title, fontsize=9)
    save(figure, ROOT / "docs" / "jem-classes.png")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
