"""Draws docs/filled-pixels.png, digits with lower halves filled in and new ones: python docs/pixels.py DIR.

Into the folder go 1,700 of scikit-learn's 8×8 digits, 24 others, a mask and the run, by the commands of
docs/data.md.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import load_digits

from burnin.data.folders import read_folder, read_mask
from burnin.report.figures import draw_pictures, save

ROOT = Path(__file__).parent.parent
LEARNED, SHOWN, ACROSS = 1700, 25, 5
UPDATES = "5000"


def main(folder: Path) -> None:
    """Fits, fills and draws."""
    images = (load_digits().images / 16 * 255).round().astype(np.uint8)
    for name, part in (("digits", images[:LEARNED]), ("others", images[LEARNED : LEARNED + SHOWN])):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number, image in enumerate(part):
            Image.fromarray(image).save(folder / name / f"{number:05d}.png")
    lower = np.zeros((8, 8), dtype=np.uint8)
    lower[4:] = 255
    Image.fromarray(lower).save(folder / "mask.png")
    for command in (
        ["fit", "digits", "--out", "run", "--max-updates", UPDATES],
        ["sample", "run", "-n", str(SHOWN), "-o", "new"],
        ["impute", "run", "others", "--mask", "mask.png", "-o", "filled"],
    ):
        subprocess.run([sys.executable, "-m", "burnin.cli", *command], cwd=folder, check=True)
    whole = read_folder(folder / "others").pixels / 255
    holed = whole.masked_fill(read_mask(folder / "mask.png", (8, 8)), torch.nan)
    filled = read_folder(folder / "filled").pixels / 255
    drawn = read_folder(folder / "new").pixels / 255
    figure = Figure(figsize=(9.6, 2.7), layout="constrained")
    titles = {"given": holed, "filled in": filled, "as they were": whole, "new ones": drawn}
    for axes, (title, pictures) in zip(figure.subplots(1, 4), titles.items(), strict=True):
        draw_pictures(axes, pictures, ACROSS)
        axes.set_facecolor("#d9b38c")
        axes.set_title(title, fontsize=9)
    save(figure, ROOT / "docs" / "filled-pixels.png")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
