"""Between which numbers a regression answers, so that no model runs away where rows go beyond what it was fitted on.

By default that is the range of its training rows' targets, widened by its width on each side. Models whose form
extrapolates (lines, support vectors, neural nets, exponentials of a logarithm) would leave it; trees do not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from tuning.models.base import EncodedRows
from tuning.preprocessing.task import Prediction

AUTO, OFF = "auto", "off"
#: What a definition may say: a word, or the least and the most, None for that of the range.
GivenBounds: TypeAlias = str | tuple[float | None, float | None]


@dataclass(frozen=True)
class Bounds:
    """The least and the most that a model answers."""

    low: float
    high: float

    def hold(self, prediction: Prediction) -> Prediction:
        """Return the prediction, held within; NaN stays as it is."""
        values = prediction.values
        if not len(values) or (values.min() >= self.low and values.max() <= self.high):
            return prediction
        beyond = (values < self.low) | (values > self.high)
        if not beyond.any():
            return prediction
        return replace(prediction, values=np.clip(values, self.low, self.high), held=beyond)

    def to_json(self) -> list[float | None]:
        """As a saved model has them; None where there is no end, which JSON does not know."""
        return [each if math.isfinite(each) else None for each in (self.low, self.high)]

    @classmethod
    def from_json(cls, values: Sequence[float | None] | None) -> Bounds | None:
        """Return the opposite of `to_json`; None of a model that has none."""
        if values is None:
            return None
        low, high = values
        return cls(-math.inf if low is None else low, math.inf if high is None else high)


def bounds_of(train: EncodedRows, wanted: GivenBounds, above: float = -math.inf) -> Bounds | None:
    """Return those of a model that is fitted on some rows; None where it may answer anything.

    above: what the metric asks answers to be above. The least one is then a thousandth of the way to the mean.
    """
    if wanted == OFF or not len(train.y):
        return None
    if "bounds" not in train.cache:
        least, most = float(train.y.min()), float(train.y.max())
        width = most - least
        train.cache["bounds"] = Bounds(least - width, most + width) if width > 0.0 else Bounds(-math.inf, math.inf)
    found: Bounds = train.cache["bounds"]
    low, high = (None, None) if isinstance(wanted, str) else wanted
    least = found.low if low is None else low
    if least <= above != -math.inf:
        least = above + max((float(train.y.mean()) - above) / 1000, np.finfo(np.float64).eps)
    return Bounds(least, found.high if high is None else high)
