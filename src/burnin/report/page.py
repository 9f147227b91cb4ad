"""The HTML page: one file with its figures, style and script inside; what came from data is escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import jinja2
from matplotlib.figure import Figure

from burnin.report.drawn import Panel

Tone = Literal["good", "fair", "poor", "plain"]


@dataclass(frozen=True)
class Panels:
    """Figures that stand side by side where there is room, and a sentence on how to read them.

    Attributes:
        panels: the figures.
        caption: how to read them.
        width: of a figure, in rem, below which fewer stand side by side.
        title: what they are about, where a part has several groups of them.
    """

    panels: tuple[Panel, ...]
    caption: str
    width: float = 21.0
    title: str = ""
    kind: ClassVar[str] = "panels"


@dataclass(frozen=True)
class Facts:
    """Numbers with their names and what they mean."""

    rows: tuple[tuple[str, str, str], ...]
    kind: ClassVar[str] = "facts"


@dataclass(frozen=True)
class Notes:
    """Sentences."""

    lines: tuple[str, ...]
    kind: ClassVar[str] = "notes"


@dataclass(frozen=True)
class Code:
    """A text as it is, folded away under its title."""

    title: str
    text: str
    kind: ClassVar[str] = "code"


@dataclass(frozen=True)
class Listing:
    """A table that a reader can sort by any of its columns.

    Attributes:
        caption: what its rows are.
        names: of the columns.
        rows: numbers and words, a column each.
        sorted_by: the column by which the rows are in order already, rising; None for no order.
    """

    caption: str
    names: tuple[str, ...]
    rows: tuple[tuple[float | str, ...], ...]
    sorted_by: int | None = None
    kind: ClassVar[str] = "listing"

    def numeric(self, column: int) -> bool:
        """Whether a column is one of numbers, perhaps with a few words: it is sorted by size."""
        return 2 * sum(isinstance(row[column], str) for row in self.rows) < max(1, len(self.rows))

    @staticmethod
    def shown(value: float | str) -> str:
        """A cell as it is read: a whole number in full, others with six digits."""
        if isinstance(value, str):
            return value
        return f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}"


@dataclass(frozen=True)
class Explorer:
    """Rows of data and samples that the reader's browser draws, for the pair of columns that is chosen."""

    content: Mapping[str, Any]
    alt: str
    caption: str
    kind: ClassVar[str] = "explorer"


Block = Panels | Facts | Notes | Code | Listing | Explorer


@dataclass(frozen=True)
class Section:
    """A part of the page: a heading, a sentence or two, and what is to be seen."""

    anchor: str
    title: str
    lead: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Answer:
    """What the verdict says to one question."""

    question: str
    answer: str
    reason: str
    tone: Tone


@dataclass(frozen=True)
class Headline:
    """A number that most readers want first."""

    name: str
    value: str
    remark: str


@dataclass(frozen=True)
class Page:
    """What a report says.

    Attributes:
        title: heading.
        subtitle: what it is about: data, scheme, updates.
        verdict: the sentence, its tone, and what it means for who wants to use the model.
        tone: how good that is.
        meaning: what follows for who wants to use it.
        answers: to the questions that the verdict rests on.
        headlines: a few numbers.
        sections: everything else, in order.
        overview: the picture that is also written beside the page.
        first: heading of the first part, which has the verdict.
    """

    title: str
    subtitle: str
    verdict: str
    tone: Tone
    meaning: str
    answers: tuple[Answer, ...]
    headlines: tuple[Headline, ...]
    sections: tuple[Section, ...]
    overview: Figure = field(repr=False)
    first: str = "Verdict"

    def section(self, anchor: str) -> Section:
        """The part of this name."""
        return next(section for section in self.sections if section.anchor == anchor)

    def write(self, path: Path) -> None:
        """Renders the page to `path`."""
        loader = jinja2.PackageLoader("burnin", "report")
        environment = jinja2.Environment(
            loader=loader,
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        style, script = (loader.get_source(environment, name)[0] for name in ("page.css", "page.js"))
        text = environment.get_template("page.html").render(
            page=self, style=style, script=script, allowed=digest(script)
        )
        path.write_text(text, encoding="utf-8")


def digest(script: str) -> str:
    """What a browser compares a script with before it runs it: no other script on the page is run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def paragraphs(lines: Sequence[str]) -> tuple[Notes, ...]:
    """The sentences as a block, or nothing where there are none."""
    return (Notes(tuple(lines)),) if lines else ()
