"""The table of docs/algorithms.md: the search algorithms, with their options and what they need.

python docs/algorithm_table.py     # writes it into the page; run it at the top of the repository
"""

from __future__ import annotations

from pathlib import Path

from search_spaces.algorithms import registry

PAGE = "docs/algorithms.md"
BEGIN, END = "<!-- algorithms -->\n", "\n<!-- /algorithms -->"


def written(text: str) -> str:
    """Return the page's text with the table between its markers."""
    rows = ["| algorithm | what it does | options | learns from | source | needs |", "|---|---|---|---|---|---|"]
    for name, kind in registry().items():
        options = ", ".join(f"`{option}`" for option in kind.model_fields if option != "name")
        needs = ", ".join(f"`{pip}`" for pip in kind.requires.values())
        rows.append(f"| `{name}` | {kind.title} | {options or '-'} | {kind.learns} | {kind.paper} | {needs or '-'} |")
    table = "\n".join(rows)
    return f"{text.partition(BEGIN)[0]}{BEGIN}{table}{END}{text.partition(END)[2]}"


if __name__ == "__main__":
    page = Path(PAGE)
    page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
