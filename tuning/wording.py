"""How lists, guesses and long values are said, in messages of every package."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Collection, Iterable


def name_list(names: Iterable[object], most: int = 10) -> str:
    """Column names for a message: the first ones, each cut to a readable length."""
    shown = [shorten(str(name), 40) for name in itertools.islice(names, most + 1)]
    return ", ".join(map(repr, shown[:most])) + (", …" if len(shown) > most else "")


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """The known name nearest to a misspelt one, as `` Did you mean 'x'?``; nothing when none is near."""
    near = difflib.get_close_matches(str(name), [str(other) for other in known], n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def separator_hint(columns: Collection[object]) -> str:
    """What to set where a file with another separator was read as one column; nothing otherwise."""
    first = str(next(iter(columns), ""))
    found = [sep for sep in (";", "\t", "|", ",") if sep in first] if len(columns) == 1 else []
    return f" The fields seem to be separated by {found[0]!r}: set `csv: {{sep: {found[0]!r}}}`." if found else ""


def shorten(text: str, most: int = 80) -> str:
    """The text in at most that many characters, the last one an ellipsis where something was cut off."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
