"""Self-contained HTML pages: headings, text, tables and figures in one file that opens without a network.

Everything a page shows is escaped; figures are embedded as SVG images. The one script that a page may run is that of
its `DataTable`, by its digest. Colours are light or dark, as the reader's system is.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from tuning.reporting.data_table import SCRIPT, STYLE, DataTable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Tile:
    """One figure at the top of a page.

    Attributes:
        title: what it is.
        value: the figure.
        about: what it is to be compared with.
        tone: "good", "bad" or neither.
    """

    title: str
    value: str
    about: str = ""
    tone: str = ""


@dataclass(frozen=True)
class Text:
    """One paragraph."""

    text: str


@dataclass(frozen=True)
class Points:
    """A list of sentences."""

    points: Sequence[str]


@dataclass(frozen=True)
class HtmlTable:
    """A table of text cells; `strong` is the row to point out, `folded` hides it behind its caption.

    prose: its cells hold sentences, which are broken into lines.
    """

    frame: pd.DataFrame
    caption: str = ""
    strong: int | None = None
    folded: bool = False
    prose: bool = False


@dataclass(frozen=True)
class Picture:
    """A matplotlib figure; `alt` says what it shows to those who cannot see it, `caption` how to read it."""

    figure: Figure
    alt: str
    caption: str = ""

    @property
    def source(self) -> str:
        """The figure as a data URI."""
        from tuning.reporting.figure import svg

        return f"data:image/svg+xml;base64,{base64.b64encode(svg(self.figure, transparent=True)).decode()}"


def drawn(draw: Callable[[Axes], object], alt: str, caption: str = "") -> Picture:
    """Return what is drawn into the axes of a new figure that fits twice into a page."""
    from tuning.reporting.figure import new_figure

    figure, axes = new_figure(5.6, 3.5)
    draw(axes)
    return Picture(figure, alt, caption)


@dataclass(frozen=True)
class PictureRow:
    """Pictures beside each other where the window is wide enough."""

    pictures: Sequence[Picture]


LONG = 60  # characters, from which on a cell is broken into lines
TEMPLATE = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
_FIGURE = re.compile(r"[-+−]?[\d.]")

Block = Text | Points | HtmlTable | Picture | PictureRow | DataTable


@dataclass(frozen=True)
class Section:
    """A heading, which may be empty, and what is under it."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes:
        title: the page's title.
        lead: the one sentence that stands out; empty where tiles say it.
        sections: the rest.
        footer: where it comes from.
        tiles: the figures that the page begins with.
    """

    title: str
    lead: str
    sections: Sequence[Section]
    footer: str = ""
    tiles: Sequence[Tile] = ()

    def html(self) -> str:
        """The page as one HTML document."""
        import jinja2

        environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        environment.globals["kind"] = _kind
        environment.filters |= {"cells": _cells, "styles": _styles, "marked": marked}
        searched = any(isinstance(block, DataTable) for section in self.sections for block in section.blocks)
        environment.globals |= {"script": SCRIPT if searched else "", "style": STYLE if searched else ""}
        environment.globals["allowed"] = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
        return environment.from_string(TEMPLATE).render(page=self)


def marked(text: object) -> Markup:
    """Return a sentence in which what stands between backticks looks like what can be typed."""
    parts = str(text).split("`")
    closed = len(parts) - (len(parts) % 2 == 0)  # without a partner, the last backtick is one
    words = (
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part)
        for number, part in enumerate(parts[:closed])
    )
    return Markup("").join(words) + "".join(f"`{part}" for part in parts[closed:])


def _kind(block: Block) -> str:
    return type(block).__name__.lower()


def _styles(frame: pd.DataFrame) -> list[str]:
    """Of each column the class of its cells: figures stand to the right, texts to the left, long ones are broken."""
    found = []
    for column in _cells(frame.T):
        texts = [str(value) for value in column if value != ""]
        text = "text" if not any(map(_FIGURE.match, texts)) else ""
        found.append(f"{text} long" if text and max(map(len, texts), default=0) > LONG else text)
    return found


def _cells(frame: pd.DataFrame) -> list[list[object]]:
    cells: list[list[object]] = frame.astype(object).where(frame.notna(), "").to_numpy().tolist()
    return cells
