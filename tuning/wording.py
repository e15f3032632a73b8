"""How lists, guesses and long values are said, in messages of every package."""

from __future__ import annotations

import itertools
from collections.abc import Iterable


def name_list(names: Iterable[object], most: int = 10) -> str:
    """Column names for a message: the first ones, each cut to a readable length."""
    shown = [name if len(name) <= 40 else name[:39] + "…" for name in map(str, itertools.islice(names, most + 1))]
    return ", ".join(map(repr, shown[:most])) + (", …" if len(shown) > most else "")
