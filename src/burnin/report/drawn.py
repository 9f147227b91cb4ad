"""Figures as SVG inside a page: they take its ink, and can be read by day, by night and on paper."""

from __future__ import annotations

import html
import io
import re
import warnings
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

RASTER_DPI = 150
"""Of the dots and images inside of a figure; lines and letters have no resolution."""
INK = "#000000"
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # letters that can be searched, in the reader's own fonts, of any script
    "svg.hashsalt": "burnin",  # the same figure gives the same text
    "path.simplify_threshold": 0.5,
}


@dataclass(frozen=True)
class Panel:
    """A figure with its heading and, for who cannot see it, what is seen."""

    figure: Figure
    alt: str
    title: str = ""

    def svg(self, name: str) -> str:
        """The figure as an SVG element; `name` keeps its parts' names apart from those of other figures."""
        return themed(self.figure, self.alt, name)


def themed(figure: Figure, alt: str, name: str) -> str:
    """The figure as an SVG element without background, black being the ink of the page around it.

    Example:
        >>> figure = Figure(figsize=(2, 1))
        >>> _ = figure.subplots().plot([1, 2])
        >>> text = themed(figure, "a line that rises", "first")
        >>> text[:51]
        '<svg class="figure" role="img" aria-label="a line t'
        >>> "http" in text, "#000000" in text
        (False, False)
    """
    buffer = io.StringIO()
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # missing here, but not in the reader's fonts
        figure.savefig(
            buffer,
            format="svg",
            dpi=RASTER_DPI,
            transparent=True,
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    view = re.search(r'viewBox="([^"]+)"', text)
    assert view is not None
    body = text[text.index(">") + 1 :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.S)
    body = re.sub(r"<style[^>]*>.*?</style>", "", body, flags=re.S)  # it would hold for the whole page
    body = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{name}-", body)
    body = body.replace(INK, "currentColor").replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "")
    body = re.sub(r"font: ([\d.]+px) [^;\"]+", r"font: \1 system-ui, sans-serif", body)
    body = re.sub(r"\n\s*", "\n", body)
    label = html.escape(alt, quote=True)
    return f'<svg class="figure" role="img" aria-label="{label}" viewBox="{view.group(1)}">{body.strip()}'
