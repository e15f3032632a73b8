"""The typical customer of a run: medians of scores and gains on the hold-out rows, and how sure they are."""

from __future__ import annotations

import math
from typing import TypedDict

import numpy as np
import pyarrow as pa

#: What is needed of customers' best studies.
ANSWERED = ["test_score", "cv_score", "constant_test_score", "gain", "gain_over_constant"]


class Typical(TypedDict):
    """Customers' medians; None where nothing is known.

    test_score to gain_over_constant: on the hold-out rows. gain_low, gain_high: an interval of the median gain that
    holds it at least 19 times of 20, by ranks (Conover, Practical Nonparametric Statistics, 1999, section 3.2); from 6
    customers on.
    """

    cv_score: float | None
    test_score: float | None
    constant_test_score: float | None
    gain_over_constant: float | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None


def typical_of(best: pa.Table) -> Typical:
    """Of customers with a model. best: records of their best studies, with the columns `ANSWERED`."""
    values = {name: _there(best[name]) for name in ANSWERED}
    gains = np.sort(values["gain"])
    rank = median_rank(len(gains))
    return {
        "cv_score": _median(values["cv_score"]),
        "test_score": _median(values["test_score"]),
        "constant_test_score": _median(values["constant_test_score"]),
        "gain_over_constant": _median(values["gain_over_constant"]),
        "gain": _median(gains),
        "gain_low": _finite(gains[rank - 1]) if rank else None,
        "gain_high": _finite(gains[-rank]) if rank else None,
    }


def median_rank(count: int) -> int:
    """The rank, from either end, between which the median of so many lies at least 19 times of 20: as often as a fair
    coin falls at least so many times; 0 where they are too few."""
    from scipy.special import bdtrik

    return max(0, math.ceil(bdtrik(0.025, count, 0.5))) if count else 0


def _there(column: pa.ChunkedArray) -> np.ndarray:
    values = np.array(column.drop_null().to_pylist(), dtype=float)
    known: np.ndarray = values[~np.isnan(values)]
    return known


def _median(values: np.ndarray) -> float | None:
    return _finite(np.median(values)) if len(values) else None


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
