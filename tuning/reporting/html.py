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
from typing import TYPE_CHECKING

from tuning.reporting.data_table import SCRIPT, STYLE, DataTable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
_FIGURE = re.compile(r"[-+−]?[\d.]")

Block = Text | Points | HtmlTable | Picture | PictureRow | DataTable


@dataclass(frozen=True)
class Section:
    """A heading and what is under it."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes:
        title: the page's title.
        lead: the one sentence that stands out.
        sections: the rest.
        footer: where it comes from.
    """

    title: str
    lead: str
    sections: Sequence[Section]
    footer: str = ""

    def html(self) -> str:
        """The page as one HTML document."""
        import jinja2

        environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        environment.globals["kind"] = _kind
        environment.filters |= {"cells": _cells, "styles": _styles}
        searched = any(isinstance(block, DataTable) for section in self.sections for block in section.blocks)
        environment.globals |= {"script": SCRIPT if searched else "", "style": STYLE if searched else ""}
        environment.globals["allowed"] = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
        return environment.from_string(TEMPLATE).render(page=self)


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


TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'\
{% if script %}; script-src 'sha256-{{ allowed }}'{% endif %}">
<title>{{ page.title }}</title>
<style>
:root { color-scheme: light dark; --page: #fff; --text: #1c2430; --soft: #56606e; --line: #e6eaf0; --line-2: #c9d1db;
        --lead: #eef5fb; --mark: #0072b2; --strong: #f5f9fd; --link: #0061a0; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14181d; --text: #e3e8ee; --soft: #9aa6b3; --line: #2a3139; --line-2: #47515c; --lead: #1b2733;
          --mark: #56b4e9; --strong: #1b222a; --link: #7cc4f4; }
  img { background: #fff; border-radius: .25rem; } /* figures are drawn once, for white paper */
}
body { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; color: var(--text);
       background: var(--page); max-width: 74rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.5rem; margin: 0 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .75rem; padding-top: .75rem; border-top: 1px solid var(--line-2); }
.lead { font-size: 1.2rem; line-height: 1.45; padding: 1rem 1.25rem; margin: 0; background: var(--lead);
        border-left: 4px solid var(--mark); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; margin: .5rem 0; }
caption, summary, figcaption { text-align: left; color: var(--soft); font-size: .9rem; padding: .25rem 0; }
summary { cursor: pointer; }
th, td { padding: .35rem .75rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: .25rem; }
th { font-weight: 600; border-bottom: 2px solid var(--line-2); vertical-align: bottom; white-space: normal;
     overflow-wrap: normal; }
td.text, th.text { text-align: left; }
td.long { white-space: normal; overflow-wrap: break-word; min-width: 14rem; }
caption { position: sticky; left: 0; max-width: calc(100vw - 2.5rem); }
tr.strong td { font-weight: 600; background: var(--strong); }
.prose th, .prose td { text-align: left; white-space: normal; vertical-align: top; overflow-wrap: anywhere;
                       min-width: 7rem; }
.prose th { overflow-wrap: normal; }
@media (max-width: 40rem) { .prose thead { display: none; } .prose td { display: block; border: 0; padding: .1rem 0; }
  .prose td::before { content: attr(data-title) ": "; color: var(--soft); }
  .prose td:last-child { padding-bottom: 1rem; } }
figure { margin: 1rem 0 1.5rem; }
.row { display: flex; flex-wrap: wrap; gap: 1rem; }
.row figure { flex: 1 1 26rem; max-width: 36rem; margin: 0; }
img { max-width: 100%; height: auto; }
li { margin: .3rem 0; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
{{ style | safe }}
@media print { body { margin: 0; max-width: none; } h2 { break-after: avoid; } figure { break-inside: avoid; } }
</style>
</head>
<body>
<h1>{{ page.title }}</h1>
<p class="lead">{{ page.lead }}</p>
{% macro said(text) %}
{% for part in text.split("`") %}\
{% if loop.index is even and not loop.last %}<code>{{ part }}</code>{% else %}\
{{ "`" if loop.index is even }}{{ part }}{% endif %}{% endfor %}
{% endmacro %}
{% macro styled(names) %}{% if names %} class="{{ names }}"{% endif %}{% endmacro %}
{% macro table(block) %}
{% set styles = block.frame | styles %}
<div class="scroll"><table{% if block.prose %} class="prose"{% endif %}>
{% if block.caption and not block.folded %}<caption>{{ block.caption }}</caption>{% endif %}
<thead><tr>{% for name in block.frame.columns %}\
<th scope="col"{{ styled(styles[loop.index0]) }}>{{ name }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in block.frame | cells %}
<tr{% if loop.index0 == block.strong %} class="strong"{% endif %}>\
{% for cell in row %}<td{{ styled(styles[loop.index0]) }}\
{% if block.prose %} data-title="{{ block.frame.columns[loop.index0] }}"{% endif %}>\
{% if block.prose %}{{ said(cell | string) }}{% else %}{{ cell }}{% endif %}</td>{% endfor %}</tr>
{% endfor %}
</tbody></table></div>
{% endmacro %}
{% macro picture(block) %}
<figure><img src="{{ block.source }}" alt="{{ block.alt }}">
{% if block.caption %}<figcaption>{{ block.caption }}</figcaption>{% endif %}</figure>
{% endmacro %}
{% for section in page.sections %}
<section>
<h2>{{ section.title }}</h2>
{% for block in section.blocks %}
{% if kind(block) == "text" %}
<p>{{ said(block.text) }}</p>
{% elif kind(block) == "points" %}
<ul>{% for point in block.points %}<li>{{ said(point) }}</li>{% endfor %}</ul>
{% elif kind(block) == "htmltable" %}
{% if block.folded %}<details><summary>{{ block.caption }}</summary>{{ table(block) }}</details>
{% else %}{{ table(block) }}{% endif %}
{% elif kind(block) == "picturerow" %}
<div class="row">{% for item in block.pictures %}{{ picture(item) }}{% endfor %}</div>
{% elif kind(block) == "picture" %}
{{ picture(block) }}
{% elif kind(block) == "datatable" %}
{% if block.note %}<p>{{ block.note }}</p>{% endif %}
<div class="data"><script type="application/json">{{ block.data | safe }}</script>
<noscript><p>This table needs JavaScript.</p></noscript></div>
{% endif %}
{% endfor %}
</section>
{% endfor %}
{% if page.footer %}<footer>{{ page.footer }}</footer>{% endif %}
{% if script %}<script>{{ script | safe }}</script>{% endif %}
</body>
</html>
"""
