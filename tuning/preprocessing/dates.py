"""Text that is dates: ISO 8601, or a notation that the user names or that all of a column's values together show."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd

ISO = "ISO8601"
DAY_FIRST, MONTH_FIRST = "day_first", "month_first"
NEARLY_ALL = 0.9  # of a column's values; the others are missing
LOOKED_AT = 20  # different values, before all are parsed

ISO_LIKE = re.compile(r"\d{4}-\d{2}-\d{2}")
# 31.12.2024, 12/31/24, 2024/12/31, each perhaps with a time of day
NUMBERED = re.compile(
    r"(\d{1,4})([./-])(\d{1,2})\2(\d{4}|\d{1,2})(?:[ T]+(\d{1,2}:\d{2})(:\d{2})?(\.\d+)?( ?[AaPp][Mm])?)?$"
)
NAMED = ("%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d. %B %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y")
MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
NAMED_LIKE = re.compile(rf"(\d{{1,2}}[ .-]+{MONTH}|{MONTH} \d{{1,2}},?)[ -]+\d{{2,4}}\b", re.IGNORECASE)
UNDECIDED = "undecided"  # a format: day and month cannot be told apart


def date_format(values: pd.Series, dates: str | None) -> str | None:
    """Return the notation of nearly all of some texts; None when they are no dates, UNDECIDED where two fit alike.

    values: the different texts of a column. dates: "day_first", "month_first", a format of `strptime`, or None to
    guess.
    """
    formats = [format for format in _candidates(values[:LOOKED_AT], dates) if _share(values[:LOOKED_AT], format) > 0.5]
    shares = {format: _share(values, format) for format in formats}
    best = max(shares.values(), default=0.0)
    if best < NEARLY_ALL:
        return None
    fitting = [format for format, share in shares.items() if share == best]
    if len(fitting) > 1 and "." not in fitting[0]:  # with dots the day is written first wherever they are used
        return UNDECIDED
    return fitting[0]


def parse_dates(values: pd.Series, format: str) -> pd.Series:
    """Parse moments in UTC; a text in another notation is NaT."""
    return pd.to_datetime(values, format=format, utc=True, errors="coerce")


def is_like_a_date(text: str) -> bool:
    """Return whether a text looks like a date in any notation."""
    return any(pattern.match(text.strip()) for pattern in (ISO_LIKE, NUMBERED, NAMED_LIKE))


def _share(values: pd.Series, format: str) -> float:
    return float(parse_dates(values, format).notna().mean())


def _candidates(some: pd.Series, dates: str | None) -> list[str]:
    if dates is not None and "%" in dates:
        return [ISO, dates]
    texts = [str(text).strip() for text in some]
    if sum(ISO_LIKE.match(text) is not None for text in texts) * 2 > len(texts):
        return [ISO]
    numbered = [found for text in texts if (found := NUMBERED.match(text))]
    if numbered:
        return _numbered(numbered, dates)
    if any(re.search(r"[A-Za-z]{3}", text) and re.search(r"\d{2}", text) for text in texts):
        return [*NAMED, *(f"{format} {time}" for format in NAMED for time in ("%H:%M", "%H:%M:%S"))]
    return []


def _numbered(found: Sequence[re.Match[str]], dates: str | None) -> list[str]:
    first, sep, _, last, clock, seconds, fraction, half = found[0].groups()
    time = ""
    if clock:
        hours = "%I:%M" if half else "%H:%M"
        ending = half.upper().replace("AM", "%p").replace("PM", "%p") if half else ""
        time = f" {hours}{':%S' if seconds else ''}{'.%f' if fraction else ''}{ending}"
    if len(first) == 4:
        return [f"%Y{sep}%m{sep}%d{time}"]
    year = "%Y" if len(last) == 4 else "%y"
    day_first, month_first = (
        f"{first}{sep}{second}{sep}{year}{time}" for first, second in (("%d", "%m"), ("%m", "%d"))
    )
    if dates in (DAY_FIRST, MONTH_FIRST):
        return [day_first if dates == DAY_FIRST else month_first]
    return [day_first, month_first]
