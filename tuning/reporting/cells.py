"""Short pieces of HTML that a notebook's cell shows; everything in them is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from tuning.basics.wording import shorten

CELL = 90  # characters of a table's cell


def paragraph(text: str) -> str:
    """A paragraph; nothing without a text."""
    return f"<p>{escape(text)}</p>" if text else ""


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; columns that nobody has anything in are left out, long cells cut. Without rows there is none."""
    texts = [["" if cell is None else shorten(str(cell), CELL) for cell in row] for row in rows]
    kept = [number for number in range(len(columns)) if any(row[number] for row in texts)]
    if not kept:
        return ""
    head = "".join(f"<th>{escape(columns[number])}</th>" for number in kept)
    body = "".join(f"<tr>{''.join(f'<td>{escape(row[number])}</td>' for number in kept)}</tr>" for row in texts)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def listed(title: str, points: Sequence[str]) -> str:
    """A titled list; nothing without points."""
    if not points:
        return ""
    return f"<p>{escape(title)}:</p><ul>{''.join(f'<li>{escape(point)}</li>' for point in points)}</ul>"
