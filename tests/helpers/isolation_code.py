"""Code of a user that goes wrong for one customer: `prepare`, a metric and an objective with moods.

It loads no scikit-learn: each look before a run imports it in a new process.
"""

from __future__ import annotations

import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from tuning.steps import Step

LARGE = 1e4  # targets above this are the bad customer's


class Odd(BaseException):
    """Not an Exception."""


class Mute(Exception):  # noqa: N818  # as users name theirs
    def __str__(self) -> str:
        raise RuntimeError("no words")


def _nested() -> None:
    _nested()


#: What code may raise, or do to the process before it raises.
TROUBLES: dict[str, Callable[[], object]] = {
    "error": lambda: 1 / 0,
    "exit": lambda: sys.exit(0),
    "quiet exit": lambda: os._exit(3),
    "base": lambda: _raise(Odd("not an Exception")),
    "mute": lambda: _raise(Mute()),
    "surrogates": lambda: _raise(ValueError("\ud800")),
    "long": lambda: _raise(ValueError("x" * 10_000_000)),
    "memory": lambda: _raise(MemoryError()),
    "recursion": _nested,
    "storage": lambda: _raise(OSError(28, "No space left on device")),
    "stop": lambda: _raise(StopIteration()),
    "warnings": lambda: (warnings.simplefilter("error"), 1 / 0),
    "numpy": lambda: (np.seterr(all="raise"), 1 / 0),
    "sklearn": lambda: (sys.modules["sklearn"].set_config(transform_output="pandas", assume_finite=False), 1 / 0),
    "seeds": lambda: (np.random.seed(0), random.seed(0), 1 / 0),
}


def _raise(error: BaseException) -> None:
    raise error


#: What the functions below do to customers with large targets, by how large they are; set by the test.
moods: list[str] = []


def scale_of(number: int) -> float:
    """What a customer's targets are multiplied with who has this one of the moods."""
    return 10.0 ** (6 + 2 * number)


def mood_of(values: Any) -> str:
    """The mood for a customer with such targets, "" for good ones."""
    largest = np.abs(np.asarray(values, dtype=float)).max() if moods else 0.0
    return moods[int((np.log10(largest) - 5.5) // 2)] if largest > LARGE else ""


def prepare(frame: pd.DataFrame) -> object:
    """A `prepare` with moods."""
    mood = mood_of(frame["y"])
    return TROUBLES[mood]() if mood in TROUBLES else ANSWERS[mood](frame)


def _spoiled(frame: pd.DataFrame) -> None:
    frame.loc[:, "y"] = 0
    frame.drop(frame.index, inplace=True)


ANSWERS: dict[str, Callable[[pd.DataFrame], object]] = {
    "": lambda frame: frame,
    "none": lambda _: None,
    "an_array": lambda frame: frame.to_numpy(),
    "no_rows": lambda frame: frame[:0],
    "no_columns": lambda frame: frame[[]],
    "doubled": lambda frame: pd.concat([frame, frame], axis=1),
    "numbered": lambda frame: frame.set_axis(range(len(frame.columns)), axis=1),
    "two_levels": lambda frame: frame.set_axis(pd.MultiIndex.from_product([["x"], frame.columns]), axis=1),
    "spoiled": _spoiled,
}
PREPARES = [*TROUBLES, *filter(None, ANSWERS)]


def score(y_true: np.ndarray, y_pred: np.ndarray) -> object:
    """A metric with moods."""
    mood = mood_of(y_true)
    return TROUBLES[mood]() if mood in TROUBLES else SCORES[mood](y_true, y_pred)


def _loss(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    return -float(np.abs(y_true - y_pred).mean())


SCORES: dict[str, Callable[[np.ndarray, np.ndarray], object]] = {
    "": _loss,
    "nan": lambda *_: np.nan,
    "infinite": lambda *_: np.inf,
    "none": lambda *_: None,
    "words": lambda *_: "good",
    "complex": lambda *_: 1j,
    "array": lambda y, _: y,
    "sorting": lambda y, p: (y.sort(), p.sort(), _loss(y, p))[-1],
    "too_large": lambda *_: 10**400,
}
METRICS = [*TROUBLES, *filter(None, SCORES)]


def objective(config: dict[str, Any], data: pd.DataFrame) -> Iterator[object]:
    """An objective with moods."""
    value, mood = float(data["y"].mean()) * config["x"], mood_of(data["y"])
    yield value
    if mood in TROUBLES:
        TROUBLES[mood]()
    if mood in REPORTS:
        yield REPORTS[mood]()
    if mood == "spoiling":
        config.clear()
        data.drop(data.index, inplace=True)
    yield value


REPORTS: dict[str, Callable[[], object]] = {
    "none": lambda: None,
    "words": lambda: "good",
    "nan": lambda: np.nan,
    "infinite": lambda: np.inf,
    "complex": lambda: 1j,
    "too large": lambda: 10**400,
    "no metric": lambda: {"other": 1.0},
    "names that are numbers": lambda: {"loss": 1.0, 7: 1.0},
    "names that are no text": lambda: {"loss": 1.0, "\ud800": 1.0},
    "a metric that is no number": lambda: {"loss": "low"},
    "a figure too large": lambda: {"loss": 1.0, "more": 10**400},
    "a step without a score": lambda: Step(2, None),
    "a step out of order": lambda: Step(-5, 1.0),
    "figures that are none": lambda: Step(2, 1.0, metrics={"more": "text", "less": None}),
    "a numpy array": lambda: np.array([1.0, 2.0]),
}
OBJECTIVES = [*TROUBLES, *REPORTS, "spoiling"]
