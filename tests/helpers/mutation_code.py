"""Code of a user that changes what it is given, where `changes` says so: a constraint, a metric, models, `prepare`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge

#: One entry where the code below changes what it is given; set by the test.
changes: list[bool] = []


def size(value: Any) -> float:
    """What an objective makes of a value; it changes with everything in it."""
    if isinstance(value, dict):
        return 1 + sum(map(size, value.values())) + len(value)
    if isinstance(value, list):
        return 1 + sum(size(item) for item in value)
    return float(value) if isinstance(value, int | float) else 0.5


def spoil(value: Any) -> None:
    """Change everything in a value that can be changed."""
    if isinstance(value, dict):
        for item in value.values():
            spoil(item)
        value.clear()
        value["spoilt"] = [1]
    if isinstance(value, list):
        for item in value:
            spoil(item)
        value += [99, {"spoilt": True}]


def change(*values: Any) -> None:
    """Spoil the values where `changes` says so."""
    for value in values if changes else ():
        spoil(value)


def allowed(config: dict[str, Any]) -> bool:
    found = len(config["layers"]) < 2 or config["x"] < 0.5
    change(config)
    return found


def closeness(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    found = -float(np.abs(y_true - y_pred).mean())
    if changes:
        y_true.sort()
        y_pred[:] = 0
    return found


def prepare(frame: pd.DataFrame) -> pd.DataFrame:
    found = frame.assign(c=frame["a"] * frame["b"])
    if changes:
        frame["y"] = 0.0
        frame.drop(frame.index, inplace=True)
    return found


def make(alphas: Any = (), extra: Any = ()) -> Ridge:
    found = Ridge(alpha=1 + size(alphas) + size(extra))
    change(alphas, extra)
    return found


class Careless(Ridge):
    """A ridge whose `fit` changes what it was made with, and its rows."""

    def __init__(self, alphas: Any = None, extra: Any = None) -> None:
        super().__init__()
        self.alphas, self.extra = alphas, extra

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Careless:
        self.alpha = size(self.alphas) + size(self.extra)
        super().fit(X, y)
        change(self.alphas, self.extra)
        if changes:
            X[:], y[:] = 0, 0
        return self
