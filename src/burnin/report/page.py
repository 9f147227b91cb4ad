"""The HTML page: one file, pictures inside, everything that came from data escaped."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from pathlib import Path

import jinja2
from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A figure with its heading, a sentence on how to read it, and what was found in it."""

    title: str
    caption: str
    figure: Figure
    findings: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """The PNG as a data address."""
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=130)
        return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


@dataclass(frozen=True)
class Page:
    """What a report says.

    Attributes:
        title: heading.
        subtitle: what it is about: data, scheme, updates.
        verdict: the lines of the verdict, first word is the question.
        numbers: name, value and meaning of each measured number.
        pictures: the figures.
        events: what happened in training (rollbacks, say).
        config: the complete configuration as TOML.
    """

    title: str
    subtitle: str
    verdict: tuple[str, ...]
    numbers: list[tuple[str, str, str]]
    pictures: list[Picture]
    events: list[str]
    config: str

    def write(self, path: Path) -> None:
        """Renders the page to `path`."""
        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("burnin", "report"), autoescape=True, undefined=jinja2.StrictUndefined
        )
        path.write_text(environment.get_template("page.html").render(page=self), encoding="utf-8")
