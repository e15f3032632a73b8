"""An interval for the mean of a few figures, such as paired differences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import t


def interval(differences: np.ndarray | Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """Mean with its Student t interval; unbounded for one figure."""
    count = len(differences)
    mean = float(np.mean(differences))
    if count < 2:
        return mean, float("-inf"), float("inf")
    half = float(t.ppf(0.5 + level / 2, count - 1) * np.std(differences, ddof=1) / np.sqrt(count))
    return mean, mean - half, mean + half
