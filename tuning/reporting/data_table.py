"""A table of thousands of rows in a page: sorted, searched and filtered in the browser, details of a row on demand.

The rows are in the page as JSON, a list per column, texts that repeat once; the browser makes only the rows that are
looked at. What is chosen is in the address (`#find=oslo&sort=gain`), so a view can be linked to.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

ColumnValues: TypeAlias = Sequence[str | float | int | None]
MOST_CHOICES = 30  # of a filter; a column with more different texts is only searched
DIGITS = 4  # of a number
LONG = 20  # characters beyond which a column's texts are broken into lines


@dataclass(frozen=True)
class DataColumn:
    """One column.

    Attributes:
        title: its heading, which is also its name in the address.
        values: texts or numbers, one per row; None where there is nothing.
        filtered: whether rows are chosen by its values, where these are few.
        narrow: whether it is shown in a narrow window, too.
        detail: whether it is shown only where a row is opened.
    """

    title: str
    values: ColumnValues
    filtered: bool = False
    narrow: bool = False
    detail: bool = False

    def plain(self) -> dict[str, object]:
        """For JSON. Sorting by the first column is the order in which the rows came."""
        number = any(isinstance(value, float | int) for value in self.values)
        plain: dict[str, object] = {"title": self.title, "narrow": self.narrow, "detail": self.detail, "number": number}
        if number:
            return {**plain, "values": [_rounded(value) for value in self.values]}
        plain["long"] = any(len(str(value)) > LONG for value in self.values if value is not None)
        codes: dict[str | float | None, int] = {}
        rows = [codes.setdefault(value, len(codes)) for value in self.values]
        filtered = self.filtered and 1 < len(codes) <= MOST_CHOICES
        if len(codes) > len(rows) // 2:
            return {**plain, "filtered": filtered, "values": list(self.values)}
        return {**plain, "filtered": filtered, "texts": list(codes), "codes": rows}


def _rounded(value: str | float | None) -> float | None:
    if value is None or isinstance(value, str) or not math.isfinite(value):
        return None
    return value if isinstance(value, int) else float(f"{value:.{DIGITS}g}")


@dataclass(frozen=True)
class DataTable:
    """The table.

    Attributes:
        columns: the first one names the rows.
        noun: what a row is, in the plural.
        note: what is not in it.
        tones: of each row "bad", "worse" or nothing; coloured rows are to be looked at.
        more: where there is more about a row: a command with `{}` for what its first column says; shown when opened.
    """

    columns: Sequence[DataColumn]
    noun: str
    note: str = ""
    more: str = ""
    tones: Sequence[str] = ()

    @property
    def data(self) -> str:
        """The rows as JSON that no text in it can end before its time."""
        tones = {row: tone for row, tone in enumerate(self.tones) if tone}
        plain = {
            "noun": self.noun,
            "more": self.more,
            "tones": tones,
            "columns": [column.plain() for column in self.columns],
        }
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


STYLE, SCRIPT = (
    Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("data_table.css", "data_table.js")
)
