"""A model of a user that goes wrong for some customers, as the code in `isolation_code` does."""

from __future__ import annotations

from typing import Any

import numpy as np
from isolation_code import TROUBLES, mood_of
from sklearn.linear_model import Ridge


class Fickle(Ridge):
    """A ridge with moods."""

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Fickle:
        self.mood_ = mood_of(y)
        if self.mood_ in TROUBLES:
            TROUBLES[self.mood_]()
        if self.mood_ == "spoiling":
            X[:], y[:] = 0, 0
        if self.mood_ == "unsaveable":
            self.lambda_ = (number for number in range(3))
        super().fit(X, y, sample_weight)
        return self

    def predict(self, X: np.ndarray) -> Any:
        told = super().predict(X)
        odd = {"shape": told[:-1], "words": np.array(["x"] * len(told)), "nothing": None, "nans": told * np.nan}
        return odd.get(self.mood_, told)


MODELS = [*TROUBLES, "spoiling", "unsaveable", "shape", "words", "nothing", "nans"]
