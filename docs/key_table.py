"""The lists of a definition's keys in docs/definition.md, made from the fields' descriptions.

python docs/key_table.py     # writes them into the page; run it at the top of the repository
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from pydantic.fields import FieldInfo

from tuning.definition.definition import Definition
from tuning.definition.options import CustomerOptions, Options

PAGE = "docs/definition.md"


def key_tables() -> str:
    """A Markdown list of all keys of a definition, and one for each key that is a mapping itself."""
    rows = "\n".join(_row(name, field, _keys(name, field)) for name, field in Definition.model_fields.items())
    sections = [f"## All keys\n\n{rows}"]
    for name, field in Definition.model_fields.items():
        kind = _options_in(field.annotation) if name != "data" else CustomerOptions
        if kind is not None:
            rows = "\n".join(_row(option, each) for option, each in kind.model_fields.items())
            sections.append(f"## `{name}`\n\n{kind.summary()}\n\n{rows}")
    return "\n\n".join(sections)


def written(text: str) -> str:
    """The page's text with the lists between its markers."""
    return re.sub(
        r"(<!-- keys -->\n).*?(<!-- /keys -->)", lambda place: f"{place[1]}{key_tables()}\n{place[2]}", text, flags=re.S
    )


def _row(name: str, field: FieldInfo, more: str = "") -> str:
    description = " ".join((field.description or "").split()) + more
    linked = re.sub(r"\bdocs/([a-z-]+)(\.md(?:#[a-z-]+)?)", r"[\1](\1\2)", description).replace("](ex", "](../ex")
    return f"- `{name}`{_default(field)}: {linked}"


def _keys(name: str, field: FieldInfo) -> str:
    """A link to the keys of a mapping."""
    kind = None if name == "data" else _options_in(field.annotation)
    return "" if kind is None else f" [Keys](#{name})."


def _options_in(annotation: object) -> type[Options] | None:
    return next(_found(annotation), None)


def _found(annotation: object) -> Iterator[type[Options]]:
    if isinstance(annotation, type) and issubclass(annotation, Options):
        yield annotation
    for inner in get_args(annotation):
        yield from _found(inner)


def _default(field: FieldInfo) -> str:
    value = field.default
    if field.is_required():
        return " (required)"
    if value is None or value == () or isinstance(value, Options):
        return ""
    return f" (`{str(value).lower() if isinstance(value, bool) else value}`)"


if __name__ == "__main__":
    page = Path(PAGE)
    page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
