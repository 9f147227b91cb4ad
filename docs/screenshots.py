"""Takes the screenshots of docs/report.md: python docs/screenshots.py TABLE_RUN RINGS_RUN PICTURES_RUN.

The runs need a report (`burnin report RUN`); a Chromium must be on PATH.
"""

from __future__ import annotations

import io
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.report.browser import Browser, find_browser  # noqa: E402

MOST_BYTES = 150_000


@dataclass(frozen=True)
class Shot:
    """A picture of a part of a report: which run's, how it is called, and what of it is seen."""

    run: int
    name: str
    anchor: str
    width: int
    height: int
    dark: bool = False


SHOTS = (
    Shot(0, "report-table", "verdict", 1040, 1330),
    Shot(0, "report-outliers", "outliers", 1040, 900),
    Shot(1, "report-rings-dark", "density", 1040, 860, dark=True),
    Shot(2, "report-pictures-phone", "verdict", 390, 1250),
)


def main(runs: list[Path]) -> None:
    """Takes them all."""
    program = find_browser()
    if program is None or len(runs) != 3:
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(program, Path(folder))
        for shot in SHOTS:
            page = runs[shot.run] / "report.html"
            browser.open(page, width=shot.width, height=shot.height, dark=shot.dark)
            top = "scrollTo(0, 0)" if shot.anchor == "verdict" else "scrollTo(0, place.offsetTop - 24)"
            browser.run(f"{{ const place = document.getElementById('{shot.anchor}'); {top} }}")
            browser.shoot(Path(folder) / "shot.png")
            (ROOT / "docs" / f"{shot.name}.png").write_bytes(small(Path(folder) / "shot.png"))
        browser.close()


def small(path: Path) -> bytes:
    """The picture with as few colours as its size asks for."""
    for colours in (256, 128, 64, 32):
        buffer = io.BytesIO()
        Image.open(path).convert("RGB").quantize(colours, dither=Image.Dither.NONE).save(
            buffer, "PNG", optimize=True
        )
        if buffer.tell() <= MOST_BYTES:
            break
    return buffer.getvalue()


if __name__ == "__main__":
    main([Path(run) for run in sys.argv[1:]])
