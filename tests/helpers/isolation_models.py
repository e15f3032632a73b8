"""A model of a user that goes wrong for one customer, as the code in `isolation_code` does."""

from __future__ import annotations

from typing import Any

import numpy as np
from isolation_code import TROUBLES, is_bad, mood
from sklearn.linear_model import Ridge


class Fickle(Ridge):
    """A ridge with moods."""

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Fickle:
        self.moody_ = is_bad(y)
        if self.moody_ and mood["now"] in TROUBLES:
            TROUBLES[mood["now"]]()
        if self.moody_ and mood["now"] == "spoiling":
            X[:], y[:] = 0, 0
        if self.moody_ and mood["now"] == "unsaveable":
            self.lambda_ = (number for number in range(3))
        super().fit(X, y, sample_weight)
        return self

    def predict(self, X: np.ndarray) -> Any:
        told = super().predict(X)
        odd = {"shape": told[:-1], "words": np.array(["x"] * len(told)), "nothing": None, "nans": told * np.nan}
        return odd.get(mood["now"], told) if self.moody_ else told


MODELS = [*TROUBLES, "spoiling", "unsaveable", "shape", "words", "nothing", "nans"]
