"""The verdict on each customer: use its model, or what in its place, as far as its hold-out rows can tell."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tuning.definition.baselines import GivenBaseline, baseline_name, column_of
from tuning.records.gains import LEAST_OF_CLASS, ROW_GROUPS
from tuning.records.schema import OK, POOLED

LEAST_ROWS = ROW_GROUPS  # held out; fewer decide nothing
CONSTANT = "a constant guess"
LEVEL = 0.025  # of each direction: the intervals that decide hold 95 %
_NUMBERS = (
    *("trials", "test_score", "test_rows", "rare_rows"),
    *("gain", "gain_error", "gain_over_constant", "gain_over_constant_error"),
)
#: The columns of study records that verdicts are made of.
JUDGED = ("status", "trial", *_NUMBERS)


class ToUse(StrEnum):
    """What to use for a customer."""

    MODEL = "model"
    BASELINE = "baseline"
    CONSTANT = "constant"
    POOL = "pool"
    UNDECIDED = "undecided"


def rival(baseline: GivenBaseline) -> str:
    """Return what a model has to be better than."""
    return CONSTANT if column_of(baseline) is None else baseline_name(baseline)


def verdicts(best: pa.Table, baseline: GivenBaseline) -> pa.Array:
    """Return the verdict on each customer; None without a model or hold-out rows.

    A model is used where its hold-out score is surely better than the constant's, and no worse than the baseline's; of
    the user's own predictions, where it is surely better than these. A baseline or a constant that is surely better is
    used in its place, of both the better one.

    best: the records of all customers' best studies, with the columns `JUDGED`. baseline: as the definition has it.
    """
    found = {name: best[name].to_numpy(zero_copy_only=False).astype(float) for name in _NUMBERS}
    gain, over = found["gain"], found["gain_over_constant"]
    ok, pooled = (pc.equal(best["status"], each).to_numpy() for each in (OK, POOLED))
    known_before = (found["trials"] == 0) & np.isnan(found["test_score"])  # fitted on all rows
    held = ok & (found["test_rows"] > 0) & ~known_before
    enough = held & ~too_few(best)
    better, worse = _sure(np.where(enough, gain, np.nan), found["gain_error"])
    over_constant, under_constant = _sure(np.where(enough, over, np.nan), found["gain_over_constant_error"])
    own = column_of(baseline) is not None
    proven = better if own else np.where(np.isnan(over), better, over_constant)
    codes = np.select(
        [
            pooled,
            ~held,
            worse & ~(under_constant & (over <= gain)),
            under_constant | (enough & is_constant(best).to_numpy() & (better | (not own))),
            proven,
        ],
        range(5),
        5,
    )
    names = [ToUse.POOL, None, ToUse.BASELINE, ToUse.CONSTANT, ToUse.MODEL, ToUse.UNDECIDED]
    return pa.array(names, pa.string()).take(pa.array(codes))


def is_constant(studies: pa.Table) -> pa.ChunkedArray:
    """Return whether each study's model is a constant; who had a fixed configuration has no trial either."""
    return pc.and_(studies["trial"].is_null(), pc.greater(studies["trials"], 0))


def too_few(studies: pa.Table) -> np.ndarray:
    """Return (n,) whether hold-out rows are too few for a verdict."""
    rare = studies["rare_rows"].fill_null(LEAST_OF_CLASS)
    few: np.ndarray = pc.or_(pc.less(studies["test_rows"], LEAST_ROWS), pc.less(rare, LEAST_OF_CLASS)).to_numpy()
    return few


def _sure(gain: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which gains, (n,) each, are surely above 0, and which below; NaN is neither.

    A gain over its error has Student's distribution, with one degree of freedom less than the jackknife's groups.
    """
    from scipy.special import stdtr

    with np.errstate(divide="ignore", invalid="ignore"):
        t = gain / error
    p = stdtr(ROW_GROUPS - 1, -np.abs(t))
    return discoveries(np.where(t > 0, p, 1 - p), LEVEL), discoveries(np.where(t < 0, p, 1 - p), LEVEL)


def discoveries(p: np.ndarray, level: float) -> np.ndarray:
    """Return (n,) which of many p-values count: of these a share of `level` is expected to be wrong.

    By Benjamini and Hochberg, Controlling the false discovery rate, Journal of the Royal Statistical Society B 57,
    1995; the p-values that do not count are those whose interval, at the level of Benjamini and Yekutieli, Journal of
    the American Statistical Association 100, 2005, holds 0. NaN is not looked at.
    """
    looked_at, counted = ~np.isnan(p), np.zeros(len(p), dtype=bool)
    if looked_at.any():
        from scipy.stats import false_discovery_control  # takes a second, and an objective has no p-values

        counted[looked_at] = false_discovery_control(p[looked_at]) <= level
    return counted
