"""The curves table: one row per trial of every search, the one thing a comparison is computed from.

| column | meaning |
|---|---|
| method | the algorithm, with its scheduler if it has one |
| task | what was tuned for: the customer |
| seed | which repetition |
| trial | how many trials the search had done, this one included; increasing, gaps allowed |
| score | of this trial (or the best so far, where that is all there is); missing when it failed |
| steps | optional: steps paid so far, this trial included; increasing within a curve |
| seconds | optional: seconds spent so far, the sampler's own included; increasing within a curve |
| mode | `max` or `min`, the same for a whole task; may be given as an argument instead |
| state | optional: `finished`, `stopped` (early, so it cannot win) or `failed`; by default from the score |

A *curve* is the rows of one (method, task, seed).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from schedulers.direction import loss_of
from tuning.errors import DataError
from tuning.records.schema import FAILED, FINISHED, TRIAL_STATES

REQUIRED = ("method", "task", "seed", "trial", "score")
CURVE = ["method", "task", "seed"]
MODES = ("max", "min")
AXES = ("trials", "steps", "seconds")


@dataclass(frozen=True)
class Curves:
    """A checked curves table.

    Attributes:
        frame: columns method, task, seed, trial, score, steps, seconds, mode, state, and `loss` (the score turned so
            that less is better, missing unless the trial finished), sorted by curve and trial.
        methods, tasks: in the order of their first appearance.
        axes: those of `AXES` that the table has figures for.
    """

    frame: pd.DataFrame
    methods: tuple[str, ...]
    tasks: tuple[str, ...]
    axes: tuple[str, ...]

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, mode: str | None = None) -> Curves:
        """Check a table and bring it into order.

        Args:
            frame: the table.
            mode: the direction of every task, when the table has no column `mode`.

        Raises:
            DataError: a column is missing or holds something else than documented; names the curve.
        """
        frame = _columns(frame, mode)
        methods, tasks = tuple(frame["method"].unique()), tuple(frame["task"].unique())
        _check_mode(frame)
        frame["state"] = _states(frame)
        frame["loss"] = losses(frame["score"], frame["mode"]).where(frame["state"] == FINISHED)
        for name, order in (("method", methods), ("task", tasks)):
            frame[name] = pd.Categorical(frame[name], categories=order)
        frame = frame.sort_values([*CURVE, "trial"], kind="stable", ignore_index=True)
        _check_order(frame)
        for name in ("method", "task"):
            frame[name] = frame[name].astype(object)
        axes = tuple(axis for axis in AXES if axis == "trials" or frame[axis].notna().all())
        return cls(frame, methods, tasks, axes)

    @classmethod
    def read(cls, path: str | Path, mode: str | None = None) -> Curves:
        """Read a CSV or Parquet file of curves; see the module for its columns.

        Raises:
            DataError: the file cannot be read, or `from_frame` refuses its contents.
        """
        return cls.from_frame(read_frame(path), mode)

    def only(self, tasks: tuple[str, ...]) -> Curves:
        """Return the curves of these tasks."""
        return Curves(self.frame[self.frame["task"].isin(tasks)], self.methods, tasks, self.axes)

    @cached_property
    def bounds(self) -> pd.DataFrame:
        """By task, as losses, columns best and reference: the best score seen, the median of single random trials.

        Random trials are those of a method called `random…`; without one the first ten trials of all methods; where
        the table holds best-so-far curves, their first points.
        """
        done = self.frame[self.frame["loss"].notna()]
        best = done.groupby("task")["loss"].min()
        random = [name for name in self.methods if re.split(r"[+#@ ]", name)[0].lower() == "random"]
        named = done["method"].isin(random)
        pool = done[named] if named.any() else done[done["trial"] <= 10]
        rises = done.groupby(CURVE, sort=False)["loss"].diff() > 0
        only_incumbents = ~rises.groupby(done["task"]).any()
        first = done.groupby(CURVE, sort=False).head(1).groupby("task")["loss"].median()
        reference = pool.groupby("task")["loss"].median().reindex(best.index).fillna(first)
        reference = reference.where(~only_incumbents.reindex(best.index), first)
        return pd.DataFrame({"best": best, "reference": reference})


def read_frame(path: str | Path) -> pd.DataFrame:
    """Read a table from a `.csv`, `.csv.gz` or `.parquet` file."""
    source = Path(path)
    names = source.name.lower()
    try:
        if names.endswith((".parquet", ".pq")):
            return pd.read_parquet(source)
        if names.endswith((".csv", ".csv.gz")):
            # A customer may be called "NA" or "007".
            text = {"method": str, "task": str}
            kept = {"keep_default_na": False, "na_values": {"score": ["", "nan", "NaN", "NA", "null", "None"]}}
            return pd.read_csv(source, dtype=text, **kept)
    except (OSError, ValueError, UnicodeDecodeError) as error:
        raise DataError(f"{str(path)!r} cannot be read: {error}.") from error
    raise DataError(f"{str(path)!r} is neither .csv, .csv.gz nor .parquet; convert it to one of these.")


def losses(scores: pd.Series, modes: pd.Series) -> pd.Series:
    """Return scores, each by its own mode, turned so that smaller is better."""
    return loss_of(scores, "max").where(modes == "max", scores)


def _columns(given: pd.DataFrame, mode: str | None) -> pd.DataFrame:
    missing = [name for name in REQUIRED if name not in given.columns]
    if missing:
        raise DataError(
            f"The curves table has no column {', '.join(missing)} (it has {', '.join(map(str, given.columns))}). "
            f"It needs {', '.join(REQUIRED)}, and may have steps, seconds, mode and state."
        )
    if given.empty:
        raise DataError("The curves table has no rows.")
    if "mode" not in given.columns and mode is None:
        raise DataError('The curves table has no column mode: add one, or say mode="max" or mode="min".')
    frame = given[[*REQUIRED]].copy()
    for name in CURVE:
        if frame[name].isna().any():
            raise DataError(f"The curves table has rows without {name}; every row needs one.")
    frame["method"], frame["task"] = frame["method"].astype(str), frame["task"].astype(str)
    frame["mode"] = mode if mode is not None else given["mode"].astype(str)
    for name in ("trial", "score", "steps", "seconds"):
        frame[name] = _numbers(given, name)
    frame["state"] = given["state"] if "state" in given.columns else None
    return frame


def _numbers(given: pd.DataFrame, name: str) -> pd.Series:
    if name not in given.columns:
        return pd.Series(np.nan, index=given.index)
    try:
        values = pd.to_numeric(given[name]).astype(float)
    except (ValueError, TypeError) as error:
        raise DataError(f"Column {name} of the curves table must hold numbers: {error}.") from error
    if name == "score":
        return values.where(np.isfinite(values))
    some, bad = values.notna().any(), ~np.isfinite(values.to_numpy()) | (values.to_numpy() < 0)
    if some and bad.any():
        row = given.index[bad.argmax()]
        raise DataError(f"Column {name} of the curves table must be 0 or more in every row; row {row} is not.")
    if name == "trial" and (not some or (values % 1 != 0).any() or (values < 1).any()):
        raise DataError("Column trial of the curves table must hold whole numbers from 1.")
    return values


def _check_mode(frame: pd.DataFrame) -> None:
    wrong = sorted(set(frame["mode"]) - set(MODES))
    if wrong:
        raise DataError(f"mode is {wrong[0]!r} in the curves table; it must be max or min.")
    both = frame.groupby("task", sort=False)["mode"].nunique()
    if (both > 1).any():
        raise DataError(f"Task {both.idxmax()!r} has both modes; a task has one direction.")


def _states(frame: pd.DataFrame) -> pd.Series:
    scored = pd.Series(np.where(frame["score"].notna(), FINISHED, FAILED), index=frame.index)
    if frame["state"].isna().all():
        return scored
    wrong = sorted(set(frame["state"].dropna().astype(str)) - set(TRIAL_STATES))
    if wrong:
        raise DataError(f"state is {wrong[0]!r} in the curves table; it must be one of {', '.join(TRIAL_STATES)}.")
    return frame["state"].fillna(scored).where(frame["score"].notna(), FAILED)


def _check_order(frame: pd.DataFrame) -> None:
    same = (frame[CURVE] == frame[CURVE].shift()).all(axis=1)
    for name in ("trial", "steps", "seconds"):
        step = frame[name].diff()
        wrong = same & ((step <= 0) if name == "trial" else (step < 0))
        if wrong.any():
            row = frame.iloc[int(np.flatnonzero(wrong)[0])]
            curve = f"method {row['method']!r}, task {row['task']!r}, seed {row['seed']}"
            raise DataError(
                f"{curve}: trial {int(row['trial'])} appears twice in the curves table."
                if name == "trial"
                else f"{curve}: {name} falls at trial {int(row['trial'])}; the column is cumulative."
            )
