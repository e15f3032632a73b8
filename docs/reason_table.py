"""The table of docs/troubleshooting.md: the reasons and notes of the catalogue that have advice.

python docs/reason_table.py     # writes it into the page; run it at the top of the repository
"""

from __future__ import annotations

import string
from pathlib import Path

from tuning.notes import codes

PAGE = "docs/troubleshooting.md"
BEGIN, END = "<!-- reasons -->\n", "\n<!-- /reasons -->"


def written(text: str) -> str:
    """Return the page's text with the table between its markers."""
    rows = [f"| `{code.id}` | {_cell(code.text)} | {_cell(code.advice)} |" for code in codes().values() if code.advice]
    table = "\n".join(["| code | reason or note | what to do |", "|---|---|---|", *rows])
    return f"{text.partition(BEGIN)[0]}{BEGIN}{table}{END}{text.partition(END)[2]}"


def _cell(text: str) -> str:
    """A text of the catalogue with the names of its values, but for those that are not always there."""
    parts: list[str] = []
    for literal, name, form, _ in string.Formatter().parse(text):
        parts.append(literal)
        in_code = "".join(parts).count("`") % 2
        if name is not None and not str(form).startswith(("then", "separator")):
            parts.append("…" if in_code else f"*{name}*")
    return "".join(parts).replace("|", "\\|")


if __name__ == "__main__":
    page = Path(PAGE)
    page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
