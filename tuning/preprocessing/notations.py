"""How numbers are written in text: whether texts are numbers, and in which notation they would be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from tuning.notes import DataCode, Note
from tuning.preprocessing.dates import LOOKED_AT, NEARLY_ALL, date_format, is_like_a_date

MISSING = "(missing)"
IS_NUMBER = r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*"
IS_CODE = r"\s*[+-]?0[0-9]"  # 007 is no number
AROUND = "$€£¥%() \u00a0\u202f"  # signs around amounts
#: Options of `csv`; of several that fit alike the first one is meant.
NOTATIONS: tuple[Mapping[str, str], ...] = (
    {"decimal": ","},
    {"thousands": ","},
    {"decimal": ",", "thousands": "."},
    *({**point, "thousands": group} for group in " '\u2019\u00a0\u202f" for point in ({}, {"decimal": ","})),
)


def nearly_numbers(texts: pd.Series, counts: np.ndarray | None = None) -> bool:
    """Return whether so many texts are numbers that the others are mistakes; codes such as 007 are no numbers.

    counts: how often each text occurs, once by default.
    """
    numbers = texts.str.fullmatch(IS_NUMBER).to_numpy(dtype=bool)
    if not numbers.any() or texts.str.match(IS_CODE).any():
        return False
    return bool(np.average(numbers, weights=counts) >= NEARLY_ALL)


def numbers_among(values: pd.Series) -> tuple[pd.Series, np.ndarray]:
    """Return the values as float64, NaN where there is no number, and a mask of values that are no numbers.

    A single cell that is no number makes text of a CSV's whole column. Durations are their seconds.
    """
    plain = values.astype(object) if isinstance(values.dtype, pd.CategoricalDtype) else values
    if is_duration(values):
        plain = values.infer_objects().dt.total_seconds()
    try:
        numbers = pd.to_numeric(plain, errors="coerce").astype(np.float64)
    except (TypeError, ValueError):
        numbers = pd.Series(np.nan, index=values.index)
    return numbers, (numbers.isna() & values.notna()).to_numpy()


def is_duration(values: pd.Series) -> bool:
    """Return whether values are durations, by their type or each as an object of Python."""
    if values.dtype == object:
        return pd.api.types.infer_dtype(values, skipna=True) in ("timedelta", "timedelta64")
    return getattr(values.dtype, "kind", "") == "m"


def nearly_dates(texts: Sequence[str]) -> bool:
    """Return whether nearly all of some texts look like dates."""
    return _nearly_all(texts, is_like_a_date)


def notations(texts: Sequence[str]) -> list[Mapping[str, str]]:
    """Return the options of `csv` under which nearly all of some texts, no numbers without them, are numbers.

    Two where a comma may stand before decimals or between thousands; else one at most.
    """
    if _nearly_all(texts, re.compile(IS_NUMBER).fullmatch):
        return []
    fitting = [options for options in NOTATIONS if _nearly_all(texts, _pattern(**options).fullmatch)]
    return fitting[: 2 if fitting[1:2] == [NOTATIONS[1]] else 1]


def _pattern(decimal: str = ".", thousands: str = "") -> re.Pattern[str]:
    groups = rf"[0-9]{{1,3}}(?:{re.escape(thousands)}[0-9]{{3}})+|" if thousands else ""
    return re.compile(rf"\s*[+-]?(?:{groups}[0-9]+)(?:{re.escape(decimal)}[0-9]+)?\s*")


def seeming(texts: Sequence[str]) -> Note | None:
    """Return what nearly all of some texts seem to be, though they are read as text; None of others."""
    texts = [text for text in texts if text != MISSING]
    if found := notations(texts):
        example = max(texts[:LOOKED_AT], key=len)
        return DataCode.NUMBERS_AS_TEXT(example=example, csv=found)
    bare = [text.strip(AROUND) for text in texts]
    if bare != texts and (_nearly_all(bare, re.compile(IS_NUMBER).fullmatch) or notations(bare)):
        return DataCode.AMOUNTS_AS_TEXT(example=texts[0])
    if not nearly_dates(texts):
        return None
    one = date_format(pd.Series(texts), None) is not None
    return DataCode.DATES_AS_TEXT() if one else DataCode.DATES_IN_NOTATIONS()


def _nearly_all(texts: Sequence[str], fits: Callable[[str], object]) -> bool:
    """Return whether nearly all texts are of one kind; of most columns the first few tell that they are not."""
    parts = (texts[:LOOKED_AT], texts)
    return bool(texts) and all(sum(bool(fits(text)) for text in part) >= NEARLY_ALL * len(part) for part in parts)
