"""Measures real, spoilt and foreign pictures: python docs/measures.py FOLDER, with a classifier in it.

It writes results/measures/table.json, which docs/draw.py puts into docs/measures.md. The classifier is made
by burnin features train --dataset fashion-mnist --side 14; all takes about 3 minutes on one core.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from burnin.data import load_pictures
from burnin.evaluation.classifier import Classifier
from burnin.measuring import Real, choose, measure
from burnin.provenance import provenance

ROOT = Path(__file__).parent.parent
NUMBER, SEARCHED, SEED = 2000, 10_000, 0


def main(folder: Path) -> None:
    """Measures each kind of pictures in place of samples."""
    features = Classifier.load(folder)
    stream = torch.Generator().manual_seed(SEED)
    fashion, digits = load_pictures("fashion-mnist").resized(14), load_pictures("mnist").resized(14)
    assert fashion.held_out is not None
    assert digits.held_out is not None
    reference, left = choose(fashion.held_out.pixels, NUMBER, stream)
    fresh, left = choose(left, NUMBER, stream)
    others, left = choose(left, NUMBER, stream)
    training, _ = choose(fashion.pixels, SEARCHED, stream)
    real = Real(reference, fresh, training, fresh)
    noise = torch.randn(others.shape, generator=stream)
    weights = torch.tensor([1.0, 2.0, 1.0])
    blur = (weights.unsqueeze(1) * weights / 16).view(1, 1, 3, 3)
    blurred = torch.nn.functional.conv2d(others.float(), blur, padding=1)
    kinds = {
        "other test pictures": others,
        "training pictures": training[:NUMBER],
        "with noise, sd 8 of 255": (others.float() + 8 * noise).round().clamp(0, 255).to(torch.uint8),
        "blurred, 3×3": blurred.round().to(torch.uint8),
        "MNIST": digits.held_out.pixels[:NUMBER],
    }
    rows = {}
    for name, pixels in kinds.items():
        found = measure(pixels, real, features, seed=SEED)
        metrics = {"features": features.name, "measures": [one.as_dict() for one in found.measures]}
        assert found.by_pixels is not None
        metrics |= {"n": NUMBER, "searched": SEARCHED, "z": found.by_pixels.z}
        made = provenance() | {"command": "python docs/measures.py features/fashion-mnist-14"}
        rows[name] = {"row": name, "seed": SEED, "metrics": metrics, "made_by": made}
        sys.stdout.write(f"{name}\n" + "".join(f"  {one.line()}\n" for one in found.measures))
    path = ROOT / "results" / "measures" / "table.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"study": "measures", "rows": rows}, indent=1, ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
